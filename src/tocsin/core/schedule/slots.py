"""Slots of a cron: the instants at which it is due, strictly increasing.

A slot is a matching local second of an offset's period. Local time that the zone leaves out (a gap)
and local time that comes twice (an overlap) follow the cron's own policy. What follows an instant
depends on nothing but that instant, so that asking from anywhere in between gives the same answer.
"""

from typing import Final

from msgspec import Struct

from tocsin.core.schedule.cron_text import fields_of
from tocsin.core.schedule.fields import Fields
from tocsin.core.schedule.values import Cron, CronSlot, Gap, Mark, Overlap
from tocsin.core.schedule.zones import SECOND_MAX, SECOND_MIN, Period, period_at
from tocsin.core.time_text import SECOND_MS
from tocsin.core.values import EpochMs

#: Above what 50 years hold, with four changes of offset a year.
_PERIODS_SEARCHED_MAX: Final = 256


class Passed(Struct, frozen=True):
    """The slots in a stretch of time."""

    count: int
    #: None when there is none.
    newest: EpochMs | None


def next_slot(cron: Cron, after: EpochMs) -> CronSlot | None:
    """Return the first slot after `after`; None: none within 50 years, or before the year 10000.

    Raises Refusal when the tz database has lost the zone.
    """
    second = max(after // SECOND_MS + 1, SECOND_MIN)
    if second > SECOND_MAX:
        return None
    fields = fields_of(cron.text, cron.exclude)
    # A gap ends with a slot of the period before: that is where the search begins.
    period = period_at(cron.zone, second - 1)
    local: int | None = None
    searched_from = at = second + period.offset
    for _ in range(_PERIODS_SEARCHED_MAX):
        first, end = _line(period, cron.overlap)
        at = max(at, first)
        if local is None or not searched_from <= at <= local:
            searched_from, local = at, fields.next_from(at)
            if local is None:
                return None
        if local < end:
            return _slot(local - period.offset, _mark(period, local))
        if period.end > SECOND_MAX:
            return None
        gap_start = period.end + period.offset
        gap_end = period.end + period.offset_after
        if cron.gap is Gap.AFTER and gap_start <= local < gap_end:
            return _slot(period.end, Mark.GAP)
        period, at = period_at(cron.zone, period.end), gap_end
    return None


def passed(cron: Cron, after: EpochMs, until: EpochMs) -> Passed:
    """Return number and newest of the slots in (after, until], without walking through them.

    A year of a cron by the second takes about as long as one of a cron by the month.
    """
    first = next_slot(cron, after)
    if first is None or first.due > until:
        return Passed(0, None)
    return Passed(_count(cron, first.due, until), _newest(cron, first.due, until))


def _count(cron: Cron, first: EpochMs, until: EpochMs) -> int:
    """Return the number of slots in [first, until]."""
    fields = fields_of(cron.text, cron.exclude)
    second, last = first // SECOND_MS, min(until // SECOND_MS, SECOND_MAX)
    total = 0
    while second <= last:
        period = period_at(cron.zone, second)
        line_first, line_end = _line(period, cron.overlap)
        at, end = second + period.offset, last + 1 + period.offset
        total += fields.count(max(at, line_first), min(end, line_end))
        if second == period.start and _only_gap(fields, cron, period):
            total += 1
        second = period.end
    return total


def _newest(cron: Cron, first: EpochMs, until: EpochMs) -> EpochMs:
    """Return the newest slot in [first, until], where `first` is one, by halving."""
    newest, high = first, until
    while newest < high:
        middle = EpochMs((newest + high) // 2)
        found = next_slot(cron, middle)
        if found is not None and found.due <= until:
            newest = found.due
        else:
            high = middle
    return newest


def _only_gap(fields: Fields, cron: Cron, period: Period) -> bool:
    """Return whether the start of `period` is a slot for no other reason than a gap before it."""
    start, gap_end = period.start + period.offset_before, period.start + period.offset
    if cron.gap is not Gap.AFTER or start >= gap_end:
        return False
    local = fields.next_from(start)
    return local is not None and local < gap_end and not fields.matches(gap_end)


def _line(period: Period, overlap: Overlap) -> tuple[int, int]:
    """Return the local seconds [first, end) of `period` that count under the overlap policy."""
    start = period.start + period.offset
    end = period.end + period.offset
    match overlap:
        case Overlap.FIRST:
            return max(start, period.start + period.offset_before), end
        case Overlap.SECOND:
            return start, min(end, period.end + period.offset_after)
        case Overlap.BOTH:
            return start, end


def _mark(period: Period, local: int) -> Mark:
    again = local < period.start + period.offset_before
    to_come_again = local >= period.end + period.offset_after
    return Mark.OVERLAP if again or to_come_again else Mark.NORMAL


def _slot(second: int, mark: Mark) -> CronSlot:
    return CronSlot(EpochMs(second * SECOND_MS), mark)
