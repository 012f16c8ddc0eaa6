"""The state of one armed reminder: what was asked (Spec) and how far it has come.

The two parts change at different paces. A fire of a recurring reminder keeps the very same Spec
object, so that its payload is not written to the log again.
"""

from enum import StrEnum

from msgspec import Struct

from tocsin.core.schedule.values import Cron
from tocsin.core.values import DurationMs, EpochMs, Header, Version


class Missed(StrEnum):
    """What goes out of slots that were missed. The values are on the wire: add, never rename."""

    #: One delivery, for the newest.
    LATEST = "latest"
    #: Each one, in order.
    ALL = "all"
    #: None of them.
    SKIP = "skip"


class Options(Struct, frozen=True, kw_only=True):
    """What few reminders ask for beside their schedule; apart, so that the others do not pay."""

    missed: Missed = Missed.LATEST
    #: How far back any policy looks; None: without end for one-shots, a year for schedules.
    catch_up: DurationMs | None = None
    #: Time to live of an occurrence, counted from its due.
    ttl: DurationMs | None = None
    #: Last instant at which an occurrence may be due.
    until: EpochMs | None = None
    #: Number of occurrences, of each version.
    occurrences: int | None = None
    #: Longest delay of a fire after its due; 0 is none.
    jitter: DurationMs = DurationMs(0)


#: Stands for a delay where the first slot of a cron was asked for.
FIRST_SLOT = DurationMs(-1)


class Spec(Struct, frozen=True, kw_only=True):
    """What the last Arm or Move asked for, every default resolved."""

    reminder: str
    version: Version
    #: Due of occurrence 0. Occurrence k of an interval is due at anchor + k * every, for ever.
    anchor: EpochMs
    #: Period of an interval; without it and cron it is a one-shot.
    every: DurationMs | None
    payload: bytes
    content_type: str | None
    headers: tuple[Header, ...]
    #: Target topic; None is the default delivery topic.
    to: str | None
    traceparent: str | None
    #: Delay that was asked for; without a due, that of the first slot; FIRST_SLOT: the first slot
    #: of a cron. None: an instant was.
    after: DurationMs | None = None
    #: Instant that was asked for, where it was past then, so that it is not the anchor.
    at: EpochMs | None = None
    #: None: all defaults.
    options: Options | None = None
    #: Slots by a calendar, from the second occurrence on; the first is due at the anchor.
    cron: Cron | None = None


class PauseInForce(Struct, frozen=True):
    """Since when, and why, a reminder rests."""

    since: EpochMs
    note: str | None


class Reminder(Struct, frozen=True):
    """One armed reminder."""

    spec: Spec
    #: Occurrence that goes out next.
    occurrence: int
    #: When that occurrence is due, and was to go out were it not for a pause.
    due: EpochMs
    #: None: it is awake.
    paused: PauseInForce | None = None
    #: When that occurrence goes out, delayed by jitter; None: when it is due.
    wake: EpochMs | None = None


def is_recurring(spec: Spec) -> bool:
    """Return whether more than one occurrence may be due."""
    return spec.every is not None or spec.cron is not None


def next_due(reminder: Reminder) -> EpochMs | None:
    """Return the instant at which the engine has to look at `reminder` again; None: never."""
    if reminder.paused is not None:
        return None
    return reminder.due if reminder.wake is None else reminder.wake
