"""tail deliveries | events | dead-letters: follow a topic, committed records only."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.client import Reader

T = TypeVar("T")

FromBeginning = Annotated[
    bool,
    typer.Option("--from-beginning", help="Start with the oldest record that is kept, not now."),
]
ToEnd = Annotated[
    bool, typer.Option("--to-end", help="Stop at the end as it is now, instead of following.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="Stop after N of them.")
]
Idle = Annotated[
    str | None,
    typer.Option("--idle", metavar="DURATION", help="Stop when nothing came for that long."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    tail = typer.Typer(no_args_is_help=True)
    tail.command()(deliveries)
    tail.command()(events)
    tail.command("dead-letters")(dead_letters)
    app.add_typer(
        tail, name="tail", help="Follow deliveries, events or dead letters as they are committed."
    )


def deliveries(
    ctx: typer.Context,
    *,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Another topic that reminders deliver to.")
    ] = None,
    actor: Annotated[
        str | None, typer.Option(metavar="ACTOR", help="Those to this actor alone.")
    ] = None,
    from_beginning: FromBeginning = False,
    to_end: ToEnd = False,
    limit: Limit = None,
    idle: Idle = None,
) -> None:
    """Show deliveries, each with its lateness: how long after its due it was fired.

    For example:

      tocsin tail deliveries

      tocsin tail deliveries --from-beginning --limit 10 --json
    """
    from tocsin.cli.documents import delivery_document, payload_fields
    from tocsin.cli.safe import safe
    from tocsin.cli.sentences import instant, lateness, preview
    from tocsin.client import Received

    run = session(ctx)
    wanted = None if actor is None else run.name(actor)

    def line(one: Received) -> str:
        missed = f"  {one.missed} missed" if one.missed else ""
        payload = preview(payload_fields(one.payload, one.content_type))
        return (
            f"{instant(one.fired)}  {safe(one.actor)}  {safe(one.reminder)}  {one.kind}"
            f"  {lateness(one.lateness_ms)} late{missed}  {one.id}  {payload}"
        )

    with run.client() as client:
        reader = client.deliveries(
            topic=topic, from_beginning=from_beginning, to_end=to_end, idle=_seconds(idle)
        )
        _follow(run, reader, limit, lambda d: wanted in (None, d.actor), delivery_document, line)


def events(
    ctx: typer.Context,
    *,
    actor: Annotated[
        str | None, typer.Option(metavar="ACTOR", help="Those of this actor alone.")
    ] = None,
    from_beginning: FromBeginning = False,
    to_end: ToEnd = False,
    limit: Limit = None,
    idle: Idle = None,
) -> None:
    """Show events: every decision of the engine, as it is written to the audit log.

    For example:

      tocsin tail events

      tocsin tail events --actor order/4711 --from-beginning --json
    """
    from tocsin.cli.documents import event_document
    from tocsin.cli.sentences import event_line

    run = session(ctx)
    with run.client() as client:
        reader = client.events(
            None if actor is None else run.name(actor),
            from_beginning=from_beginning,
            to_end=to_end,
            idle=_seconds(idle),
        )
        _follow(run, reader, limit, lambda _: True, event_document, event_line)


def dead_letters(
    ctx: typer.Context,
    *,
    from_beginning: FromBeginning = False,
    to_end: ToEnd = False,
    limit: Limit = None,
    idle: Idle = None,
) -> None:
    """Show dead letters: commands that nobody could read, deliveries that no broker takes.

    For example:

      tocsin tail dead-letters --from-beginning
    """
    from tocsin.cli.documents import letter_document
    from tocsin.cli.safe import printable
    from tocsin.cli.sentences import instant
    from tocsin.client import DeadLetter
    from tocsin.core.errors import shown

    run = session(ctx)

    def line(one: DeadLetter) -> str:
        about = one.source or one.target or ""
        return (
            f"{instant(one.appended)}  {one.reason}  {printable(about)}  key {shown(one.key)}"
            f"  {printable(one.error)}"
        )

    with run.client() as client:
        reader = client.dead_letters(
            from_beginning=from_beginning, to_end=to_end, idle=_seconds(idle)
        )
        _follow(run, reader, limit, lambda _: True, letter_document, line)


def _follow(
    run: Session,
    reader: "Reader[T]",
    limit: int | None,
    wanted: Callable[[T], bool],
    document: Callable[[T], dict[str, Any]],
    line: Callable[[T], str],
) -> None:
    shown = 0
    with reader:
        for one in reader:
            if not wanted(one):
                continue
            if run.json:
                run.output.emit(document(one))
            else:
                run.output.say(line(one))
            shown += 1
            if shown == limit:
                break
    if reader.unreadable:
        run.output.note(f"passed over {reader.unreadable} records that are none of Tocsin's")


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    from tocsin.core.time_text import parse_duration

    return parse_duration(duration) / 1000
