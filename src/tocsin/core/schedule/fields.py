"""The port to the cron library: which local seconds match the fields. Nothing else imports it.

cronsim reads the fields and judges days. Stepping and counting are done here on sorted values, in
1.4-4 µs where its own iterator takes 2-25 µs and cannot count; a test holds the two equal.
Local seconds are seconds since 1970-01-01T00:00 on the wall; zones are not known here.
"""

from bisect import bisect_left
from calendar import monthrange
from datetime import date, datetime
from typing import Final

from cronsim import CronSim, CronSimError

_DAY_SECONDS: Final = 86_400
_HOUR_SECONDS: Final = 3_600
_MINUTE_SECONDS: Final = 60
_MONTHS: Final = 12
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_DAY_MIN: Final = date.min.toordinal() - _EPOCH_ORDINAL
_DAY_MAX: Final = date.max.toordinal() - _EPOCH_ORDINAL
#: What matches at all waits at most 40 years: 29 February on one weekday, around 2100.
_MONTHS_SEARCHED_MAX: Final = 50 * _MONTHS
_ANY_MOMENT: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - naive on purpose: local time


class Fields:
    """The matching local seconds of one cron text, without those of the excluded dates."""

    def __init__(self, text: str, excluded: tuple[str, ...] = ()) -> None:
        """Read 5 fields, or 6 with seconds first; raises ValueError when they are none."""
        try:
            self._read = CronSim(text, _ANY_MOMENT)
        except CronSimError as error:
            raise ValueError(str(error)) from error
        self._hours = sorted(self._read.hours)
        self._minutes = sorted(self._read.minutes)
        self._seconds = sorted(self._read.seconds)
        self._first = _time(self._hours[0], self._minutes[0], self._seconds[0])
        self._per_hour = len(self._minutes) * len(self._seconds)
        self._per_day = len(self._hours) * self._per_hour
        self._excluded = sorted({_day(date.fromisoformat(day)) for day in excluded})
        #: Matching days of a month by its first weekday and its length: 28 shapes at most.
        self._shapes: dict[tuple[int, int], tuple[int, ...]] = {}

    def matches(self, local: int) -> bool:
        """Return whether `local` is a matching second."""
        return self.next_from(local) == local

    def next_from(self, local: int) -> int | None:
        """Return the first matching second that is not before `local`; None: not in 50 years."""
        day, second = divmod(local, _DAY_SECONDS)
        found = self._day_from(day)
        if found == day:
            time = self._time_from(second)
            if time is not None:
                return day * _DAY_SECONDS + time
            found = self._day_from(day + 1)
        return None if found is None else found * _DAY_SECONDS + self._first

    def count(self, start: int, end: int) -> int:
        """Return the number of matching seconds in [start, end); about 0.5 µs per month."""
        if end <= start:
            return 0
        first_day, first_second = divmod(start, _DAY_SECONDS)
        last_day, last_second = divmod(end, _DAY_SECONDS)
        total = self._days_between(first_day, last_day) * self._per_day
        if self._day_from(first_day) == first_day:
            total -= self._times_before(first_second)
        if last_second and self._day_from(last_day) == last_day:
            total += self._times_before(last_second)
        return total

    def _time_from(self, second: int) -> int | None:
        hour, rest = divmod(second, _HOUR_SECONDS)
        minute, second = divmod(rest, _MINUTE_SECONDS)
        hours, minutes, seconds = self._hours, self._minutes, self._seconds
        at_hour = bisect_left(hours, hour)
        if at_hour < len(hours) and hours[at_hour] == hour:
            at_minute = bisect_left(minutes, minute)
            if at_minute < len(minutes) and minutes[at_minute] == minute:
                at_second = bisect_left(seconds, second)
                if at_second < len(seconds):
                    return _time(hour, minute, seconds[at_second])
                at_minute += 1
            if at_minute < len(minutes):
                return _time(hour, minutes[at_minute], seconds[0])
            at_hour += 1
        return _time(hours[at_hour], minutes[0], seconds[0]) if at_hour < len(hours) else None

    def _times_before(self, second: int) -> int:
        hour, rest = divmod(second, _HOUR_SECONDS)
        minute, second = divmod(rest, _MINUTE_SECONDS)
        total = bisect_left(self._hours, hour) * self._per_hour
        if hour in self._read.hours:
            total += bisect_left(self._minutes, minute) * len(self._seconds)
            if minute in self._read.minutes:
                total += bisect_left(self._seconds, second)
        return total

    def _day_from(self, day: int) -> int | None:
        if not _DAY_MIN <= day <= _DAY_MAX:
            return None
        asked = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month, of_month = asked.year, asked.month, asked.day
        for _ in range(_MONTHS_SEARCHED_MAX):
            weekday, length = monthrange(year, month)
            if month in self._read.months:
                days = self._days(year, month, weekday, length)
                for found in days[bisect_left(days, of_month) :]:
                    if not self._is_excluded(day - of_month + found):
                        return day - of_month + found
            day, of_month = day - of_month + length + 1, 1
            year, month = _month_after(year, month)
            if day > _DAY_MAX:
                break
        return None

    def _days_between(self, start: int, end: int) -> int:
        """Return the number of matching days in [start, end)."""
        asked = date.fromordinal(start + _EPOCH_ORDINAL)
        year, month, of_month = asked.year, asked.month, asked.day
        total = 0
        day = start
        while day < end:
            weekday, length = monthrange(year, month)
            month_end = day - of_month + length + 1
            if month in self._read.months:
                days = self._days(year, month, weekday, length)
                until = length + 1 - max(month_end - end, 0)
                total += bisect_left(days, until) - bisect_left(days, of_month)
            day, of_month = month_end, 1
            year, month = _month_after(year, month)
        excluded = self._excluded[bisect_left(self._excluded, start) :]
        return total - sum(self._would_match(day) for day in excluded if day < end)

    def _is_excluded(self, day: int) -> bool:
        at = bisect_left(self._excluded, day)
        return at < len(self._excluded) and self._excluded[at] == day

    def _would_match(self, day: int) -> bool:
        asked = date.fromordinal(day + _EPOCH_ORDINAL)
        return asked.month in self._read.months and self._read.match_day(asked)

    def _days(self, year: int, month: int, weekday: int, length: int) -> tuple[int, ...]:
        days = self._shapes.get((weekday, length))
        if days is None:
            matches = self._read.match_day
            days = tuple(day for day in range(1, length + 1) if matches(date(year, month, day)))
            self._shapes[weekday, length] = days
        return days


def _time(hour: int, minute: int, second: int) -> int:
    return hour * _HOUR_SECONDS + minute * _MINUTE_SECONDS + second


def _day(day: date) -> int:
    return day.toordinal() - _EPOCH_ORDINAL


def _month_after(year: int, month: int) -> tuple[int, int]:
    return (year, month + 1) if month < _MONTHS else (year + 1, 1)
