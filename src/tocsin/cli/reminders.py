"""arm, move, cancel, fire, pause, resume, destroy: each waits for the answer and shows it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.client import Answer, Client, Handle

_WHEN = "When"
_LATE = "When it is late"
_WHAT = "What"
_CONDITIONS = "Conditions"
_ANSWER = "Answer"

Actor = Annotated[str, typer.Argument(metavar="ACTOR", help="Whoever is reminded: order/4711")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the reminder: pay, or pay:second-notice")
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="INSTANT",
        help="Due then: 2027-03-01T09:00+01:00, or milliseconds since the epoch.",
        rich_help_panel=_WHEN,
    ),
]
In = Annotated[
    str | None,
    typer.Option(
        "--in",
        "--after",
        metavar="DURATION",
        help="Due after that: 90s, 36h, 1w, P1DT12H. Counted by the broker's clock.",
        rich_help_panel=_WHEN,
    ),
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every", metavar="DURATION", help="Again and again: 15m.", rich_help_panel=_WHEN
    ),
]
Cron = Annotated[
    str | None,
    typer.Option(
        "--cron",
        metavar="TEXT",
        help="By the calendar: '0 9 * * MON-FRI', @daily. See tocsin schedule preview.",
        rich_help_panel=_WHEN,
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--zone", metavar="ZONE", help="IANA zone of the cron, else UTC.", rich_help_panel=_WHEN
    ),
]
Gap = Annotated[
    str | None,
    typer.Option(
        "--gap",
        metavar="POLICY",
        help="Local times that do not exist: after or skip.",
        rich_help_panel=_WHEN,
    ),
]
Overlap = Annotated[
    str | None,
    typer.Option(
        "--overlap",
        metavar="POLICY",
        help="Local times that come twice: first, second or both.",
        rich_help_panel=_WHEN,
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="DATE",
        help="Local date without slots. May be repeated.",
        rich_help_panel=_WHEN,
    ),
]
IfVersion = Annotated[
    int | None,
    typer.Option(
        "--if-version",
        metavar="VERSION",
        help="Only while this version is armed.",
        rich_help_panel=_CONDITIONS,
    ),
]
NoWait = Annotated[
    bool,
    typer.Option(
        "--no-wait",
        help="Be done once the brokers have the command; whether it was refused stays open.",
        rich_help_panel=_ANSWER,
    ),
]
Timeout = Annotated[
    str,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="Longest wait for the answer.",
        rich_help_panel=_ANSWER,
    ),
]
DEFAULT_TIMEOUT = "10s"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(arm)
    app.command()(move)
    app.command()(cancel)
    app.command()(fire)
    app.command()(pause)
    app.command()(resume)
    app.command()(destroy)


def arm(  # noqa: PLR0913  one parameter for each option
    ctx: typer.Context,
    actor: Actor,
    name: Name,
    *,
    after: In = None,
    at: At = None,
    every: Every = None,
    cron: Cron = None,
    zone: Zone = None,
    gap: Gap = None,
    overlap: Overlap = None,
    exclude: Exclude = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT", help="The last instant of the schedule.", rich_help_panel=_WHEN
        ),
    ] = None,
    occurrences: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="The schedule ends after so many.", rich_help_panel=_WHEN
        ),
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Spread fires over so long.", rich_help_panel=_WHEN),
    ] = None,
    missed: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="What goes out of slots that were missed: latest, all or skip.",
            rich_help_panel=_LATE,
        ),
    ] = None,
    catch_up: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="How far back that policy looks.", rich_help_panel=_LATE
        ),
    ] = None,
    ttl: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="What is later than that is not fired.",
            rich_help_panel=_LATE,
        ),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|@FILE|-",
            help="Delivered as it is: text, the bytes of a file, or of standard input.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    json_payload: Annotated[
        str | None,
        typer.Option(
            metavar="JSON|@FILE|-",
            help="Delivered as compact JSON with its content type.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    content_type: Annotated[
        str | None, typer.Option(metavar="TEXT", rich_help_panel=_WHAT, help="Of the payload.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Goes along with each delivery. May be repeated.",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC", help="Deliver to this topic, if allowed.", rich_help_panel=_WHAT
        ),
    ] = None,
    if_absent: Annotated[
        bool,
        typer.Option(
            "--if-absent",
            help="Only while nothing is armed under the name.",
            rich_help_panel=_CONDITIONS,
        ),
    ] = False,
    if_version: IfVersion = None,
    if_earlier: Annotated[
        bool,
        typer.Option(
            "--if-earlier",
            help="Only if the new due is earlier than the armed one: one alarm for a queue.",
            rich_help_panel=_CONDITIONS,
        ),
    ] = False,
    if_changed: Annotated[
        bool,
        typer.Option(
            "--if-changed",
            help="Only if schedule, payload or options differ: for start-up code.",
            rich_help_panel=_CONDITIONS,
        ),
    ] = False,
    no_wait: NoWait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Arm a reminder, or replace the one of that name.

    Without --in, --at, --every and --cron it is due now.

    For example:

      tocsin arm order/4711 pay --in 36h --payload 'please pay'

      tocsin arm order/4711 pay:second --at 2027-03-01T09:00+01:00 --json-payload @notice.json

      tocsin arm sensor/7 poll --every 15m --if-absent

      tocsin arm sensor/7 report --every 1d --missed skip --jitter 10m

      tocsin arm office/1 report --cron '0 2 * * *' --zone Europe/Berlin
    """
    run = session(ctx)
    payload_given, type_given = _payload(payload, json_payload)
    options: dict[str, Any] = {
        "after": after,
        "at": at,
        "every": every,
        "cron": cron,
        "zone": zone,
        "gap": gap,
        "overlap": overlap,
        "exclude": exclude,
        "until": until,
        "occurrences": occurrences,
        "jitter": jitter,
        "missed": missed,
        "catch_up": catch_up,
        "ttl": ttl,
        "payload": payload_given,
        "content_type": content_type if content_type is not None else type_given,
        "headers": [_header(text) for text in header or []],
        "to": to,
        "if_absent": if_absent,
        "if_version": if_version,
        "if_earlier": if_earlier,
        "if_changed": if_changed,
    }
    _ask(
        run,
        lambda client, wait: client.arm(run.name(actor), run.name(name), wait=wait, **options),
        _wait(no_wait, timeout),
    )


