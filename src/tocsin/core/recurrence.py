"""The slots of a schedule. Occurrence k of an interval is due at anchor + k * every, however late a
fire is; of a cron, occurrence 0 is due at the anchor, and each later one at the cron's next slot.

A number belongs to its slot: what passes slots over counts them, without walking through them.
"""

from msgspec import Struct

from tocsin.core.events import Completion
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.schedule.slots import next_slot, passed
from tocsin.core.schedule.values import Cron
from tocsin.core.schedule.zones import tz_version
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs

#: Slots of a cron that are walked through one by one; further ones are found by halving.
_WALKED_MAX = 256


class Slot(Struct, frozen=True):
    """One occurrence of a schedule."""

    occurrence: int
    due: EpochMs


def newest_due(reminder: Reminder, now: EpochMs) -> Slot:
    """Return the newest slot that is due at `now`, from the reminder's open one on.

    Of an interval without an end, or a one-shot; see `Slots` for all others.
    """
    every = reminder.spec.every
    if every is None or now < reminder.due + every:
        return Slot(reminder.occurrence, reminder.due)
    passed_over = (now - reminder.due) // every
    return Slot(reminder.occurrence + passed_over, EpochMs(reminder.due + passed_over * every))


def slot_after(spec: Spec, slot: Slot) -> Slot | None:
    """Return the slot that follows `slot`; None: there is none, or none before the year 10000.

    Raises Refusal when the tz database has lost the zone of a cron.
    """
    every = spec.every
    if every is not None:
        due = EpochMs(slot.due + every)
    elif spec.cron is not None:
        following = next_slot(spec.cron, slot.due)
        if following is None:
            return None
        due = following.due
    else:
        return None
    if due > INSTANT_MS_MAX:
        return None
    options = spec.options
    if options is not None:
        if options.until is not None and due > options.until:
            return None
        if options.occurrences is not None and slot.occurrence + 1 >= options.occurrences:
            return None
    return Slot(slot.occurrence + 1, due)


class Slots:
    """The slots of a schedule from its open one on, within what the schedule has."""

    def __init__(self, spec: Spec, opened: Slot) -> None:
        self._spec = spec
        self._opened = opened

    def newest(self, now: EpochMs) -> Slot:
        """Return the newest slot that is due at `now`; the open one, should it not be due."""
        spec, opened, options = self._spec, self._opened, self._spec.options
        end = min(now, INSTANT_MS_MAX)
        if options is not None and options.until is not None:
            end = min(end, options.until)
        count = self._count(end)
        if options is not None and options.occurrences is not None:
            left = max(0, options.occurrences - 1 - opened.occurrence)
            if count > left:
                return self.later(opened, left, EpochMs(end))
        if spec.cron is not None:
            newest = passed(spec.cron, opened.due, EpochMs(end)).newest
            return Slot(opened.occurrence + count, opened.due if newest is None else newest)
        return self.later(opened, count, EpochMs(end))

    def first_from(self, instant: int, last: Slot) -> Slot | None:
        """Return the first slot that is due at `instant` or later; None: none up to `last`."""
        spec, opened = self._spec, self._opened
        if instant <= opened.due:
            return opened
        if instant > last.due:
            return None
        before = self._count(instant - 1)
        if spec.cron is None:
            return self.later(opened, before + 1, last.due)
        following = next_slot(spec.cron, EpochMs(instant - 1))
        assert following is not None, "`last` is one"
        return Slot(opened.occurrence + before + 1, following.due)

    def before(self, slot: Slot) -> Slot:
        """Return the slot before `slot`, which is not the open one."""
        spec, opened = self._spec, self._opened
        if spec.cron is None:
            return Slot(slot.occurrence - 1, EpochMs(slot.due - (spec.every or 0)))
        newest = passed(spec.cron, opened.due, EpochMs(slot.due - 1)).newest
        return Slot(slot.occurrence - 1, opened.due if newest is None else newest)

    def later(self, slot: Slot, count: int, end: EpochMs) -> Slot:
        """Return the slot that comes `count` after `slot`; it is due at `end` or before."""
        spec = self._spec
        if spec.cron is None:
            due = slot.due + count * (spec.every or 0)
        elif count <= _WALKED_MAX:
            due = slot.due
            for _ in range(count):
                following = next_slot(spec.cron, EpochMs(due))
                assert following is not None, "it is known to be there"
                due = following.due
        else:
            due = _found(spec.cron, slot.due, count, end)
        return Slot(slot.occurrence + count, EpochMs(due))

    def _count(self, end: int) -> int:
        """Return how many slots after the open one are due at `end` or before."""
        spec, opened = self._spec, self._opened
        if end <= opened.due:
            return 0
        if spec.cron is not None:
            return passed(spec.cron, opened.due, EpochMs(end)).count
        return 0 if spec.every is None else (end - opened.due) // spec.every


def _found(cron: Cron, after: EpochMs, count: int, end: EpochMs) -> EpochMs:
    """Return the due of the slot that is the `count`-th after `after`, by halving."""
    low, high = after, end
    while high - low > 1:
        middle = EpochMs((low + high) // 2)
        if passed(cron, after, middle).count >= count:
            high = middle
        else:
            low = middle
    return high


def completion(spec: Spec, last: Slot) -> Completion:
    """Return why no slot follows `last`, which is the last one."""
    options = spec.options
    if options is not None:
        if options.occurrences is not None and last.occurrence + 1 >= options.occurrences:
            return Completion.OCCURRENCES
        if options.until is not None:
            return Completion.UNTIL
    return Completion.TIME


def tz_of(spec: Spec) -> str | None:
    """Return the version of the tz database that slots of `spec` are computed from."""
    return None if spec.cron is None else tz_version()
