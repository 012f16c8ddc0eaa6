"""ls, show, upcoming: what is armed now, asked of the workers that own it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import session

if TYPE_CHECKING:
    from tocsin.client import Detail, Listed

#: What an owner gives at once.
_LIMIT_MAX = 1_000


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("ls")(list_reminders)
    app.command()(show)
    app.command()(upcoming)


def list_reminders(
    ctx: typer.Context,
    actor: Annotated[str, typer.Argument(metavar="ACTOR", help="Whose reminders: order/4711")],
) -> None:
    """List what an actor has armed, by name.

    For example:

      tocsin ls order/4711

      tocsin ls order/4711 --json | jq .due
    """
    run = session(ctx)
    with run.client() as client:
        found = client.owners.reminders(run.name(actor))
    if run.json:
        for one in found:
            run.output.emit(_listed(one))
    elif found:
        run.output.table(
            ("reminder", "due", "schedule", "occurrence", "version", "paused"),
            [(*_row(one)[1:], _paused(one)) for one in found],
        )
    else:
        run.output.note("nothing is armed")


def show(
    ctx: typer.Context,
    actor: Annotated[str, typer.Argument(metavar="ACTOR", help="Whose reminder: order/4711")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name: pay")],
) -> None:
    """Show one armed reminder with its payload and headers. Exit code 1 when it is not armed.

    For example:

      tocsin show order/4711 pay
    """
    from tocsin.cli.documents import header_fields, options_document, payload_fields
    from tocsin.cli.safe import safe
    from tocsin.cli.sentences import instant, option, preview, schedule

    run = session(ctx)
    whose, wanted = run.name(actor), run.name(name)
    with run.client() as client:
        found = client.owners.reminder(whose, wanted)
    if found is None:
        failure = Failure(
            Exit.REFUSED,
            f"{safe(whose)} has no reminder {safe(wanted)} armed",
            "tocsin ls lists what is armed, tocsin history what became of it",
        )
        failure.document = {"error": "absent", "actor": whose, "reminder": wanted}
        raise failure
    if run.json:
        run.output.emit(_detail(found))
        return
    payload = payload_fields(found.payload, found.content_type)
    rows = [
        ("actor", safe(found.actor)),
        ("reminder", safe(found.reminder)),
        ("due", instant(found.due)),
        ("schedule", schedule(found.every, found.cron)),
        ("occurrence", str(found.occurrence)),
        ("first due", instant(found.anchor)),
        ("version", str(found.version)),
        ("payload", f"{preview(payload)}  ({len(found.payload)} bytes)"),
        ("content type", safe(found.content_type or "–")),
        ("to", safe(found.to or "–")),
    ]
    if found.wake is not None:
        rows.append(("goes out", instant(found.wake)))
    rows += [
        (name.replace("_", "-"), option(name, value))
        for name, value in options_document(found.options).items()
        if value is not None
    ]
    if found.paused_since is not None:
        rows.append(("paused", _paused(found)))
    if found.traceparent is not None:
        rows.append(("traceparent", safe(found.traceparent)))
    for header in header_fields(found.headers):
        header_name = str(header.pop("name"))
        rows.append(("header", f"{safe(header_name)} = {preview(header)}"))
    run.output.pairs(rows)


def upcoming(
    ctx: typer.Context,
    *,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=_LIMIT_MAX, metavar="N", help="How many.")
    ] = 20,
) -> None:
    """List what is due next, of all actors. Asks every worker.

    For example:

      tocsin upcoming --limit 5
    """
    run = session(ctx)
    with run.client() as client:
        found = client.owners.upcoming(limit)
    if run.json:
        for one in found:
            run.output.emit(_listed(one))
    elif found:
        run.output.table(
            ("actor", "reminder", "due", "schedule", "occurrence", "version"),
            [_row(one) for one in found],
        )
    else:
        run.output.note("nothing is armed")


def _row(one: "Listed") -> tuple[str, ...]:
    from tocsin.cli.safe import safe
    from tocsin.cli.sentences import instant, schedule

    return (
        safe(one.actor),
        safe(one.reminder),
        instant(one.due),
        schedule(one.every, one.cron),
        str(one.occurrence),
        str(one.version),
    )


def _paused(one: "Listed") -> str:
    from tocsin.cli.safe import safe
    from tocsin.cli.sentences import instant

    if one.paused_since is None:
        return "–"
    note = "" if one.note is None else f" ({safe(one.note)})"
    return f"since {instant(one.paused_since)}{note}"


def _listed(one: "Listed") -> dict[str, Any]:
    from tocsin.cli.documents import cron_document

    return {
        "actor": one.actor,
        "reminder": one.reminder,
        "version": one.version,
        "due": one.due,
        "every": one.every,
        **cron_document(one.cron),
        "occurrence": one.occurrence,
        "paused_since": one.paused_since,
        "note": one.note,
        "content_type": one.content_type,
        "to": one.to,
    }


def _detail(one: "Detail") -> dict[str, Any]:
    from tocsin.cli.documents import header_fields, options_document, payload_fields

    return {
        **_listed(one),
        "first_due": one.anchor,
        "wake": one.wake,
        **options_document(one.options),
        **payload_fields(one.payload, one.content_type),
        "headers": header_fields(one.headers),
        "traceparent": one.traceparent,
    }
