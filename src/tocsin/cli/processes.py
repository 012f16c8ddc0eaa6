"""Several worker processes under one parent: each with its own state directory, port and address.

The parent forwards signals, starts a crashed child again (later each time), and ends with the code
of a child that refuses to work: that needs an operator, and would be the same a second later.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import structlog

from tocsin.cli.exits import LEAVE_S_MAX, Exit
from tocsin.settings import Settings, SettingsError

log = structlog.get_logger(__name__)

LOOK_S = 0.2
#: Pause before a crashed child starts again; doubled each time, anew after it ran for a while.
PAUSE_S = 1.0
PAUSE_S_MAX = 30.0
RAN_WELL_S = 60.0
#: Codes after which starting again would be of no use.
REFUSALS = frozenset({Exit.USAGE, Exit.ENGINE, Exit.STATE_DIR})


class _Child:
    """One worker process, and when it may start again."""

    def __init__(self, number: int, environment: dict[str, str]) -> None:
        self.number = number
        self._environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self._ticks = 0
        self._ticks_left = 0
        self._pause_s = PAUSE_S

    def start(self) -> None:
        # Its own session: Ctrl-C reaches it through us alone. Its stdin closes when we are gone.
        self.process = subprocess.Popen(  # noqa: S603  ourselves
            [
                *(sys.executable, "-P", "-m", "tocsin.cli", "worker"),
                *("--until-stdin-closes", "--number", str(self.number)),
            ],
            env=self._environment,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._ticks = 0
        log.info("started", child=self.number, pid=self.process.pid)

    def look(self) -> int | None:
        """Return the code with which it refused to work; start it again if it crashed."""
        if self.process is None:
            self._ticks_left -= 1
            if self._ticks_left <= 0:
                self.start()
            return None
        self._ticks += 1
        code = self.process.poll()
        if code is None:
            return None
        if code in REFUSALS:
            return code
        if self._ticks * LOOK_S >= RAN_WELL_S:
            self._pause_s = PAUSE_S
        log.error("ended", child=self.number, code=code, again_in_s=self._pause_s)
        self._ticks_left = int(self._pause_s / LOOK_S)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)
        self.process = None
        return None

    def ask_to_stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def end(self) -> None:
        """Wait until it is gone, and see to it."""
        if self.process is None:
            return
        try:
            self.process.wait(LEAVE_S_MAX + 0.3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run_processes(settings: Settings, count: int, *, file: Path | None) -> int:
    """Run `count` workers until asked to stop; return the exit code."""
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    children = [
        _Child(number, _environment(settings, number, count, file)) for number in range(count)
    ]
    refused: int | None = None
    try:
        for child in children:
            child.start()
        while refused is None and not stop.wait(LOOK_S):
            codes = [code for child in children if (code := child.look()) is not None]
            refused = codes[0] if codes else None
    finally:
        for child in children:
            child.ask_to_stop()
        for child in children:
            child.end()
    return Exit.OK if refused is None else refused


def _environment(settings: Settings, number: int, count: int, file: Path | None) -> dict[str, str]:
    """Return the variables of one child: its own settings laid over what it inherits."""
    address = settings.advertised_address
    if address is not None and "{port}" not in address:
        raise SettingsError(
            f"advertised_address = {address!r}: {count} processes need {count} addresses; "
            "write {port} where the port belongs"
        )
    own: dict[str, object] = {
        "BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "PREFIX": settings.prefix,
        "TOPOLOGY": settings.topology,
        "STATE_DIR": settings.state_directory / f"worker-{number}",
        "LISTEN_HOST": settings.listen_host,
        "LISTEN_PORT": settings.listen_port + number if settings.listen_port else 0,
    }
    if address is not None:
        own["ADVERTISED_ADDRESS"] = address
    if settings.group_instance_id is not None:
        own["GROUP_INSTANCE_ID"] = f"{settings.group_instance_id}-{number}"
    if file is not None:
        own["CONFIG"] = file.absolute()
    return {**os.environ, **{f"TOCSIN_{name}": str(value) for name, value in own.items()}}
