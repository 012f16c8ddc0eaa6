"""What was decided. Past tense, frozen; folding an actor's events gives its state exactly.

Every resolved value is in the event: a fold reads no clock and computes no recurrence.
"""

from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from tocsin.core.errors import Reason
from tocsin.core.reminder import Spec
from tocsin.core.schedule.values import Cron
from tocsin.core.values import DurationMs, EpochMs, Offset, Version


class Kind(StrEnum):
    """What made a delivery go out. The values are on the wire: add, never rename."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"


class Unchanged(StrEnum):
    """Why a command changed nothing. The values are on the wire: add, never rename."""

    #: `if_changed`: schedule, payload and options are the same as armed.
    SAME = "same"
    #: `if_earlier`: the new due is not before the armed one.
    NOT_EARLIER = "not_earlier"


class PassedOver(StrEnum):
    """Why slots were skipped. The values are on the wire: add, never rename."""

    #: They lie further back than the catch-up window.
    CATCH_UP = "catch_up"
    #: The missed policy is `skip`.
    POLICY = "policy"


class Completion(StrEnum):
    """Why a schedule has no further slot. The values are on the wire: add, never rename."""

    UNTIL = "until"
    OCCURRENCES = "occurrences"
    #: The next one would lie after the year 9999.
    TIME = "time"


class Ended(Struct, frozen=True, kw_only=True):
    """The occurrence that a new version put an end to."""

    version: Version
    occurrence: int
    due: EpochMs


class Armed(Struct, frozen=True, kw_only=True):
    """The reminder was created or replaced whole. Occurrence 0 is due at `spec.anchor`."""

    spec: Spec
    #: What the name stood for before; None where it was free.
    previous: Ended | None = None
    #: When occurrence 0 goes out, delayed by jitter; None: when it is due.
    wake: EpochMs | None = None
    #: Version of the tz database that computed a slot of a cron in this event; None: none was.
    tz: str | None = None
    #: The due changed: one alarm took another's place.
    replaced: bool = False


class Moved(Struct, frozen=True, kw_only=True):
    """The reminder has a new version with another due or schedule; all else stayed."""

    reminder: str
    version: Version
    anchor: EpochMs
    every: DurationMs | None
    previous: Ended
    #: As in the Spec.
    after: DurationMs | None = None
    at: EpochMs | None = None
    #: When occurrence 0 goes out, delayed by jitter; None: when it is due.
    wake: EpochMs | None = None
    cron: Cron | None = None
    #: Version of the tz database that computed a slot of a cron in this event; None: none was.
    tz: str | None = None


class Kept(Struct, frozen=True, kw_only=True):
    """A command was sound and its condition did not hold: what is armed stays as it is."""

    reminder: str
    #: What is armed.
    version: Version
    occurrence: int
    due: EpochMs
    reason: Unchanged


class Cancelled(Struct, frozen=True, kw_only=True):
    """The reminder is gone; its open occurrence will not fire."""

    reminder: str
    version: Version
    occurrence: int
    due: EpochMs


class Paused(Struct, frozen=True, kw_only=True):
    """The reminder rests. One that was paused already has another note now."""

    reminder: str
    version: Version
    #: The open slot, which waits.
    occurrence: int
    due: EpochMs
    since: EpochMs
    note: str | None


class Resumed(Struct, frozen=True, kw_only=True):
    """The reminder is awake again, as of its open slot."""

    reminder: str
    version: Version
    occurrence: int
    due: EpochMs
    #: Since when it was paused.
    since: EpochMs
    #: Why it was resumed.
    note: str | None


class NothingResumed(Struct, frozen=True, kw_only=True):
    """A Resume found nothing paused. Not an error: what should be awake is awake."""

    #: The exact name asked for; None for all of the actor.
    reminder: str | None


class NothingCancelled(Struct, frozen=True, kw_only=True):
    """A Cancel found nothing. Not an error: what should be gone is gone."""

    #: The exact name asked for; None for several.
    reminder: str | None
    #: As in the Cancel; without all three it was for all of the actor.
    operation: str | None = None
    prefix: str | None = None
    raw: bool = False


class Fired(Struct, frozen=True):
    """A delivery went out.

    Not keyword-only: it is made once per fire, and positional construction is the cheaper half.
    """

    reminder: str
    version: Version
    kind: Kind
    #: Slot that was delivered; for a manual fire the slot that was open.
    occurrence: int
    #: When that slot was due; for a manual fire the fire time.
    due: EpochMs
    fired: EpochMs
    #: Slots passed over just before `occurrence`: occurrence - missed … occurrence - 1.
    missed: int
    #: When the first of them was due; None without any.
    missed_due: EpochMs | None
    #: Slot and due that come next; None: the reminder is done.
    next_occurrence: int | None
    next_due: EpochMs | None
    #: Offset of the command that was to be consumed next when this was decided; for a manual fire
    #: the Fire command itself, which names the delivery.
    next_command: Offset
    #: When the next slot goes out, delayed by jitter; None: when it is due.
    next_wake: EpochMs | None = None
    #: Version of the tz database that computed a slot of a cron in this event; None: none was.
    tz: str | None = None


class Skipped(Struct, frozen=True, kw_only=True):
    """Slots first … last went by and do not go out."""

    reminder: str
    version: Version
    first: int
    last: int
    first_due: EpochMs
    last_due: EpochMs
    reason: PassedOver
    #: Slot and due that come next; None: the reminder is done.
    next_occurrence: int | None
    next_due: EpochMs | None
    next_wake: EpochMs | None = None
    #: Version of the tz database that computed a slot of a cron in this event; None: none was.
    tz: str | None = None


class Expired(Struct, frozen=True, kw_only=True):
    """Slots first … last could not fire within their time to live, and do not go out."""

    reminder: str
    version: Version
    first: int
    last: int
    first_due: EpochMs
    last_due: EpochMs
    ttl: DurationMs
    #: Slot and due that come next; None: the reminder is done.
    next_occurrence: int | None
    next_due: EpochMs | None
    next_wake: EpochMs | None = None
    #: Version of the tz database that computed a slot of a cron in this event; None: none was.
    tz: str | None = None


class Completed(Struct, frozen=True, kw_only=True):
    """A schedule came to its end; the event before told of its last slot."""

    reminder: str
    version: Version
    #: How many slots it had.
    occurrences: int
    reason: Completion


class Undeliverable(Struct, frozen=True, kw_only=True):
    """The broker will never take this delivery; it went to the dead letters."""

    fired: Fired
    #: Topic that it was meant for.
    target: str
    error: str


class Destroyed(Struct, frozen=True, kw_only=True):
    """The actor ended, and with it this many reminders."""

    reminders: int


class Refused(Struct, frozen=True, kw_only=True):
    """A command was answered with no."""

    reason: Reason
    #: Name of the command as in JSON; None where it could not be read.
    command: str | None
    reminder: str | None
    field: str
    value: str
    way_out: str


class CommandsLost(Struct, frozen=True, kw_only=True):
    """Commands first … last were gone from the log before the engine could read them."""

    first: Offset
    last: Offset


Event = (
    Armed
    | Moved
    | Kept
    | Cancelled
    | NothingCancelled
    | Paused
    | Resumed
    | NothingResumed
    | Fired
    | Skipped
    | Expired
    | Completed
    | Undeliverable
    | Destroyed
    | Refused
    | CommandsLost
)


def name_of(event: Event) -> str | None:
    """Return the reminder that `event` is about; None: none, or several."""
    match event:
        case Armed(spec=spec):
            return spec.reminder
        case Undeliverable(fired=fired):
            return fired.reminder
        case Fired() | Moved() | Kept() | Cancelled() | NothingCancelled() | Refused():
            return event.reminder
        case Paused() | Resumed() | NothingResumed() | Skipped() | Expired() | Completed():
            return event.reminder
        case Destroyed() | CommandsLost():
            return None
        case _:
            assert_never(event)
