"""A worker is asked directly, with a bound, and what it says is told in words."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tocsin.adapters.owner_web import UrllibWeb
from tocsin.client import OwnerError


class Worker(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        status = int(self.path[1:4])
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/200")
        self.end_headers()
        self.wfile.write(json.dumps({"detail": "because"}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Worker.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Worker)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_parameters_and_token_arrive(address: str) -> None:
    body = UrllibWeb().get(f"{address}/200", {"actor": "a/\0&ü"}, "secret")
    assert body == b'{"detail": "because"}'
    assert Worker.asked == [("/200?actor=a%2F%00%26%C3%BC", "Bearer secret")]


def test_what_is_not_there_is_none(address: str) -> None:
    assert UrllibWeb().get(f"{address}/404", {}, None) is None


@pytest.mark.parametrize(
    ("status", "way_out"),
    [("401", "TOCSIN_TOKEN"), ("421", "try again"), ("503", "try again"), ("500", "release")],
)
def test_each_other_answer_is_told_with_its_reason_and_the_way_out(
    address: str, status: str, way_out: str
) -> None:
    with pytest.raises(OwnerError, match="because") as caught:
        UrllibWeb().get(f"{address}/{status}", {}, None)
    assert way_out in caught.value.way_out


def test_a_redirect_is_not_followed_with_the_token(address: str) -> None:
    with pytest.raises(OwnerError, match="302"):
        UrllibWeb().get(f"{address}/302", {}, "secret")
    assert [path for path, _ in Worker.asked] == ["/302?"]


def test_a_worker_that_is_gone_is_told_by_its_address() -> None:
    with pytest.raises(OwnerError, match=r"http://127\.0\.0\.1:1 does not answer"):
        UrllibWeb().get("http://127.0.0.1:1/v1/reminders", {}, None)


def test_only_http_is_asked() -> None:
    with pytest.raises(OwnerError, match="no address to ask"):
        UrllibWeb().get("file:///etc/passwd", {}, None)
