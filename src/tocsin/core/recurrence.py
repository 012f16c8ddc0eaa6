"""The grid: occurrence k of an interval is due at anchor + k * every, however late a fire is."""

from msgspec import Struct

from tocsin.core.events import Completion
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs


class Slot(Struct, frozen=True):
    """One occurrence of a schedule."""

    occurrence: int
    due: EpochMs


def newest_due(reminder: Reminder, now: EpochMs) -> Slot:
    """Return the newest slot that is due at `now`, from the reminder's open one on.

    Of a schedule without an end; see `last_occurrence`.
    """
    every = reminder.spec.every
    if every is None or now < reminder.due + every:
        return Slot(reminder.occurrence, reminder.due)
    passed_over = (now - reminder.due) // every
    return Slot(reminder.occurrence + passed_over, EpochMs(reminder.due + passed_over * every))


def slot_after(spec: Spec, slot: Slot) -> Slot | None:
    """Return the slot that follows `slot`; None: there is none, or none before the year 10000."""
    every = spec.every
    if every is None:
        return None
    due = EpochMs(slot.due + every)
    if due > INSTANT_MS_MAX:
        return None
    options = spec.options
    if options is not None:
        if options.until is not None and due > options.until:
            return None
        if options.occurrences is not None and slot.occurrence + 1 >= options.occurrences:
            return None
    return Slot(slot.occurrence + 1, due)


def slot_at(spec: Spec, occurrence: int) -> Slot:
    """Return the slot of that number, whether or not the schedule goes so far."""
    return Slot(occurrence, EpochMs(spec.anchor + occurrence * (spec.every or 0)))


def first_slot_from(spec: Spec, instant: int) -> int:
    """Return the number of the first slot that is due at `instant` or later; of none: the next."""
    if instant <= spec.anchor:
        return 0
    if spec.every is None:
        return 1
    return -((spec.anchor - instant) // spec.every)


def last_occurrence(spec: Spec) -> int:
    """Return the number of the last slot that the schedule has."""
    if spec.every is None:
        return 0
    end = INSTANT_MS_MAX
    options = spec.options
    if options is not None and options.until is not None:
        end = min(end, options.until)
    last = max(0, (end - spec.anchor) // spec.every)
    if options is not None and options.occurrences is not None:
        last = min(last, options.occurrences - 1)
    return last


def completion(spec: Spec, last: Slot) -> Completion:
    """Return why no slot follows `last`, which is the last one."""
    options = spec.options
    if options is not None:
        if options.occurrences is not None and last.occurrence + 1 >= options.occurrences:
            return Completion.OCCURRENCES
        if options.until is not None and last.due + (spec.every or 0) > options.until:
            return Completion.UNTIL
    return Completion.TIME
