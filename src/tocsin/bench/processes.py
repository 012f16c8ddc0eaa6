"""The processes of a run: workers as an operator starts them, and receivers; each with its CPU."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

import msgspec

from tocsin.bench.errors import BenchError
from tocsin.bench.receipts import Receipts
from tocsin.bench.receiver import Task

TERM_S_MAX = 10.0
#: A receiver of a million looks into them for some ten seconds.
DONE_S_MAX = 120.0
LOG_LINES_SHOWN = 15


class Workers:
    """Some `tocsin worker` processes, each with a state directory and a log file of its own."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._home = home
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, count: int) -> None:
        """Start `count` of them; those of an earlier `start` are gone."""
        assert not self._processes
        for number in range(count):
            (self._home / f"worker-{number}").mkdir(parents=True, exist_ok=True)
            with self._log(number).open("ab") as log:
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "tocsin.cli", "worker", "--until-stdin-closes"],
                        env={
                            **os.environ,
                            **self._environment,
                            "TOCSIN_STATE_DIR": str(self._home / f"worker-{number}"),
                        },
                        stdin=subprocess.PIPE,  # closes with this process, killed or not
                        stdout=log,
                        stderr=subprocess.STDOUT,
                    )
                )

    @property
    def pids(self) -> Sequence[int]:
        """Their process ids."""
        return [process.pid for process in self._processes]

    def check(self) -> None:
        """BenchError, with the end of its log, when one has ended."""
        for number, process in enumerate(self._processes):
            if process.poll() is not None:
                raise BenchError(
                    f"worker {number} ended with code {process.returncode}:\n{self.tail(number)}"
                )

    def tail(self, number: int) -> str:
        """Return the end of a worker's log."""
        with suppress(OSError):
            lines = self._log(number).read_text("utf-8", "replace").splitlines()
            return "\n".join(lines[-LOG_LINES_SHOWN:])
        return ""

    def kill(self) -> None:
        """End them as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask them to end, and see to it."""
        self._end(signal.SIGTERM)

    def lose_state(self) -> None:
        """Remove their state directories; they are not running."""
        assert not self._processes
        for directory in self._home.glob("worker-*/"):
            shutil.rmtree(directory)

    def _end(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)
        for process in self._processes:
            try:
                process.wait(TERM_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _close(process)
        self._processes.clear()

    def _log(self, number: int) -> Path:
        return self._home / f"worker-{number}.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._end(signal.SIGKILL)


class Receiver:
    """A receiver process, ready once this is made."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tocsin.bench.receiver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(task).decode() + "\n")
        self._process.stdin.flush()
        self._lines = _Lines(self._process)
        #: How many records it has.
        self.count = 0

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it reads by now. BenchError when it has ended."""
        self.look()
        return self._lines.ready

    def look(self) -> int:
        """Return how many records it has by now. BenchError when it has ended."""
        if self._process.poll() is not None:
            raise BenchError(f"the receiver ended with code {self._process.returncode}")
        self.count = self._lines.count
        return self.count

    def finish(self) -> Receipts:
        """Let it stop, look into what it has, and return that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(DONE_S_MAX)
        except subprocess.TimeoutExpired as late:
            raise BenchError("the receiver does not come to an end") from late
        if code:
            raise BenchError(f"the receiver ended with code {code}")
        return msgspec.msgpack.decode(Path(self._task.file).read_bytes(), type=Receipts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._lines.join()
        _close(self._process)


class _Lines(Thread):
    """Follows what a receiver tells."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        assert process.stdout is not None
        self._stream: Iterable[str] = process.stdout
        self.ready = False
        self.count = 0
        self.start()

    def run(self) -> None:
        for line in self._stream:
            word = line.strip()
            self.ready = True
            if word.isdigit():
                self.count = int(word)


def _close(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time that these processes have used, user and system."""
    return sum(_cpu_seconds(pid) for pid in pids)


def _cpu_seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return _cpu_seconds_by_ps(pid)
    # The second field is a name in brackets, which may hold anything.
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cpu_seconds_by_ps(pid: int) -> float:
    """Return it as macOS tells it: minutes:seconds."""
    asked = subprocess.run(  # noqa: S603  a number and our own words
        ["/bin/ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    seconds = 0.0
    for part in asked.stdout.strip().split(":"):
        seconds = seconds * 60 + float(part or 0)
    return seconds


def busy_seconds() -> float | None:
    """Return the CPU time that this machine's cores were not idle; None where nobody tells."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _wait, irq, soft, steal = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
