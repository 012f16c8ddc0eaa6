"""The state of one armed reminder: what was asked (Spec) and how far it has come.

The two parts change at different paces. A fire of a recurring reminder keeps the very same Spec
object, so that its payload is not written to the log again.
"""

from msgspec import Struct

from tocsin.core.values import DurationMs, EpochMs, Header, Version


class Spec(Struct, frozen=True, kw_only=True):
    """What the last Arm or Move asked for, every default resolved."""

    reminder: str
    version: Version
    #: Due of occurrence 0. Occurrence k of an interval is due at anchor + k * every, for ever.
    anchor: EpochMs
    #: Period of an interval; None is a one-shot.
    every: DurationMs | None
    payload: bytes
    content_type: str | None
    headers: tuple[Header, ...]
    #: Target topic; None is the default delivery topic.
    to: str | None
    traceparent: str | None
    #: Delay that was asked for; without a due, that of the first slot. None: an instant was.
    after: DurationMs | None = None
    #: Instant that was asked for, where it was past then, so that it is not the anchor.
    at: EpochMs | None = None


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


def next_due(reminder: Reminder) -> EpochMs | None:
    """Return the instant at which the engine has to look at `reminder` again; None: never."""
    return reminder.due if reminder.paused is None else None
