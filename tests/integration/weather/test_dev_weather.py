"""`tocsin dev` on a developer's laptop: it sleeps, it is closed with Ctrl-C, it is opened again."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.integration.weather.site import Service, Site, Worker, becomes_true

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

PARTITIONS = 4
SLEPT_S = 20.0
READY_S_MAX = 120.0
LEFT_S_MAX = 20.0
RECOVERY_S_MAX = 60.0


class Dev(Worker):
    """One `tocsin dev`, with all that it started."""

    def servers(self) -> str:
        self.wait_until("ready", lambda: "Ready: every partition is live." in self.text())
        found = re.search(r"export TOCSIN_BOOTSTRAP_SERVERS=(\S+)", self.text())
        assert found is not None
        return found[1]

    def tree(self) -> list[int]:
        """Its process and every descendant."""
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        )
        parents = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
        found = [self.process.pid]
        for pid in found:
            found += [child for child, parent in parents if parent == pid]
        return found

    def interrupt(self) -> None:
        """Press Ctrl-C; nothing may be left."""
        processes = self.tree()
        assert len(processes) >= 5  # itself, two workers, the broker and its supervisor
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(LEFT_S_MAX) == 0
        becomes_true("no process", lambda: not any(map(runs, processes)), LEFT_S_MAX)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def dev(directory: Path, name: str, *options: str) -> Iterator[Dev]:
    """Run it in an empty directory of its own, as somebody who has no settings at all."""
    home = directory / name
    home.mkdir()
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_")}
    keys = ("TOCSIN_CACHE", "TOCSIN_KAFKA_VERSION", "TOCSIN_MAVEN_REPOSITORY")
    kept |= {key: os.environ[key] for key in keys if key in os.environ}
    command = [sys.executable, "-P", "-m", "tocsin.cli", "dev", *options]
    made = Dev(command, kept | {"TMPDIR": str(home)}, directory / f"{name}.log")
    try:
        yield made
    finally:
        for pid in made.tree():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        made.end()


def taken_port_of_the_examples() -> socket.socket:
    """Somebody else's Kafka."""
    taken = socket.socket()
    with suppress(OSError):  # it is taken already
        taken.bind(("127.0.0.1", 9092))
        taken.listen()
    return taken


def site_of(running: Dev, directory: Path) -> Site:
    return Site(running.servers(), directory, partitions=PARTITIONS, prefix="tocsin")


def test_what_was_armed_in_one_run_fires_in_the_next_at_the_same_port(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    example = taken_port_of_the_examples()
    with dev(tmp_path, "first", "--data-dir", str(data)) as first:
        site = site_of(first, tmp_path)
        service = Service(site)
        service.arm_every(0.5, 2)
        service.arm_every(3.0, 27, "later")
        service.flush()
        with dev(tmp_path, "second") as second:
            assert second.servers() != first.servers()
            processes = second.tree()
            second.process.kill()
            second.process.wait()
            becomes_true("no process", lambda: not any(map(runs, processes)), LEFT_S_MAX)
            assert list((tmp_path / "second").iterdir()) == []
        first.interrupt()
        before = first.servers()
    example.close()
    with dev(tmp_path, "again", "--data-dir", str(data)) as again:
        site.servers = again.servers()
        site.environment["TOCSIN_BOOTSTRAP_SERVERS"] = site.servers
        assert site.servers == before, "what was exported in other terminals is still right"
        after = Service(site)
        after.expected = service.expected
        after.wait_for_all(again, RECOVERY_S_MAX)
        after.judge()
        again.interrupt()


@pytest.mark.soak
def test_it_goes_on_by_itself_after_a_sleep(tmp_path: Path) -> None:
    with dev(tmp_path, "laptop") as laptop:
        site = site_of(laptop, tmp_path)
        service = Service(site)
        service.arm_every(0.5, SLEPT_S + 5)
        service.repeat("sensor/1", "tick", 0.5)
        service.flush()
        time.sleep(1)
        asleep = laptop.tree()
        for pid in asleep:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(SLEPT_S)
        for pid in asleep:
            os.kill(pid, signal.SIGCONT)
        service.wait_for_all(laptop, RECOVERY_S_MAX)
        service.judge()
        laptop.interrupt()
