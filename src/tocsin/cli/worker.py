"""`tocsin worker`: runs the engine, in one process or several."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.exits import LEAVE_S_MAX, Exit, Failure
from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.bootstrap import Engine
    from tocsin.settings import Settings

_HELP = f"""Run the engine until SIGTERM or Ctrl-C.

Settings come from options, TOCSIN_* variables, and tocsin.toml; `--show-settings` prints them.
While no broker answers, a worker waits; it never ends for that.

Exit codes: {Exit.OK.value} asked to stop; {Exit.USAGE.value} settings that cannot be used;
{Exit.ENGINE.value} the engine refuses: topics missing, changed or not as it needs them, or
another worker has this group instance id; {Exit.STATE_DIR.value} the state directory cannot be
used, or another process uses it; {Exit.NO_ANSWER.value} asked to stop, and the broker did not
answer in time (nothing is lost); 1 a bug.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(help=_HELP)(worker)


def worker(  # noqa: PLR0913  one parameter for each option
    ctx: typer.Context,
    *,
    processes: Annotated[
        int,
        typer.Option(min=1, max=256, help="Worker processes; few partitions each fire sooner."),
    ] = 1,
    topology: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="A map of your own.")
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where this worker keeps its stores.")
    ] = None,
    listen_host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Where the read-only endpoint listens.")
    ] = None,
    listen_port: Annotated[
        int | None,
        typer.Option(metavar="PORT", help="0 is any free one; each process takes the next."),
    ] = None,
    advertised_address: Annotated[
        str | None,
        typer.Option(metavar="URL", help="What others are told; {port} stands for the port."),
    ] = None,
    show_settings: Annotated[
        bool, typer.Option("--show-settings", help="Print every setting and its origin, and end.")
    ] = False,
    until_stdin_closes: Annotated[bool, typer.Option(hidden=True)] = False,
    number: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Load the settings, then run."""
    from tocsin.logs import set_up_logs

    given = session(ctx)
    settings = _settings(
        given,
        topology=topology,
        state_dir=state_dir,
        listen_host=listen_host,
        listen_port=listen_port,
        advertised_address=advertised_address,
    )
    if show_settings:
        _show(given, settings)
        return
    bound = {} if number is None else {"process": number}
    set_up_logs(settings.log_level, "json" if given.json else settings.log_format, **bound)
    if processes > 1:
        from tocsin.cli.processes import run_processes

        raise typer.Exit(run_processes(settings, processes, file=given.config))
    raise typer.Exit(_run(settings, until_stdin_closes=until_stdin_closes))


def _settings(given: Session, **options: object) -> "Settings":
    from tocsin.settings import load_settings

    options |= {"bootstrap_servers": given.bootstrap_servers, "prefix": given.prefix}
    typed = {name: (f"--{name.replace('_', '-')}", value) for name, value in options.items()}
    return load_settings(typed, file=given.config)


def _show(given: Session, settings: "Settings") -> None:
    rows = settings.describe()
    if given.json:
        for row in rows:
            given.output.emit({"name": row.name, "value": row.value, "from": row.origin})
    else:
        given.output.table(
            ("setting", "value", "from"), [(row.name, row.value, row.origin) for row in rows]
        )


def _run(settings: "Settings", *, until_stdin_closes: bool) -> Exit:
    """Run one worker; the main thread stays free for signals."""
    engine = _engine(settings)
    asked, ended = Event(), Event()
    failures: list[Exception] = []

    def stop(*_: object) -> None:
        asked.set()
        engine.stop()

    def loop() -> None:
        try:
            engine.run()
        except Exception as error:  # noqa: BLE001  told by the main thread
            failures.append(error)
        finally:
            ended.set()
            asked.set()

    _spare_the_collector()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if until_stdin_closes:
        Thread(target=_watch_stdin, args=(stop,), daemon=True).start()
    Thread(target=loop, name="loop", daemon=True).start()
    asked.wait()
    if not ended.wait(LEAVE_S_MAX):
        raise Failure(
            Exit.NO_ANSWER,
            "the worker left without an answer of the broker",
            "nothing is lost: its partitions go to others once its session has ended",
        )
    if failures:
        raise _told(failures[0])
    return Exit.OK


def _spare_the_collector() -> None:
    """Look for garbage in cycles less often: a step makes thousands of values, and no cycle.

    Measured: 4 of 28 us of a fire, 3.5 of 33 of an arm (docs/performance.md).
    """
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _engine(settings: "Settings") -> "Engine":
    from tocsin.adapters.http.endpoint import CannotListen
    from tocsin.bootstrap import build_worker

    try:
        return build_worker(settings)
    except CannotListen as error:
        raise Failure(Exit.USAGE, str(error)) from error


def _told(error: Exception) -> Exception:
    """Return how `error` ends the command."""
    from tocsin.ports import Denied, MembershipLost, StoreUnusable
    from tocsin.runtime.recovery import CannotStart
    from tocsin.runtime.rejections import EngineTopicRefused

    match error:
        case CannotStart() | EngineTopicRefused() | Denied():
            return Failure(Exit.ENGINE, str(error))
        case MembershipLost():
            return Failure(
                Exit.ENGINE,
                f"no longer a member of the group: {error}",
                "does another worker have the same group_instance_id?",
            )
        case StoreUnusable():
            return Failure(Exit.STATE_DIR, str(error))
        case _:
            return error


def _watch_stdin(stop: Callable[[], None]) -> None:
    """Stop once whoever started this process is gone, killed or not."""
    # Not sys.stdin: its lock, held by a thread that waits, spoils the end of the process.
    while os.read(0, 1):
        pass
    stop()
