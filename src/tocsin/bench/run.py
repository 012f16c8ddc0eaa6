"""A whole bench: a broker, then each workload on a stage of its own."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from msgspec import Struct

from tocsin.adapters.clock import SystemClock
from tocsin.bench.machine import machine, versions
from tocsin.bench.results import Report, Result
from tocsin.bench.stage import Progress, Setting, Stage
from tocsin.bench.workloads import WORKLOADS, Size
from tocsin.embedded import EmbeddedKafka

#: What Kafka's own start script gives a broker.
HEAP_MB = 1_024
FOREIGN = "of a broker that was there"


class Plan(Struct, frozen=True, kw_only=True):
    """What to measure, and how."""

    workloads: Sequence[str]
    workers: int
    partitions: int
    runs: int
    warm_up: int
    keep: bool
    #: None: the workload's own.
    count: int | None
    rate: int | None
    seconds: int | None
    #: Settings of the clients; None: a broker of our own.
    client: Mapping[str, str | int | float | bool] | None
    replication_factor: int
    #: File of settings that the workers read; None: the one they would read anyway.
    config: str | None


class Broker(Struct, frozen=True, kw_only=True):
    """The broker that is used."""

    client: Mapping[str, str | int | float | bool]
    version: str
    #: None where it is not ours.
    pid: int | None


def bench(
    plan: Plan, progress: Progress, say: Callable[[str], None], done: Callable[[Result], None]
) -> Report:
    """Measure all of `plan`; `done` is given each result once it is there."""
    clock = SystemClock()
    begun = datetime.fromtimestamp(clock.wall_ms() / 1_000, UTC)
    surroundings = machine()
    with home(keep=plan.keep, say=say) as directory, broker(plan, directory, say) as found:
        setting = Setting(
            client=found.client,
            workers=plan.workers,
            partitions=plan.partitions,
            replication_factor=plan.replication_factor,
            warm_up=plan.warm_up,
            broker=found.pid,
            config=plan.config,
            keep=plan.keep,
        )
        results: list[Result] = []
        for name in plan.workloads:
            # Nothing of an earlier bench on the same broker is in the way.
            prefix = f"tocsin-bench-{clock.wall_ms()}-{name}"
            with Stage(setting, prefix, directory / name, progress) as stage:
                results.append(measure(plan, name, stage))
            done(results[-1])
    return Report(
        begun=begun.isoformat(timespec="seconds"),
        machine=surroundings,
        versions=versions(found.version),
        settings={
            "workers": plan.workers,
            "partitions": plan.partitions,
            "warm_up": plan.warm_up,
            "broker": FOREIGN if found.pid is None else f"on this machine, heap {HEAP_MB} MB",
        },
        results=results,
    )


def measure(plan: Plan, name: str, stage: Stage) -> Result:
    """Run one workload as often as planned."""
    workload = WORKLOADS[name]
    size = sized(workload.default, plan)
    return Result(
        workload=name,
        parameters={parameter: getattr(size, parameter) for parameter in workload.parameters},
        runs=[workload.run(stage, f"run-{number}", size) for number in range(plan.runs)],
    )


def sized(default: Size, plan: Plan) -> Size:
    """Return the size with what the plan says in its place."""
    return Size(
        count=default.count if plan.count is None else plan.count,
        rate=default.rate if plan.rate is None else plan.rate,
        seconds=default.seconds if plan.seconds is None else plan.seconds,
    )


@contextmanager
def home(*, keep: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Return a directory for states, logs and the broker's data; with `keep` it stays."""
    directory = Path(tempfile.mkdtemp(prefix="tocsin-bench-"))
    try:
        yield directory
    finally:
        if keep:
            say(f"What was written is kept in {directory}")
        else:
            rmtree(directory, ignore_errors=True)


@contextmanager
def broker(plan: Plan, directory: Path, say: Callable[[str], None]) -> Iterator[Broker]:
    """Return the broker that the plan names, or start one."""
    if plan.client is not None:
        yield Broker(client=plan.client, version=FOREIGN, pid=None)
        return
    with EmbeddedKafka(heap_mb=HEAP_MB, data_dir=directory / "kafka", on_progress=say) as kafka:
        yield Broker(
            client={"bootstrap.servers": kafka.bootstrap_servers},
            version=kafka.version,
            pid=kafka.pid,
        )
