"""Workers that are frozen, asked to leave, killed, or that cannot have their state directory."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.weather.site import (
    SESSION_MS,
    STOP_S_MAX,
    TRANSACTION_MS,
    Service,
    Site,
    Worker,
    becomes_true,
    site_on,
)
from tocsin.embedded import EmbeddedKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

#: Longer than the session and the transaction of these workers.
FROZEN_S = 8.0
#: Partitions of a worker that left fire again elsewhere within this; on a busy machine too.
TAKEN_OVER_S_MAX = 3.0
RECOVERY_S_MAX = 40.0


@pytest.fixture
def site(embedded_kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Site]:
    with site_on(embedded_kafka.bootstrap_servers, tmp_path) as made:
        yield made


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_shared(*workers: Worker) -> None:
    """Wait until each of them has a partition that fires."""
    for worker in workers:
        worker.wait_until("a share", lambda worker=worker: owned(worker) != [])  # type: ignore[misc]
        worker.wait_until_ready()


def owned(worker: Worker) -> list[int]:
    status, body = worker.get("/v1/status")
    return [p["partition"] for p in json.loads(body)["partitions"]] if status == 200 else []


# --- The state directory -----------------------------------------------------------------------


def test_a_state_directory_below_a_file_ends_with_4_and_its_path(site: Site) -> None:
    file = site.directory / "file"
    file.touch()
    done = site.run("worker", "--state-dir", str(file / "state"))
    assert done.returncode == 4
    assert f"The state directory {file / 'state'} cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_state_directory_that_cannot_be_written_ends_with_4_and_its_path(site: Site) -> None:
    # No file can be made there, not even by root.
    done = site.run("worker", "--state-dir", "/proc/tocsin")
    assert done.returncode == 4
    assert "The state directory /proc/tocsin cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_process_on_a_state_directory_is_refused_and_the_first_goes_on(site: Site) -> None:
    with site.worker("a") as worker:
        worker.wait_until_ready()
        second = site.run("worker", "--state-dir", str(site.directory / "a"))
        assert second.returncode == 4
        assert f"in use by another process (pid {worker.process.pid})" in second.stderr
        service = Service(site)
        service.arm("order/1", "pay", 0.1)
        service.wait_for_all(worker, RECOVERY_S_MAX)
    service.judge()


def test_a_state_directory_lost_while_down_is_rebuilt(site: Site) -> None:
    service = Service(site)
    with site.worker("a") as worker:
        worker.wait_until_ready()
        service.arm_every(0.05, 2)
        service.arm_every(1.0, 8, "later")
        service.flush()
        worker.wait_until("some", lambda: not service.missing() or len(service.came) > 20)
    shutil.rmtree(site.directory / "a")
    with site.worker("a") as worker:
        service.wait_for_all(worker, RECOVERY_S_MAX)
        assert worker.get("/metrics")[1].count("tocsin_restored_records_total{") > 0
    service.judge()


# --- Leaving -----------------------------------------------------------------------------------


def test_a_worker_asked_to_leave_under_load_is_gone_at_once_and_others_fire_for_it(
    site: Site,
) -> None:
    with site.worker("a") as stays, site.worker("b") as leaves:
        wait_until_shared(stays, leaves)
        service = Service(site)
        service.arm_every(0.02, 8)
        service.flush()
        gone = owned(leaves)
        time.sleep(1)

        code, took = leaves.terminate()

        assert (code, took < STOP_S_MAX) == (0, True)
        service.wait_for_all(stays, RECOVERY_S_MAX)
    came = [(m.timestamp()[1], m) for m in service.read("deliveries")]
    fired = sorted(at for at, m in came if partition_of_command(m) in gone)
    pauses = [later - earlier for earlier, later in pairwise(fired)]
    assert max(pauses) < TAKEN_OVER_S_MAX * 1000
    service.judge()


def partition_of_command(message: object) -> int:
    headers = dict(message.headers())  # type: ignore[attr-defined]
    return int(json.loads(headers["tocsin"])["id"].partition(":")[0])


# --- Frozen ------------------------------------------------------------------------------------


def test_a_worker_frozen_past_its_session_goes_on_and_nothing_comes_twice(site: Site) -> None:
    assert max(SESSION_MS, TRANSACTION_MS) < FROZEN_S * 1000
    with site.worker("a") as stays, site.worker("b") as frozen:
        wait_until_shared(stays, frozen)
        service = Service(site)
        service.arm_every(0.1, FROZEN_S + 3)
        service.repeat("sensor/1", "tick", 0.2)
        service.flush()
        time.sleep(1)
        frozen.freeze()
        time.sleep(FROZEN_S)
        frozen.thaw()
        wait_until_shared(stays, frozen)
        service.wait_for_all(stays, RECOVERY_S_MAX)
    service.judge()


# --- Several processes under one parent --------------------------------------------------------


@pytest.fixture
def three(embedded_kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Site]:
    with site_on(embedded_kafka.bootstrap_servers, tmp_path, partitions=3) as made:
        yield made


def children(worker: Worker) -> dict[int, int]:
    """The newest pid of each child."""
    return {line["child"]: line["pid"] for line in worker.lines("started") if "child" in line}


def owners(site: Site) -> dict[int, dict[str, object]]:
    """What the status topic tells, by partition."""
    service = Service(site)
    return {
        int(message.key() or b""): json.loads(message.value() or b"{}")
        for message in service.read("status")
    }


def shared_by(site: Site, count: int) -> bool:
    told = owners(site).values()
    live = [one for one in told if one["phase"] == "live"]
    return len(live) == 3 and len({one["address"] for one in live}) == count


def test_three_processes_under_one_parent_are_three_workers(three: Site) -> None:
    with three.worker("all", "--processes", "3") as parent:
        parent.wait_until("three owners", lambda: shared_by(three, 3))
        assert {str(one["address"]) for one in owners(three).values()} == {
            line["address"] for line in parent.lines("listening")
        }
        assert {line["process"] for line in parent.lines("live")} == {0, 1, 2}
        before = children(parent)

        os.kill(before[1], signal.SIGKILL)

        parent.wait_until("started again", lambda: children(parent)[1] != before[1], 10)
        (ended,) = parent.lines("ended")
        assert (ended["child"], ended["code"]) == (1, -signal.SIGKILL)
        parent.wait_until("three owners again", lambda: shared_by(three, 3))

        code, took = parent.terminate()
        assert (code, took < STOP_S_MAX) == (0, True)
        assert not any(alive(pid) for pid in children(parent).values())


def test_children_end_with_a_parent_that_was_killed(three: Site) -> None:
    with three.worker("all", "--processes", "3") as parent:
        parent.wait_until("three children", lambda: len(parent.lines("listening")) == 3)
        pids = children(parent).values()
        parent.process.kill()
        parent.process.wait()
        becomes_true("no children", lambda: not any(map(alive, pids)), STOP_S_MAX + 1)
