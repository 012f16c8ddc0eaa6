"""The grid: occurrence k of an interval is due at anchor + k * every, however late a fire is."""

from msgspec import Struct

from tocsin.core.reminder import Reminder
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs


class Slot(Struct, frozen=True):
    """One occurrence of a schedule."""

    occurrence: int
    due: EpochMs


def newest_due(reminder: Reminder, now: EpochMs) -> Slot:
    """Return the newest slot that is due at `now`, from the reminder's open one on.

    Policy `latest` (semantics: missed occurrences): older slots that are due as well coalesce.
    """
    every = reminder.spec.every
    if every is None or now < reminder.due + every:
        return Slot(reminder.occurrence, reminder.due)
    passed_over = (now - reminder.due) // every
    return Slot(reminder.occurrence + passed_over, EpochMs(reminder.due + passed_over * every))


def slot_after(reminder: Reminder, slot: Slot) -> Slot | None:
    """Return the slot that follows `slot`; None: there is none, or none before the year 10000."""
    every = reminder.spec.every
    if every is None:
        return None
    due = EpochMs(slot.due + every)
    return Slot(slot.occurrence + 1, due) if due <= INSTANT_MS_MAX else None
