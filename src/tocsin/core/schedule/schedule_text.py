"""Schedules as Go, Dapr, ISO 8601 and cron users write them, read as what they mean."""

import re
from collections.abc import Iterable
from typing import Final

from tocsin.core.errors import Reason, Refusal
from tocsin.core.schedule.cron_text import read_cron
from tocsin.core.schedule.values import Gap, Interval, Overlap, Schedule
from tocsin.core.time_text import TEXT_LENGTH_MAX, TimeTextError, parse_duration
from tocsin.core.values import DurationMs

#: At the smallest default period, 100 ms, this many take 3 million years.
OCCURRENCES_MAX: Final = 10**15

_EVERY: Final = re.compile(r"@every +(?P<duration>.*)", re.IGNORECASE)
_REPEATED: Final = re.compile(r"R(?P<times>[0-9]*)/(?P<duration>.*)")
_FORMS: Final = "or @every 1h30m, R5/PT10S for five times, R/PT10S for ever"
_FIELDS_MIN: Final = 5


def parse_schedule(
    text: str,
    *,
    zone: str = "UTC",
    gap: Gap = Gap.AFTER,
    overlap: Overlap = Overlap.FIRST,
    exclude: Iterable[str] = (),
) -> Schedule:
    """Return what `text` means, interval or cron; raises Refusal and nothing else.

    Zone, gap, overlap and exclude concern a cron alone.
    """
    stripped = text.strip()
    is_cron = len(stripped.split()) >= _FIELDS_MIN or (
        stripped.startswith("@") and not _EVERY.fullmatch(stripped)
    )
    if is_cron and not _is_duration(stripped):
        return Schedule(
            timing=read_cron(text, zone=zone, gap=gap, overlap=overlap, exclude=exclude)
        )
    return parse_interval(stripped)


def parse_interval(value: int | str) -> Schedule:
    """Return what `value` means as an interval; raises Refusal and nothing else.

    `R5/PT10S` is five occurrences, as in Dapr; `R/PT10S` has no end.
    """
    if not isinstance(value, str):
        return Schedule(timing=Interval(every=_period(value, value)))
    text = value.strip()
    if every := _EVERY.fullmatch(text):
        return Schedule(timing=Interval(every=_period(value, every["duration"])))
    if repeated := _REPEATED.fullmatch(text):
        return Schedule(
            timing=Interval(every=_period(value, repeated["duration"])),
            occurrences=_times(value, repeated["times"]),
        )
    return Schedule(timing=Interval(every=_period(value, text)))


def _period(value: int | str, duration: int | str) -> DurationMs:
    if isinstance(duration, str) and "/" in duration:
        raise _refusal(value, "a start within it is not read: give it as at, and here R5/PT10S")
    try:
        period = parse_duration(duration)
    except TimeTextError as error:
        raise _refusal(value, f"{error} {_FORMS}.") from error
    if period == 0:
        raise _refusal(value, "a period is longer than nothing: give a longer one")
    return DurationMs(period)


def _times(value: int | str, digits: str) -> int | None:
    if not digits:
        return None
    times = int(digits) if len(digits) <= TEXT_LENGTH_MAX else OCCURRENCES_MAX + 1
    if not 1 <= times <= OCCURRENCES_MAX:
        raise _refusal(
            value, f"it repeats 1 to {OCCURRENCES_MAX} times, or without number (R/PT10S) for ever"
        )
    return times


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except TimeTextError:
        return False
    return True


def _refusal(value: int | str, way_out: str) -> Refusal:
    return Refusal(Reason.INVALID, "every", value, way_out)
