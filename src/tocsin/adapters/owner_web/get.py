"""GET, with a bound, no redirects, and no proxy: a worker is asked directly."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from tocsin.client.errors import OwnerError

#: Longest wait for a worker; it answers from its local store.
ANSWER_S_MAX = 5.0
BODY_BYTES_MAX = 64 * 1024 * 1024
#: What is read of an answer that is a problem, and repeated of one that nobody expected.
PROBLEM_BYTES_MAX = 16 * 1024
SHOWN_CHARS_MAX = 300


class _NoRedirect(HTTPRedirectHandler):
    # A redirect would carry the token to wherever it points.
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class UrllibWeb:
    """See client.ports.Web."""

    def __init__(self) -> None:
        self._opener = build_opener(ProxyHandler({}), _NoRedirect())

    def get(self, url: str, parameters: Mapping[str, str], token: str | None) -> bytes | None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise OwnerError(
                f"{url} is no address to ask", "set advertised_address to http://host:port"
            )
        asked = Request(f"{url}?{urlencode(parameters)}", method="GET")  # noqa: S310  checked above
        if token is not None:
            asked.add_unredirected_header("Authorization", f"Bearer {token}")
        try:
            with self._opener.open(asked, timeout=ANSWER_S_MAX) as answer:
                body: bytes = answer.read(BODY_BYTES_MAX)
                return body
        except HTTPError as error:
            _raise_unless_absent(url, error)
            return None
        except (URLError, OSError) as error:
            why = error.reason if isinstance(error, URLError) else error
            raise OwnerError(
                f"the worker at {_base(url)} does not answer ({why})",
                "is it running, and is its address (advertised_address) reachable from here?"
                " After a crash another worker takes over within some seconds: try again",
            ) from error


def _raise_unless_absent(url: str, error: HTTPError) -> None:
    with error:
        text = _detail(error.read(PROBLEM_BYTES_MAX))
    match error.code:
        case HTTPStatus.NOT_FOUND:
            return
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            raise OwnerError(
                f"the worker at {_base(url)} does not let us ask ({text})",
                "set `token` (TOCSIN_TOKEN) to the one that the workers have",
            )
        case HTTPStatus.MISDIRECTED_REQUEST | HTTPStatus.SERVICE_UNAVAILABLE:
            raise OwnerError(
                f"the worker at {_base(url)} cannot tell now ({text})",
                "the partition is on its way to another worker or being restored: try again",
            )
        case _:
            raise OwnerError(
                f"the worker at {_base(url)} answered {error.code}: {text}",
                "is it a worker of this release, and is nothing between it and here?",
            )


def _detail(body: bytes) -> str:
    """Return what a problem document says, or the beginning of whatever came."""
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return body.decode(errors="replace")[:SHOWN_CHARS_MAX]


def _base(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
