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
    Completed,
    Completion,
    Destroyed,
    Event,
    Expired,
    Fired,
    Kept,
    Kind,
    Moved,
    NothingCancelled,
    NothingResumed,
    PassedOver,
    Paused,
    Refused,
    Resumed,
    Skipped,
    Unchanged,
    Undeliverable,
)
from tocsin.core.reminder import Missed, Options
from tocsin.core.schedule.values import Cron, Gap, Overlap
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
            said += _schedule(spec.every, spec.cron) + _options(spec.options)
            if previous is not None:
                word = "replaces" if replaced else "again, as"
                said += f"; {word} version {previous.version}, due {instant(previous.due)}"
            return said
        case Moved():
            return (
                f"moved {safe(event.reminder)}, version {event.version}, due"
                f" {instant(event.anchor)}{_schedule(event.every, event.cron)}; was version"
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
        case Skipped():
            return f"skipped {_slots(event)}: {_PASSED_OVER[event.reason]}{_next(event)}"
        case Expired():
            return f"expired {_slots(event)}: not fired within {duration(event.ttl)}{_next(event)}"
        case Completed():
            return (
                f"completed {safe(event.reminder)}, version {event.version}, after"
                f" {event.occurrences} occurrences: {_COMPLETION[event.reason]}"
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


_PASSED_OVER = {
    PassedOver.CATCH_UP: "further back than the catch-up window",
    PassedOver.POLICY: "the missed policy is skip",
}
_COMPLETION = {
    Completion.UNTIL: "the next one lies after its last instant",
    Completion.OCCURRENCES: "that is as many as were asked for",
    Completion.TIME: "the next one lies after the year 9999",
}


def _slots(event: Skipped | Expired) -> str:
    said = f"{safe(event.reminder)}, version {event.version}, "
    if event.first == event.last:
        return said + f"occurrence {event.first}, due {instant(event.first_due)}"
    return said + (
        f"occurrences {event.first} to {event.last}, due {instant(event.first_due)} to"
        f" {instant(event.last_due)}"
    )


def _next(event: Fired | Skipped | Expired) -> str:
    if event.next_due is None:
        return "; done"
    due = event.next_due if event.next_wake is None else event.next_wake
    return f"; next {instant(due)}"


def _options(options: Options | None) -> str:
    if options is None:
        return ""
    asked = [f"missed {options.missed}"] if options.missed is not Missed.LATEST else []
    for word, length in (
        ("catch-up", options.catch_up),
        ("ttl", options.ttl),
        ("jitter", options.jitter or None),
    ):
        if length is not None:
            asked.append(f"{word} {duration(length)}")
    if options.until is not None:
        asked.append(f"until {instant(options.until)}")
    if options.occurrences is not None:
        asked.append(f"{options.occurrences} occurrences")
    return "".join(f", {word}" for word in asked)


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


def option(name: str, value: str | int) -> str:
    """Return an option of `documents.options_document`."""
    if name == "until" and isinstance(value, int):
        return instant(value)
    return duration(value) if name in _LENGTHS and isinstance(value, int) else str(value)


_LENGTHS = frozenset({"catch_up", "ttl", "jitter"})


def lateness(ms: int) -> str:
    """Return how late, in as many digits as matter."""
    return f"{ms} ms" if ms < 10 * _SECOND_MS else duration(ms - ms % _SECOND_MS)


def preview(fields: Mapping[str, object]) -> str:
    """Return a payload of `documents.payload_fields`, cut."""
    (value,) = fields.values()
    return shown(value)


def schedule(every: int | None, cron: Cron | None) -> str:
    """Return when it is due again; `–` for a one-shot."""
    if cron is None:
        return duration(every)
    said = f"{safe(cron.text)} {safe(cron.zone)}"
    if cron.gap is not Gap.AFTER:
        said += f", gap {cron.gap}"
    if cron.overlap is not Overlap.FIRST:
        said += f", overlap {cron.overlap}"
    return said + (f", but for {len(cron.exclude)} dates" if cron.exclude else "")


def _schedule(every: DurationMs | None, cron: Cron | None) -> str:
    if cron is not None:
        return f", cron {schedule(every, cron)}"
    return "" if every is None else f", every {duration(every)}"


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
    return said + _next(fired)


def event_line(logged: LoggedEvent) -> str:
    """Return an event of the log: when, whose, what."""
    who = safe(logged.actor) if logged.actor is not None else f"key {shown(logged.key)}"
    because = f"  [command {logged.stamp.command}]" if logged.stamp.command is not None else ""
    return f"{instant(logged.stamp.engine_time)}  {who}  {sentence(logged.event)}{because}"
