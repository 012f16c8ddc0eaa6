"""Whatever happens to a process, the children of its supervisor end with it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._processes import Supervisor

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
GONE_WITHIN_S = 10

#: Starts a child through a supervisor, prints the pids and waits; `{more}` is done before.
PARENT = """
import json, os, subprocess, sys, time
from pathlib import Path
from tocsin.embedded._processes import Supervisor
scratch = Path(sys.argv[1])
supervisor = Supervisor(scratch)
child = supervisor.spawn("child", [sys.executable, "-c", "import time; time.sleep(600)"],
                         dict(os.environ), scratch / "log")
other = None
{more}
print(json.dumps([supervisor.pid, child, other]), flush=True)
time.sleep(600)
"""
PLAIN = ""
FORKS = "other = os.fork() or time.sleep(600)"
STARTS = (
    "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
    "close_fds=False).pid"
)
FREEZES_THE_CHILD = "import signal; supervisor.signal('child', signal.SIGSTOP)"


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            return stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + GONE_WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    path = tmp_path / "scratch"
    path.mkdir()
    return path


@pytest.fixture
def supervisor(scratch: Path) -> Iterator[Supervisor]:
    started = Supervisor(scratch)
    yield started
    started.close()


@pytest.mark.parametrize(
    "more", [PLAIN, FORKS, STARTS, FREEZES_THE_CHILD], ids=["plain", "forks", "starts", "frozen"]
)
def test_a_killed_parent_leaves_no_process_and_no_scratch(scratch: Path, more: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(more=more), str(scratch)], stdout=subprocess.PIPE
    )
    assert parent.stdout
    pids: list[Any] = json.loads(parent.stdout.readline())
    supervisor, child, other = pids
    assert alive(supervisor)
    assert alive(child)
    parent.kill()
    parent.wait()
    try:
        assert becomes_true(lambda: not alive(child))
        assert becomes_true(lambda: not alive(supervisor))
        assert not scratch.exists()
    finally:
        parent.stdout.close()
        for pid in filter(None, [other]):
            os.kill(pid, signal.SIGKILL)


def test_a_terminated_supervisor_takes_its_children_along(
    supervisor: Supervisor, scratch: Path
) -> None:
    child = supervisor.spawn("child", SLEEP, os.environ, scratch / "log")
    os.kill(supervisor.pid, signal.SIGTERM)
    assert becomes_true(lambda: not alive(child))


def test_closing_ends_children_and_removes_the_scratch(scratch: Path) -> None:
    supervisor = Supervisor(scratch)
    child = supervisor.spawn("child", SLEEP, os.environ, scratch / "log")
    supervisor.close()
    assert not alive(child)
    assert not scratch.exists()


def test_an_exit_code_is_told_once_there_is_one(supervisor: Supervisor, scratch: Path) -> None:
    supervisor.spawn("child", SLEEP, os.environ, scratch / "log")
    assert supervisor.exit_code("child") is None
    supervisor.signal("child", signal.SIGKILL)
    assert becomes_true(lambda: supervisor.exit_code("child") == -signal.SIGKILL)


def test_what_a_child_says_is_in_its_log(supervisor: Supervisor, scratch: Path) -> None:
    log = scratch / "log"
    supervisor.spawn("child", [sys.executable, "-c", "print('hello')"], os.environ, log)
    assert becomes_true(lambda: supervisor.exit_code("child") == 0)
    assert log.read_text() == "hello\n"


def test_a_program_that_cannot_be_started_is_an_error_that_names_it(
    supervisor: Supervisor, scratch: Path
) -> None:
    with pytest.raises(EmbeddedKafkaError, match="/no/such/program"):
        supervisor.spawn("child", ["/no/such/program"], os.environ, scratch / "log")


def test_signalling_an_unknown_child_does_nothing(supervisor: Supervisor) -> None:
    supervisor.signal("nobody", signal.SIGKILL)
    assert supervisor.exit_code("nobody") is None
