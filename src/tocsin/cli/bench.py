"""`tocsin bench`: measures the engine on this machine."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.output import Output
from tocsin.cli.session import session

if TYPE_CHECKING:
    from tocsin.bench.results import Report, Result
    from tocsin.bench.stage import Progress

_DEFAULT = ("burst", "steady", "arm")
_PARTITIONS = 4
_WARM_UP = 20_000

_HELP = """Measure the engine on this machine: real workers, a real broker, a receiver of its own.

Workloads: burst, steady, arm (these three without any named), recurring, restore, idle. Each has
topics and state of its own, removed afterwards. Every delivery is checked to come exactly once and
never early; exit code 1 when one did not. Without --bootstrap-servers a broker is started for it.

Compare figures of one run only: machines differ, and so does what else they do. restore and idle
write some gigabytes and take minutes.

For example:

  tocsin bench

  tocsin bench burst --workers 2 --runs 3

  tocsin bench restore idle --json figures.json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=_HELP)(bench)


def bench(  # noqa: PLR0913  one parameter for each option
    ctx: typer.Context,
    workloads: Annotated[
        list[str] | None, typer.Argument(metavar="[WORKLOAD]...", show_default=False)
    ] = None,
    *,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Worker processes.")] = 1,
    partitions: Annotated[
        int, typer.Option(min=1, max=1_000, help="Partitions of each topic.")
    ] = _PARTITIONS,
    count: Annotated[
        int | None,
        typer.Option(min=1, help="Reminders of burst, arm, recurring, restore and idle."),
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Due per second, of steady.")] = None,
    seconds: Annotated[
        int | None, typer.Option(min=1, help="How long steady, recurring and idle take.")
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, max=100, help="Times that each is measured; the median is told.")
    ] = 1,
    warm_up: Annotated[
        int,
        typer.Option(min=0, help="Reminders armed and fired before; 0 measures a cold start."),
    ] = _WARM_UP,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write everything to this file as JSON."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep topics, state directories and logs.")
    ] = False,
) -> None:
    """Run the workloads and print what they came to."""
    import signal
    import sys

    from tocsin.bench.errors import BenchError
    from tocsin.bench.report import write_json
    from tocsin.bench.run import Plan, bench

    # Ends in order, as Ctrl-C does, so that neither topics nor directories are left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    given = session(ctx)
    output = given.output
    settings = None if given.bootstrap_servers is None else given.settings
    plan = Plan(
        workloads=_known(workloads or list(_DEFAULT)),
        workers=workers,
        partitions=partitions,
        runs=runs,
        warm_up=warm_up,
        keep=keep,
        count=count,
        rate=rate,
        seconds=seconds,
        client=None if settings is None else dict(settings.client),
        config=None if given.config is None else str(given.config.absolute()),
        replication_factor=1 if settings is None else settings.replication_factor,
    )
    if json_file is not None and not json_file.absolute().parent.is_dir():
        raise Failure(Exit.USAGE, f"--json = {str(json_file)!r}: there is no such directory")
    try:
        report = bench(plan, _progress(output), output.note, lambda result: _show(output, result))
    except BenchError as error:
        raise Failure(Exit.REFUSED, f"not measured: {error}") from error
    _show_surroundings(output, report)
    if json_file is not None:
        write_json(report, json_file)
    failed = [result.workload for result in report.results if not result.passed]
    if failed:
        raise Failure(Exit.REFUSED, f"deliveries were lost, repeated or early: {', '.join(failed)}")


def _known(workloads: list[str]) -> list[str]:
    from tocsin.bench.workloads import WORKLOADS

    for name in workloads:
        if name not in WORKLOADS:
            raise Failure(
                Exit.USAGE, f"there is no workload {name!r}", f"there are {', '.join(WORKLOADS)}"
            )
    return workloads


def _show(output: Output, result: "Result") -> None:
    from tocsin.bench.report import histogram, table, title, typical

    output.say(title(result), "bold")
    output.table(*table(result))
    lateness = typical(result).lateness_ms
    if lateness is not None:
        output.say("Lateness, receipt − due:")
        for line in histogram(lateness):
            output.say(line)
        output.say("")


def _show_surroundings(output: Output, report: "Report") -> None:
    from tocsin.bench.report import environment

    output.pairs(environment(report))


def _progress(output: Output) -> "Progress":
    @contextmanager
    def task(what: str, total: int) -> Iterator[Callable[[int], None]]:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        # A redraw takes time from those who are measured.
        with Bars(*columns, console=output.err, transient=True, refresh_per_second=2) as bars:
            shown = bars.add_task(what, total=total)
            yield lambda done: bars.update(shown, completed=done)

    return task
