"""Workers that are killed: by us at a random moment, or by themselves at a named point."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kill.driver import Driver

SESSION_MS = 2_000
#: Bounds how long a dead worker whose identity is lost keeps readers waiting.
TRANSACTION_MS = 2_000
#: A worker that was to end itself and did not come to that point is killed after this.
FAULT_S_MAX = 8.0
SERVES_S_MAX = 10.0
STOP_S_MAX = 6.0
LOG_LINES = 40

#: Where a transaction is open, and how often the point is passed at most before the end there.
INSIDE: Mapping[str, int] = {
    "after_begin": 8,
    "after_first_produce": 80,
    "before_positions": 8,
    "before_commit": 8,
}
#: Between two things that must hold together.
BETWEEN: Mapping[str, int] = {
    "after_commit": 8,
    "after_store": 8,
    "in_restore": 3,
    "after_restore": 2,
}
VISITS_MAX = {**INSIDE, **BETWEEN}
#: What this many workers in a row are started with, in random order.
DECK = (
    *("after_begin", "after_first_produce", "before_positions", "before_commit") * 3,
    *("after_commit", "after_store", "in_restore", "after_restore"),
    "after_commit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One end of a worker."""

    at: float
    worker: str
    #: Point at which it ended itself; None: we killed it.
    point: str | None
    #: It had partitions that were live.
    served: bool

    def __str__(self) -> str:
        how = "SIGKILL" if self.point is None else self.point
        return f"{self.at:8.3f} {self.worker} {how}{'' if self.served else ' (served nothing)'}"


class Victim:
    """One worker at a time, in a state directory of its own."""

    def __init__(self, name: str, servers: str, prefix: str, directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.state_dir = directory / name
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_")}
        self._environment = {
            **kept,
            "TOCSIN_BOOTSTRAP_SERVERS": servers,
            "TOCSIN_PREFIX": prefix,
            "TOCSIN_STATE_DIR": str(self.state_dir),
            "TOCSIN_SESSION_TIMEOUT_MS": str(SESSION_MS),
            "TOCSIN_TRANSACTION_TIMEOUT_MS": str(TRANSACTION_MS),
            "TOCSIN_LOG_FORMAT": "json",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._fault: str | None = None
        self._log_start = 0

    def start(self, fault: str | None = None) -> None:
        """Start it; with a fault it ends itself as `point:visit` says."""
        self._fault = fault
        asked = {} if fault is None else {"TOCSIN_FAULT": f"crash:{fault}"}
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tocsin.cli", "worker", "--until-stdin-closes"],
                env=self._environment | asked,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ended(self) -> bool:
        return self._running().poll() is not None

    def serves(self) -> bool:
        """Whether it has had a live partition since its start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return re.search(rb'"event": *"live"', log.read()) is not None

    def kill(self) -> Kill:
        """End it, unless it has ended itself; AssertionError when that was not as asked."""
        process = self._running()
        ended_itself = self.ended()
        if ended_itself:
            code = process.returncode
            assert code == -signal.SIGKILL, f"{self.name} ended with {code}:\n{self.tail()}"
            assert self._fault is not None, f"{self.name} was killed by somebody:\n{self.tail()}"
        process.kill()
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
        point = self._fault.partition(":")[0] if ended_itself and self._fault else None
        return Kill(at=time.time(), worker=self.name, point=point, served=self.serves())

    def stop(self) -> None:
        """Ask it to leave, and see to it that it does."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def lose_state(self, *, identity: bool) -> None:
        """Destroy what is on its disk; without its identity nobody fences what it left open."""
        shutil.rmtree(self.state_dir if identity else self.state_dir / "stores", ignore_errors=True)

    def tail(self) -> str:
        """Return the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LOG_LINES:])

    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None, "start comes first"
        return self._process


@contextmanager
def two_workers(servers: str, prefix: str, directory: Path) -> Iterator[Sequence[Victim]]:
    """Yield two workers that were started; both are stopped at the end."""
    victims = [Victim(name, servers, prefix, directory) for name in ("worker-1", "worker-2")]
    try:
        for victim in victims:
            victim.start()
        yield victims
    finally:
        for victim in victims:
            victim.stop()


class Campaign:
    """Kills one worker, then the other, while the driver goes on."""

    def __init__(
        self, driver: Driver, victims: Sequence[Victim], rng: random.Random, *, wipe: bool
    ) -> None:
        self.kills: list[Kill] = []
        self._driver = driver
        self._victims = victims
        self._rng = rng
        self._wipe = wipe
        self._deck: list[str] = []
        self._rounds = 0

    @property
    def inside(self) -> int:
        """Kills at a point at which a transaction was open."""
        return sum(kill.point in INSIDE for kill in self.kills)

    def round(self) -> None:
        """Kill one at a random moment; the next ones in its place end themselves."""
        victim = self._victims[self._rounds % len(self._victims)]
        self._rounds += 1
        self._driver.run(self._rng.uniform(0, 1.0))
        self._kill(victim)
        for _ in range(self._rng.choice((1, 2))):
            victim.start(self._fault())
            self._driver.run_until(victim.ended, FAULT_S_MAX)
            self._kill(victim)
        victim.start()
        # Half of the time the other one is killed while this one has yet to take over.
        if self._rng.random() < 0.5:
            self._driver.run_until(victim.serves, SERVES_S_MAX)

    def blackout(self, seconds: float) -> None:
        """Kill all; the load goes on for a while with nobody there."""
        for victim in self._victims:
            self._kill(victim)
        self._driver.run(seconds)
        for victim in self._victims:
            victim.start()
        self._driver.run_until(self._victims[0].serves, SERVES_S_MAX)

    def _kill(self, victim: Victim) -> None:
        self.kills.append(victim.kill())
        if self._wipe:
            victim.lose_state(identity=self._rng.random() < 0.5)

    def _shuffled(self) -> list[str]:
        """Return DECK in random order, but each third of the rarer kind: few kills meet both."""
        inside = [point for point in DECK if point in INSIDE]
        between = [point for point in DECK if point in BETWEEN]
        self._rng.shuffle(inside)
        self._rng.shuffle(between)
        deck: list[str] = []
        while inside or between:
            deck += inside[:2] + between[:1]
            del inside[:2], between[:1]
        return deck

    def _fault(self) -> str:
        if not self._deck:
            self._deck = self._shuffled()
        point = self._deck.pop(0)
        return f"{point}:{self._rng.randint(1, VISITS_MAX[point])}"
