"""Who may ask, and how an answer that is no answer looks."""

import hmac
from ipaddress import ip_address
from typing import NoReturn

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from tocsin.ports import StoreClosed

PROBLEM_JSON = "application/problem+json"
#: Asked by those who watch processes; they tell nothing that is secret.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
RETRY_AFTER_S = 1


class Problem(Exception):
    """An answer other than the one asked for; the detail names the way out."""

    def __init__(self, status: int, title: str, detail: str, **more: object) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.more = more

    def response(self) -> web.Response:
        """Return the problem as RFC 9457 has it."""
        document = {"title": self.title, "status": self.status, "detail": str(self), **self.more}
        headers = {}
        if self.status == web.HTTPServiceUnavailable.status_code:
            headers["Retry-After"] = str(RETRY_AFTER_S)
        if self.status == web.HTTPUnauthorized.status_code:
            headers["WWW-Authenticate"] = "Bearer"
        body = msgspec.json.encode(document)
        return web.Response(
            status=self.status, body=body, content_type=PROBLEM_JSON, headers=headers
        )


def closing(detail: str) -> Problem:
    """Return the answer while a partition is not there to be asked."""
    return Problem(503, "Service Unavailable", f"{detail}; ask again in a moment")


def guard(token: str | None, hosts: frozenset[str]) -> Middleware:
    """Return what lets a request through: by token, or without one to this machine's names only.

    `hosts`: names by which this endpoint is called; another one is a web page that had its own name
    point here, to read with the browser of somebody on this machine.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if request.path not in OPEN_PATHS:
                _check(request, token, hosts)
            return await handler(request)
        except Problem as problem:
            return problem.response()
        except StoreClosed:
            return closing("the partition has just gone to another worker").response()
        except web.HTTPException as refused:
            return Problem(refused.status, refused.reason, _way_out(request, refused)).response()

    return middleware


def _check(request: web.Request, token: str | None, hosts: frozenset[str]) -> None:
    if token is None:
        host = request.url.host or ""
        if host not in hosts and not _is_loopback(host):
            _refuse(f"this endpoint is not called {host}: set a token to be asked by that name")
        return
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    # Compared in constant time, and as bytes: a header may hold any character.
    same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), token.encode())
    if scheme.lower() != "bearer" or not same:
        raise Problem(401, "Unauthorized", "send the token: Authorization: Bearer <TOCSIN_TOKEN>")


def _refuse(detail: str) -> NoReturn:
    raise Problem(403, "Forbidden", detail)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _way_out(request: web.Request, refused: web.HTTPException) -> str:
    if refused.status == web.HTTPNotFound.status_code:
        return f"there is no {request.path}; there are /v1/status, /v1/reminders, /v1/upcoming"
    if refused.status == web.HTTPMethodNotAllowed.status_code:
        return "this endpoint only answers: use GET, and commands to change something"
    return refused.text or refused.reason
