"""The workloads, the same as for the peers (docs/performance.md): one function for each.

Each takes a stage that is ready and returns what one run came to.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from tocsin.bench.driver import intervals, one_for_each_partition, one_shots
from tocsin.bench.errors import BenchError
from tocsin.bench.receipts import Receipts, between, missed_between
from tocsin.bench.results import Checks, Run, lateness
from tocsin.bench.stage import Stage, shares
from tocsin.core.values import DurationMs, EpochMs

SECOND_MS: Final = 1_000
#: Far ahead: no run lasts so long.
FAR_MS: Final = 30 * 24 * 3_600_000
#: What was decided at the last moment may take so long to arrive.
GRACE_MS: Final = 5_000
EVERY_MS: Final = DurationMs(1_000)
#: Deliveries of what was armed and fired before an idle measurement.
IDLE_FIRED_PERCENT: Final = 30
#: Flushes and compactions of what was written before are none of the idle worker's.
SETTLE_MS: Final = 15_000
#: After so long the group has let go of members that were killed: their session, and a little.
SESSION_OVER_MS: Final = 12_000
#: A restore that takes longer has failed.
RESTORE_S_MAX: Final = 300.0


class Size(Struct, frozen=True, kw_only=True):
    """How much of it; what a workload has no use for is ignored."""

    count: int
    rate: int
    seconds: int


class Workload(Struct, frozen=True, kw_only=True):
    """One of the workloads."""

    run: Callable[[Stage, str, Size], Run]
    default: Size
    #: The parameters that it has, by the names of Size.
    parameters: tuple[str, ...]
    doc: str


def burst(stage: Stage, label: str, size: Size) -> Run:
    """Measure the time from an instant T, at which all are due, to the last receipt."""
    with stage.receiver() as receiver:
        due = stage.after_arming(size.count)
        arming = stage.arm(one_shots(label, (due for _ in range(size.count))), size.count, "Arming")
        stage.check_armed_before(arming, due)
        stage.sleep_until(due)
        before = stage.cpu(receiver)
        stage.wait_for(receiver, size.count, "Firing")
        after, ended = stage.cpu(receiver), stage.clock.wall_ms()
        receipts = receiver.finish()
    took_ms = max(receipts.received) - due
    return _run(
        receipts,
        size.count,
        {
            "fires_per_s": size.count * SECOND_MS / took_ms,
            "seconds": took_ms / SECOND_MS,
            "arms_per_s": arming.per_second,
            **shares(before, after, ended - due),
        },
    )


def steady(stage: Stage, label: str, size: Size) -> Run:
    """Measure the lateness of reminders that are due one after the other, evenly."""
    count = size.rate * size.seconds
    with stage.receiver() as receiver:
        first = stage.after_arming(count)
        dues = [EpochMs(first + i * SECOND_MS // size.rate) for i in range(count)]
        arming = stage.arm(one_shots(label, dues), count, "Arming")
        stage.check_armed_before(arming, first)
        stage.sleep_until(first)
        before = stage.cpu(receiver)
        stage.wait_for(receiver, count, "Firing")
        after, ended = stage.cpu(receiver), stage.clock.wall_ms()
        receipts = receiver.finish()
    return _run(
        receipts,
        count,
        {"fires_per_s": _rate(receipts), **shares(before, after, ended - first)},
    )


def arm(stage: Stage, label: str, size: Size) -> Run:
    """Measure from the first command to the last Armed event, seen by a read_committed reader."""
    far = EpochMs(stage.clock.wall_ms() + FAR_MS)
    # Ready before the clock starts: what is measured is the engine, not the driver.
    commands = list(one_shots(label, (far for _ in range(size.count))))
    before, begun = stage.cpu(), stage.clock.wall_ms()
    arming = stage.arm(commands, size.count, "Arming")
    after = stage.cpu()
    figures = {
        "arms_per_s": arming.per_second,
        "seconds": (arming.ended - arming.begun) / SECOND_MS,
        **shares(before, after, stage.clock.wall_ms() - begun),
    }
    # Anything else has raised by now.
    return Run(
        figures=figures,
        checks=Checks(expected=size.count, received=arming.count, duplicates=0, early=0),
    )


def recurring(stage: Stage, label: str, size: Size) -> Run:
    """Measure interval reminders, one second apart, their starts spread over the second."""
    with stage.receiver() as receiver:
        first = stage.after_arming(size.count)
        firsts = [EpochMs(first + i * EVERY_MS // size.count) for i in range(size.count)]
        end = EpochMs(first + size.seconds * SECOND_MS)
        arming = stage.arm(intervals(label, firsts, EVERY_MS), size.count, "Arming")
        stage.check_armed_before(arming, first)
        stage.sleep_until(first)
        before = stage.cpu(receiver)
        with stage.progress("Firing", size.count * size.seconds) as update:
            for second in range(size.seconds):
                stage.sleep_until(first + second * SECOND_MS)
                update(receiver.look())
        stage.sleep_until(end)
        after = stage.cpu(receiver)
        stage.sleep_until(end + GRACE_MS)
        everything = receiver.finish()
    receipts = between(everything, first, end)
    missed = missed_between(everything, first, end, EVERY_MS)
    expected = size.count * size.seconds * SECOND_MS // EVERY_MS
    return _run(
        receipts,
        expected - missed,
        {
            "fires_per_s": _rate(receipts),
            "missed": missed,
            **shares(before, after, end - first),
        },
    )


def restore(stage: Stage, label: str, size: Size) -> Run:
    """Measure from the start of workers that lost everything to a delivery from each partition."""
    _arm_and_fire(stage, f"{label}-before", size.count)
    far = EpochMs(stage.clock.wall_ms() + FAR_MS)
    stage.arm(one_shots(label, (far for _ in range(size.count))), size.count, "Arming far ahead")
    records = _records(stage)
    stage.workers.kill()
    stage.workers.lose_state()
    stage.sleep_until(stage.clock.wall_ms() + SESSION_OVER_MS)
    alone, receipts = _restart(stage, f"{label}-restart")
    stage.workers.kill()
    stage.workers.lose_state()
    at_once, _ = _restart(stage, f"{label}-at-once")
    return Run(
        figures={
            "seconds": alone,
            "seconds_before_the_session_is_over": at_once,
            "state_records": records,
        },
        checks=_checks(receipts, stage.setting.partitions),
    )


def idle(stage: Stage, label: str, size: Size) -> Run:
    """Measure the CPU of workers that have nothing to do, in percent of one core."""
    _arm_and_fire(stage, f"{label}-before", size.count * IDLE_FIRED_PERCENT // 100)
    far = EpochMs(stage.clock.wall_ms() + FAR_MS)
    stage.arm(one_shots(label, (far for _ in range(size.count))), size.count, "Arming far ahead")
    stage.sleep_until(stage.clock.wall_ms() + SETTLE_MS)
    before, begun = stage.cpu(), stage.clock.monotonic_ms()
    with stage.progress("Doing nothing", size.seconds) as update:
        for second in range(size.seconds):
            stage.sleep_until(stage.clock.wall_ms() + SECOND_MS)
            update(second + 1)
    after, ended = stage.cpu(), stage.clock.monotonic_ms()
    return Run(
        figures=shares(before, after, ended - begun),
        checks=Checks(expected=0, received=0, duplicates=0, early=0),
    )


WORKLOADS: Final[Mapping[str, Workload]] = {
    "burst": Workload(
        run=burst,
        default=Size(count=100_000, rate=0, seconds=0),
        parameters=("count",),
        doc="all due at one instant: fires a second",
    ),
    "steady": Workload(
        run=steady,
        default=Size(count=0, rate=1_000, seconds=30),
        parameters=("rate", "seconds"),
        doc="a steady stream: lateness",
    ),
    "arm": Workload(
        run=arm,
        default=Size(count=100_000, rate=0, seconds=0),
        parameters=("count",),
        doc="commands as fast as they can be produced: arms a second",
    ),
    "recurring": Workload(
        run=recurring,
        default=Size(count=1_000, rate=0, seconds=30),
        parameters=("count", "seconds"),
        doc="interval reminders, each once a second: lateness, and how many were missed",
    ),
    "restore": Workload(
        run=restore,
        default=Size(count=1_000_000, rate=0, seconds=0),
        parameters=("count",),
        doc="workers start anew with nothing on disk: seconds to the first delivery",
    ),
    "idle": Workload(
        run=idle,
        default=Size(count=1_000_000, rate=0, seconds=30),
        parameters=("count", "seconds"),
        doc="much armed, nothing due: CPU",
    ),
}


def _arm_and_fire(stage: Stage, label: str, count: int) -> None:
    with stage.receiver() as receiver:
        now = stage.clock.wall_ms()
        stage.arm(one_shots(label, (now for _ in range(count))), count, "Arming what fires at once")
        stage.wait_for(receiver, count, "Firing it")


def _restart(stage: Stage, label: str) -> tuple[float, Receipts]:
    """Return the seconds from the start of the workers to the last of the first deliveries."""
    partitions = stage.setting.partitions
    with stage.receiver() as receiver:
        stage.send(one_for_each_partition(label, partitions))
        begun = stage.clock.wall_ms()
        stage.workers.start(stage.setting.workers)
        stage.wait_for(receiver, partitions, "Restoring", RESTORE_S_MAX)
        receipts = receiver.finish()
    if len(receipts.received) < partitions:
        raise BenchError(
            f"{len(receipts.received)} of {partitions} partitions fired within "
            f"{RESTORE_S_MAX:.0f} s of the start:\n{stage.workers.tail(0)}"
        )
    return (max(receipts.received) - begun) / SECOND_MS, receipts


def _records(stage: Stage) -> int:
    """Return how many offsets the state topic spans: what a restore reads, unless compacted."""
    topic = stage.names.topic("state")
    bounds = stage.cluster.bounds(topic, range(stage.setting.partitions))
    return sum(bound.end - bound.start for bound in bounds.values())


def _run(receipts: Receipts, expected: int, figures: Mapping[str, float]) -> Run:
    return Run(
        figures=figures,
        checks=_checks(receipts, expected),
        lateness_ms=lateness(receipts.received, receipts.due),
        fire_lateness_ms=lateness(receipts.fired, receipts.due),
    )


def _checks(receipts: Receipts, expected: int) -> Checks:
    return Checks(
        expected=expected,
        received=len(receipts.received),
        duplicates=receipts.duplicates,
        early=receipts.wrong,
    )


def _rate(receipts: Receipts) -> float:
    """Return deliveries a second, from the first due to the last receipt."""
    if not receipts.received:
        return 0.0
    took_ms = max(max(receipts.received) - min(receipts.due), 1)
    return len(receipts.received) * SECOND_MS / took_ms
