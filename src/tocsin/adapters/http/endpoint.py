"""The thread that serves. The loop never waits for it, and it never waits for the loop."""

import asyncio
import socket
from concurrent.futures import Future
from threading import Thread

import structlog
from aiohttp import web

from tocsin.adapters.http.access import guard
from tocsin.adapters.http.routes import Routes
from tocsin.adapters.http.subject import Subject
from tocsin.ports import WorldError

log = structlog.get_logger(__name__)

START_S_MAX = 10.0
CLOSE_S_MAX = 1.0
#: Wildcards: listened on, never called so.
_ANY = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  compared, not bound


class CannotListen(WorldError):
    """The address cannot be listened on; the message says which and why."""


class Endpoint:
    """Serves one worker from construction to `close`."""

    def __init__(
        self,
        subject: Subject,
        *,
        host: str,
        port: int,
        token: str | None = None,
        advertised: str | None = None,
    ) -> None:
        """`port` 0 is any free one. `advertised` may hold {port}; None: made of host and port."""
        self._socket = _listen(host, port)
        bound = self._socket.getsockname()[1]
        #: Base URL that others are told.
        self.address = (advertised or f"http://{_callable(host)}:{{port}}").replace(
            "{port}", str(bound)
        )
        self._loop = asyncio.new_event_loop()
        routes = Routes(subject, self.address)
        self._application = web.Application(middlewares=[guard(token, _names(self.address))])
        self._application.add_routes(routes.table())
        self._runner: web.AppRunner | None = None
        started: Future[None] = Future()
        self._thread = Thread(target=self._serve, args=(started,), name="http", daemon=True)
        self._thread.start()
        started.result(START_S_MAX)
        log.info("listening", address=self.address)

    def close(self) -> None:
        """Answer no more."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSE_S_MAX)

    def _serve(self, started: "Future[None]") -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._start())
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits
            started.set_exception(error)
            return
        started.set_result(None)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._stop())
            self._loop.close()

    async def _start(self) -> None:
        self._runner = web.AppRunner(
            self._application, handle_signals=False, access_log=None, shutdown_timeout=0.2
        )
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {host}:{port} ({error.strerror}): choose another listen_host or "
            "listen_port; port 0 takes any that is free"
        ) from error
    return listener


def _callable(host: str) -> str:
    """Return a name under which others may reach what listens on `host`."""
    if host in _ANY:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _names(address: str) -> frozenset[str]:
    name = address.split("://", 1)[1].rsplit(":", 1)[0]
    return frozenset({name.strip("[]")})
