"""Events as sentences for people. Pure; names of others are made safe here."""

from collections.abc import Mapping
from typing import assert_never

from tocsin.cli.safe import safe
from tocsin.client import LoggedEvent
from tocsin.core.errors import shown
from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Destroyed,
    Event,
    Fired,
    Kept,
    Kind,
    Moved,
    NothingCancelled,
    NothingResumed,
    Paused,
    Refused,
    Resumed,
    Unchanged,
    Undeliverable,
)
from tocsin.core.time_text import TimeTextError, format_duration, format_instant
from tocsin.core.values import DurationMs

_SECOND_MS = 1_000


def sentence(event: Event) -> str:
    """Return what happened, in one line."""
    match event:
        case Armed(spec=spec, previous=previous, replaced=replaced):
            said = (
                f"armed {safe(spec.reminder)}, version {spec.version}, due {instant(spec.anchor)}"
            )
            said += _every(spec.every)
            if previous is not None:
                word = "replaces" if replaced else "again, as"
                said += f"; {word} version {previous.version}, due {instant(previous.due)}"
            return said
        case Moved():
            return (
                f"moved {safe(event.reminder)}, version {event.version}, due"
                f" {instant(event.anchor)}{_every(event.every)}; was version"
                f" {event.previous.version}, due {instant(event.previous.due)}"
            )
        case Cancelled():
            return (
                f"cancelled {safe(event.reminder)}, version {event.version}, occurrence"
                f" {event.occurrence}, due {instant(event.due)}"
            )
        case Kept():
            return (
                f"kept {safe(event.reminder)}, version {event.version}, due {instant(event.due)}:"
                f" {_UNCHANGED[event.reason]}"
            )
        case Paused():
            return (
                f"paused {safe(event.reminder)}, version {event.version}, since"
                f" {instant(event.since)}{_note(event.note)}; occurrence {event.occurrence}, due"
                f" {instant(event.due)}, waits"
            )
        case Resumed():
            return (
                f"resumed {safe(event.reminder)}, version {event.version}, paused since"
                f" {instant(event.since)}{_note(event.note)}; occurrence {event.occurrence}, due"
                f" {instant(event.due)}"
            )
        case NothingResumed(reminder=name):
            what = "the actor has nothing paused" if name is None else f"{safe(name)} is awake"
            return f"nothing to resume: {what}"
        case NothingCancelled():
            return f"nothing to cancel: {_nothing(event)}"
        case Fired():
            return _fired(event)
        case Undeliverable(fired=fired, target=target, error=error):
            return f"undeliverable to {safe(target)} ({error}): {_fired(fired)}"
        case Destroyed():
            return f"destroyed, with {event.reminders} reminders"
        case Refused():
            command = event.command or "an unreadable command"
            about = f" {safe(event.reminder)}" if event.reminder is not None else ""
            return (
                f"refused {command}{about} ({event.reason}): {event.field} = {event.value}:"
                f" {event.way_out}"
            )
        case CommandsLost():
            return f"commands {event.first} to {event.last} were lost before they could be read"
        case _:
            assert_never(event)


_UNCHANGED = {
    Unchanged.SAME: "schedule, payload and options are the same",
    Unchanged.NOT_EARLIER: "the new due is not earlier",
}


def _nothing(event: NothingCancelled) -> str:
    if event.reminder is not None:
        return f"{safe(event.reminder)} is not armed"
    if event.operation is not None:
        return f"the actor has no reminder of operation {safe(event.operation)}"
    if event.prefix is not None:
        word = "that begins with" if event.raw else "under"
        return f"the actor has no reminder {word} {safe(event.prefix)}"
    return "the actor has no reminder"


def _note(note: str | None) -> str:
    return "" if note is None else f" ({safe(note)})"


def instant(ms: int | None) -> str:
    """Return an instant as ISO 8601 in UTC; `–` without one."""
    if ms is None:
        return "–"
    try:
        return format_instant(ms)
    except TimeTextError:
        return f"{ms} ms"


def duration(ms: int | None) -> str:
    """Return a length of time; `–` without one."""
    if ms is None:
        return "–"
    try:
        return format_duration(ms)
    except TimeTextError:
        return f"{ms} ms"


def lateness(ms: int) -> str:
    """Return how late, in as many digits as matter."""
    return f"{ms} ms" if ms < 10 * _SECOND_MS else duration(ms - ms % _SECOND_MS)


def preview(fields: Mapping[str, object]) -> str:
    """Return a payload of `documents.payload_fields`, cut."""
    (value,) = fields.values()
    return shown(value)


def _every(period: DurationMs | None) -> str:
    return "" if period is None else f", every {duration(period)}"


def _fired(fired: Fired) -> str:
    if fired.kind is Kind.MANUAL:
        said = f"fired {safe(fired.reminder)} by hand, version {fired.version}"
    else:
        said = (
            f"fired {safe(fired.reminder)}, version {fired.version}, occurrence {fired.occurrence},"
            f" due {instant(fired.due)}, {lateness(fired.fired - fired.due)} late"
        )
    if fired.missed:
        said += f"; {fired.missed} missed since {instant(fired.missed_due)}"
    return said + ("; done" if fired.next_due is None else f"; next {instant(fired.next_due)}")


def event_line(logged: LoggedEvent) -> str:
    """Return an event of the log: when, whose, what."""
    who = safe(logged.actor) if logged.actor is not None else f"key {shown(logged.key)}"
    because = f"  [command {logged.stamp.command}]" if logged.stamp.command is not None else ""
    return f"{instant(logged.stamp.engine_time)}  {who}  {sentence(logged.event)}{because}"
