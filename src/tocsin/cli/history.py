"""history ACTOR: what happened to an actor, from a scan of its partition of the audit log."""

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from collections import deque

    from tocsin.client import LoggedEvent, Reader

#: Longest time, and most events, between two moves of the bar.
_STEP_S = 0.2
_EVENTS = 500


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(history)


def history(
    ctx: typer.Context,
    actor: Annotated[str, typer.Argument(metavar="ACTOR", help="Whose history: order/4711")],
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of this reminder alone.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="The newest N alone.")
    ] = None,
) -> None:
    """Show everything that was decided about an actor, oldest first.

    Reads the actor's partition of the audit log from its beginning.

    For example:

      tocsin history order/4711

      tocsin history order/4711 --name pay --json
    """
    from collections import deque

    from tocsin.cli.documents import event_document
    from tocsin.cli.sentences import event_line

    run = session(ctx)
    whose, reminder = run.name(actor), None if name is None else run.name(name)
    found: deque[LoggedEvent] = deque(maxlen=limit)
    with run.client() as client, client.events(whose, from_beginning=True, to_end=True) as reader:
        _scan(run, reader, reminder, found)
    for one in found:
        if run.json:
            run.output.emit(event_document(one))
        else:
            run.output.say(event_line(one))
    if not found:
        run.output.note("nothing was ever decided about it")


def _scan(
    run: Session, reader: "Reader[LoggedEvent]", reminder: str | None, found: "deque[LoggedEvent]"
) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("reading the audit log"),
        BarColumn(),
        MofNCompleteColumn(),
        console=run.output.err,
        transient=True,
        disable=not run.output.err.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=None)
        while not reader.finished():
            one = reader.poll(_STEP_S)
            if one is not None and (reminder is None or _about(one) == reminder):
                found.append(one)
            if one is None or reader.count % _EVENTS == 0:
                done, total = reader.progress()
                bar.update(task, completed=done, total=total)


def _about(one: "LoggedEvent") -> str | None:
    from tocsin.core.events import name_of

    return name_of(one.event)