def move(  # noqa: PLR0913  one parameter for each option
    ctx: typer.Context,
    actor: Actor,
    name: Name,
    *,
    after: In = None,
    at: At = None,
    every: Every = None,
    cron: Cron = None,
    zone: Zone = None,
    gap: Gap = None,
    overlap: Overlap = None,
    exclude: Exclude = None,
    if_version: IfVersion = None,
    no_wait: NoWait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Change when an armed reminder is due. Payload and all else stay.

    For example:

      tocsin move order/4711 pay --in 2d

      tocsin move sensor/7 poll --every 1h --if-version 1042
    """
    run = session(ctx)
    _ask(
        run,
        lambda client, wait: client.move(
            run.name(actor),
            run.name(name),
            wait=wait,
            after=after,
            at=at,
            every=every,
            cron=cron,
            zone=zone,
            gap=gap,
            overlap=overlap,
            exclude=exclude,
            if_version=if_version,
        ),
        _wait(no_wait, timeout),
    )


def cancel(  # noqa: PLR0913  one parameter for each option
    ctx: typer.Context,
    actor: Actor,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its exact name.")] = None,
    *,
    operation: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="All of this operation, with and without a key."),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="All under it: names that go on at a `:` or `/`."),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="With --prefix: whatever begins with these letters.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All reminders of the actor.")] = False,
    if_version: IfVersion = None,
    no_wait: NoWait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Disarm a reminder, or several of an actor. It is no error when nothing is armed.

    For example:

      tocsin cancel order/4711 pay

      tocsin cancel order/4711 --operation pay

      tocsin cancel order/4711 --all
    """
    given = (name is not None, operation is not None, prefix is not None, everything)
    if sum(given) != 1:
        raise typer.BadParameter("give one of NAME, --operation, --prefix, --all")
    run = session(ctx)
    _ask(
        run,
        lambda client, wait: client.cancel(
            run.name(actor),
            None if name is None else run.name(name),
            operation=None if operation is None else run.name(operation),
            prefix=None if prefix is None else run.name(prefix),
            raw=raw,
            all=everything,
            if_version=if_version,
            wait=wait,
        ),
        _wait(no_wait, timeout),
    )


def fire(
    ctx: typer.Context,
    actor: Actor,
    name: Name,
    *,
    no_wait: NoWait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Deliver an armed reminder now. Its schedule stays; a one-shot is done.

    For example:

      tocsin fire order/4711 pay
    """
    run = session(ctx)
    _ask(
        run,
        lambda client, wait: client.fire(run.name(actor), run.name(name), wait=wait),
        _wait(no_wait, timeout),
    )


def pause(
    ctx: typer.Context,
    actor: Actor,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its exact name.")] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Each reminder that the actor has now.")
    ] = False,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why; shown by ls and history.")
    ] = None,
    no_wait: NoWait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """Let a reminder rest, or all of an actor: it has no due until it is resumed.

    For example:

      tocsin pause sensor/7 poll --note 'being repaired'

      tocsin pause sensor/7 --all
    """
    if everything == (name is not None):
        raise typer.BadParameter("give a NAME, or --all for every reminder of the actor")
    run = session(ctx)
    _ask(
        run,
        lambda client, wait: client.pause(
            run.name(actor),
            None if name is None else run.name(name),
            all=everything,
            note=note,
            wait=wait,
        ),
        _wait(no_wait, timeout),
    )


def resume(
    ctx: typer.Context,
    actor: Actor,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its exact name.")] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Each paused reminder of the actor.")
    ] = False,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; shown by history.")] = None,
    no_wait: NoWait = False,
    timeout: Timeout = DEFAULT_TIMEOUT,
) -> None:
    """End a pause. What went by meanwhile is for the missed policy to decide.

    For example:

      tocsin resume sensor/7 poll
    """
    if everything == (name is not None):
        raise typer.BadParameter("give a NAME, or --all for every reminder of the actor")
    run = session(ctx)
    _ask(
        run,
        lambda client, wait: client.resume(
            run.name(actor),
            None if name is None else run.name(name),
            all=everything,
            note=note,
            wait=wait,
        ),
        _wait(no_wait, timeout),
    )


def destroy(
    ctx: typer.Context, actor: Actor, *, no_wait: NoWait = False, timeout: Timeout = DEFAULT_TIMEOUT
) -> None:
    """End an actor: everything it has goes, in one decision.

    For example:

      tocsin destroy order/4711
    """
    run = session(ctx)
    _ask(
        run,
        lambda client, wait: client.destroy(run.name(actor), wait=wait),
        _wait(no_wait, timeout),
    )


def _ask(
    run: Session, ask: Callable[["Client", bool | float], "Answer | Handle"], wait: bool | float
) -> None:
    from tocsin.cli.documents import answer_document, handle_document
    from tocsin.cli.safe import safe
    from tocsin.cli.sentences import sentence
    from tocsin.client import Answer

    with run.client() as client:
        told = ask(client, wait)
    if isinstance(told, Answer):
        if run.json:
            run.output.emit(answer_document(told))
        else:
            run.output.say(f"{safe(told.handle.actor)}: {sentence(told.event)}")
    elif run.json:
        run.output.emit(handle_document(told))
    else:
        run.output.say(
            f"{safe(told.actor)}: in the log, partition {told.partition}, version {told.version};"
            " not answered yet"
        )


def _wait(no_wait: bool, timeout: str) -> bool | float:
    from tocsin.core.time_text import parse_duration

    return False if no_wait else parse_duration(timeout) / 1000


def _payload(payload: str | None, json_payload: str | None) -> tuple[object, str | None]:
    """Return the payload and the content type that goes with it."""
    if json_payload is None:
        return (None if payload is None else _content("--payload", payload)), None
    if payload is not None:
        raise typer.BadParameter("give --payload or --json-payload, not both")
    from tocsin.client.arguments import JSON_CONTENT_TYPE

    text = _content("--json-payload", json_payload)
    return _compact(text), JSON_CONTENT_TYPE


def _content(option: str, given: str) -> bytes:
    """Return the bytes that TEXT, @FILE or - stand for."""
    import sys
    from pathlib import Path

    if given == "-":
        return sys.stdin.buffer.read()
    if given.startswith("@"):
        try:
            return Path(given[1:]).read_bytes()
        except OSError as error:
            raise Failure(
                Exit.USAGE,
                f"{option} {given}: cannot be read ({error.strerror})",
                "name a file that can be; for a text that begins with @ use `-` and standard input",
            ) from error
    return given.encode(errors="surrogateescape")


def _compact(text: bytes) -> bytes:
    import json

    import msgspec

    def finite(word: str) -> float:
        raise ValueError(f"{word} is no JSON")

    try:
        json.loads(text, parse_constant=finite)
        # Blanks go, the rest stays as it was written: 1.10 is not 1.1.
        return msgspec.json.format(text, indent=-1)
    except (ValueError, RecursionError) as error:
        raise Failure(
            Exit.USAGE,
            f"--json-payload is no JSON: {error}",
            "give a JSON value such as '{\"amount\": 12}', or use --payload for plain text",
        ) from error


def _header(given: str) -> tuple[str, bytes]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--header {given!r}: write NAME=VALUE")
    return name, value.encode(errors="surrogateescape")
