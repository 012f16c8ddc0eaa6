"""Whatever is killed, and whenever: each delivery once, none early, none after its cancel.

Two workers serve a random load while one or the other is killed: at a random moment, or by itself
at a named point of a transaction; at last both, for a while. What must have come is computed from
the outside (oracle.py).

TOCSIN_KILL_SEED repeats the random choices of a run; TOCSIN_SOAK_S is how long `make soak` runs.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kill import planted
from tests.kill.oracle import Fault
from tests.kill.run import Run, Wanted, audit, create_installation, run
from tests.kill.workers import BETWEEN, INSIDE
from tocsin.embedded import EmbeddedKafka

WANTED = {"kept": Wanted(kills=30, inside=10), "wiped": Wanted(kills=8, inside=2)}
#: What a run must have met to prove anything.
MET = (
    "armed",
    "cancelled",
    "delivered by hand",
    "destroyed",
    "moved",
    "nothing_cancelled",
    "occurrence delivered",
    "occurrence passed over",
    "one-shot delivered",
    "one-shot ended in time",
    "refused",
    "still armed",
)
SOAK_S = float(os.environ.get("TOCSIN_SOAK_S", "600"))
#: Of the log that the damages are planted in.
PARTITION = 0

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["kept", "wiped"])
def killed(
    request: pytest.FixtureRequest,
    embedded_kafka: EmbeddedKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """A run in which the killed workers' state was kept, or wiped at each kill."""
    directory = tmp_path_factory.mktemp(request.param)
    wiped = request.param == "wiped"
    done = run(embedded_kafka.bootstrap_servers, directory, WANTED[request.param], wipe=wiped)
    show(request, done)
    return done


#: So many kills meet every kind of point.
MANY = 30


def show(request: pytest.FixtureRequest, done: Run) -> None:
    """Print the figures, of runs that went well too: they are part of the proof."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        sys.stdout.write(f"\n{done.describe()}\n")


def test_each_expected_delivery_came_exactly_once_and_no_other(killed: Run) -> None:
    assert killed.complete, killed.explain([])
    faults = killed.judge().faults
    assert not faults, killed.explain(faults)


def test_the_watcher_saw_what_a_later_reader_finds(killed: Run) -> None:
    ids = [one.id for one in killed.came]
    assert sorted(one.id for one in killed.watched) == sorted(ids), killed.explain([])


def test_the_audit_of_a_killed_installation_is_clean(killed: Run) -> None:
    done = killed.audit()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{killed.explain([])}"


def test_workers_were_killed_where_it_hurts(killed: Run) -> None:
    points = {kill.point for kill in killed.kills}
    inside = [kill for kill in killed.kills if kill.point in INSIDE]
    assert len(killed.kills) >= killed.wanted.kills, killed.describe()
    assert len(inside) >= killed.wanted.inside, killed.describe()
    assert None in points, killed.describe()
    # A short campaign may miss these: not every point is passed in time.
    assert points & BETWEEN.keys() or killed.wanted.kills < MANY, killed.describe()


def test_what_was_aborted_is_in_the_topics_and_invisible(killed: Run) -> None:
    assert killed.aborted["events"] > 0, killed.describe()
    assert killed.aborted["deliveries"] > 0, killed.describe()


def test_the_load_met_everything_that_it_was_to_prove(killed: Run) -> None:
    counts = killed.judge().counts
    assert not [what for what in MET if not counts.get(what)], killed.describe()


# --- planted damages


#: The damages do not depend on what happened to local state.
kept = pytest.mark.parametrize("killed", ["kept"], indirect=True)


@pytest.fixture(scope="module")
def log(killed: Run) -> planted.Log:
    return planted.committed_log(killed.servers, killed.prefix, PARTITION)


def audited_copy(killed: Run, log: planted.Log, name: str) -> dict[str, int]:
    """Return the kinds of differences that the audit finds in a copy of the log."""
    prefix = f"{killed.prefix}-{name.replace('_', '-')}"
    create_installation(killed.servers, prefix)
    planted.write_copy(killed.servers, prefix, PARTITION, log)
    done = audit(killed.servers, prefix, "--partition", str(PARTITION), "--json")
    report = json.loads(done.stdout.splitlines()[0])
    assert (done.returncode == 0) is report["clean"], done.stderr
    counts: dict[str, int] = report["counts"]
    return counts


@kept
def test_an_undamaged_copy_is_clean(killed: Run, log: planted.Log) -> None:
    assert audited_copy(killed, log, "clean") == {}


Damage = Callable[[planted.Log], None]


@kept
@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (planted.duplicate, "delivery_duplicate"),
        (planted.missing, "delivery_missing"),
        (planted.early, "early"),
        (planted.altered_state, "state_differs"),
        (planted.gap_in_steps, "step_gap"),
    ],
    ids=("duplicate", "missing", "early", "altered-state", "gap-in-steps"),
)
def test_the_audit_finds_a_planted_damage(
    killed: Run, log: planted.Log, damage: Damage, kind: str
) -> None:
    damaged = {name: list(lines) for name, lines in log.items()}
    damage(damaged)
    counts = audited_copy(killed, damaged, kind)
    assert counts.get(kind) == 1, counts


# --- long


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S + 600)
@pytest.mark.parametrize("wipe", [False, True], ids=["kept", "wiped"])
def test_it_holds_for_a_long_time(
    request: pytest.FixtureRequest, embedded_kafka: EmbeddedKafka, tmp_path: Path, wipe: bool
) -> None:
    wanted = Wanted(seconds=SOAK_S)
    done = run(embedded_kafka.bootstrap_servers, tmp_path, wanted, wipe=wipe)
    show(request, done)
    faults: list[Fault] = list(done.judge().faults)
    assert not faults, done.explain(faults)
    assert done.complete, done.explain([])
    audited = done.audit()
    assert audited.returncode == 0, f"{audited.stdout}\n{done.explain([])}"
