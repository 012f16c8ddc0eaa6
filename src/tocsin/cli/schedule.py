"""`tocsin schedule`: what a schedule means, before anything is armed with it."""

from enum import StrEnum
from typing import Annotated, TypeVar

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import session

E = TypeVar("E", bound=StrEnum)

#: What is said of a slot that daylight saving touched.
_REMARKS = {
    "normal": "",
    "gap": "moved: this local time does not exist that day",
    "overlap": "this local time comes twice that day",
}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    schedule = typer.Typer(
        help="What a schedule means, before anything is armed with it.", no_args_is_help=True
    )
    schedule.callback()(_group)
    schedule.command()(preview)
    app.add_typer(schedule, name="schedule")


def _group() -> None:
    """What a schedule means, before anything is armed with it."""


def preview(
    ctx: typer.Context,
    schedule: Annotated[str, typer.Argument(help="A cron text, 15m, @every 1h30m or R5/PT10S.")],
    *,
    zone: Annotated[str, typer.Option(help="IANA zone of a cron.")] = "UTC",
    gap: Annotated[str, typer.Option(help="Local times that do not exist: after or skip.")] = (
        "after"
    ),
    overlap: Annotated[
        str, typer.Option(help="Local times that come twice: first, second or both.")
    ] = "first",
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="DATE", help="Local date without slots; repeatable.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many slots.")] = 10,
    start: Annotated[
        str | None, typer.Option("--from", metavar="INSTANT", help="Slots after this; else now.")
    ] = None,
) -> None:
    """Show the next slots of a schedule, and which of them daylight saving touches.

    For example:

      tocsin schedule preview "0 2 * * *" --zone Europe/Berlin --count 10

      tocsin schedule preview "30 2 * * SUN" --zone Europe/Berlin --from 2027-03-20T00:00Z
    """
    from tocsin.adapters.clock import SystemClock
    from tocsin.core.errors import Refusal
    from tocsin.core.schedule.preview import preview as slots_of
    from tocsin.core.schedule.schedule_text import parse_schedule
    from tocsin.core.schedule.values import Gap, Overlap
    from tocsin.core.time_text import TimeTextError, format_instant, parse_instant
    from tocsin.core.values import EpochMs

    run = session(ctx)
    try:
        after = SystemClock().wall_ms() if start is None else EpochMs(parse_instant(start))
        meant = parse_schedule(
            schedule,
            zone=zone,
            gap=_one_of(Gap, "gap", gap),
            overlap=_one_of(Overlap, "overlap", overlap),
            exclude=exclude or (),
        )
    except (Refusal, TimeTextError) as error:
        raise Failure(Exit.USAGE, str(error)) from error
    slots = slots_of(meant, after, count)
    if run.json:
        for slot in slots:
            run.output.emit(
                {
                    "occurrence": slot.occurrence,
                    "due": slot.due,
                    "local": slot.local,
                    "mark": slot.mark.value,
                }
            )
        return
    run.output.table(
        ("", "local", "UTC", "daylight saving"),
        [
            (str(slot.occurrence), slot.local, format_instant(slot.due), _REMARKS[slot.mark.value])
            for slot in slots
        ],
    )


def _one_of(kind: type[E], option: str, value: str) -> E:
    try:
        return kind(value)
    except ValueError:
        forms = ", ".join(one.value for one in kind)
        raise Failure(Exit.USAGE, f"--{option} {value!r}: give one of {forms}") from None
