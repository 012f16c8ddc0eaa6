"""Instants and durations as people and services write them, in exact milliseconds.

Never early: what is finer than a millisecond is rounded up, once, at the end.
Nothing is guessed: a number is milliseconds, an instant has an offset, a month is no duration.
Any input yields a value in range or `TimeTextError`, in time linear in a bounded length.
"""

import re
from datetime import date
from fractions import Fraction
from math import ceil
from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS
WEEK_MS: Final = 7 * DAY_MS

#: 1,000 years of 365.25 days.
DURATION_MS_MAX: Final = 365_250 * DAY_MS

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
#: 0001-01-01T00:00:00.000Z
INSTANT_MS_MIN: Final = (date.min.toordinal() - _EPOCH_ORDINAL) * DAY_MS
#: 9999-12-31T23:59:59.999Z
INSTANT_MS_MAX: Final = (date.max.toordinal() + 1 - _EPOCH_ORDINAL) * DAY_MS - 1

#: Far above any sensible text, far below what makes int() slow or refuse.
TEXT_LENGTH_MAX: Final = 128
_SHOWN_LENGTH_MAX: Final = 80
_SHOWN_BITS_MAX: Final = 256

_DURATION_FORMS: Final = (
    "an integer of milliseconds from 0 to 1,000 years, a text such as"
    " 250ms, 90s, 15m, 36h, 2d, 1w, 1h30m or 1.5h, or ISO 8601 such as PT10S or P1DT12H"
)
_INSTANT_FORMS: Final = (
    "an integer of milliseconds since the epoch, or ISO 8601 with an offset such as"
    " 2027-03-01T09:00+01:00 or 2027-03-01T08:00:00.123Z, in the years 1 to 9999"
)

# [0-9] throughout: \d would let other scripts' digits in.
_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
#: In the order of the groups of `_COMPACT` and `_ISO`.
_READ_UNITS_MS: Final = (WEEK_MS, DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, 1)
_PRINTED_UNITS_MS: Final = (
    ("d", DAY_MS),
    ("h", HOUR_MS),
    ("m", MINUTE_MS),
    ("s", SECOND_MS),
    ("ms", 1),
)
_COMPACT: Final = re.compile(
    rf"(?=[0-9])(?:{_NUMBER}w)?(?: ?{_NUMBER}d)?(?: ?{_NUMBER}h)?"
    rf"(?: ?{_NUMBER}m)?(?: ?{_NUMBER}s)?(?: ?{_NUMBER}ms)?"
)
_ISO: Final = re.compile(
    rf"P(?=[0-9T])(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_ISO_YEARS_OR_MONTHS: Final = re.compile(r"P[^T]*[0-9][YM]")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_INSTANT: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<off_hour>[0-9]{2})(?::?(?P<off_minute>[0-9]{2}))?)?"
)
_DATE_ONLY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_HOURS: Final = 24
_SIXTY: Final = 60


class TimeTextError(ValueError):
    """A value that is no instant or duration; the message says which, why, and what is accepted."""


class _Refusal(Exception):
    """Why a value is refused; never leaves the module, where the value is not named yet."""


def parse_duration(value: int | str) -> int:
    """Milliseconds, 0 to `DURATION_MS_MAX`, of a duration; raises `TimeTextError` and nothing else.

    Integers and digits alone are milliseconds. Units may be compounded from large to small
    (`1h30m`, `1h 30m`); ISO 8601 is read but for years and months, which have no exact length.
    """
    try:
        given = _integer_or_text(value)
        return _duration_in_range(_duration_text_ms(given) if isinstance(given, str) else given)
    except _Refusal as refusal:
        raise _error(value, "a duration", refusal, _DURATION_FORMS) from None


def parse_instant(value: int | str) -> int:
    """Epoch milliseconds in the years 1 to 9999 UTC; raises `TimeTextError` and nothing else.

    Integers and digits alone are milliseconds, even where they look like seconds.
    Text is RFC 3339 with optional seconds and up to 9 digits of fraction; the offset is required.
    """
    try:
        given = _integer_or_text(value)
        return _instant_in_range(_instant_text_ms(given) if isinstance(given, str) else given)
    except _Refusal as refusal:
        raise _error(value, "an instant", refusal, _INSTANT_FORMS) from None


def format_duration(ms: int) -> str:
    """An exact sum of days to milliseconds (`1d12h`, `0s`), which `parse_duration` reads back.

    Raises `TimeTextError` outside 0 to `DURATION_MS_MAX`.
    """
    rest = parse_duration(ms)
    parts = []
    for unit, unit_ms in _PRINTED_UNITS_MS:
        count, rest = divmod(rest, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def format_instant(ms: int) -> str:
    """ISO 8601 in UTC (`2027-03-01T08:00:00.123Z`), which `parse_instant` reads back.

    Raises `TimeTextError` outside `INSTANT_MS_MIN` to `INSTANT_MS_MAX`.
    """
    days, rest = divmod(parse_instant(ms), DAY_MS)
    hour, rest = divmod(rest, HOUR_MS)
    minute, rest = divmod(rest, MINUTE_MS)
    second, milli = divmod(rest, SECOND_MS)
    day = date.fromordinal(_EPOCH_ORDINAL + days)
    return f"{day.isoformat()}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z"


# `object`, not `int | str`: JSON and CLI callers hand over what their users wrote.
def _integer_or_text(value: object) -> int | str:
    if isinstance(value, float):
        raise _Refusal("a float is not exact")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise _Refusal("it is neither integer nor text")
    if isinstance(value, int):
        return int(value)
    if len(value) > TEXT_LENGTH_MAX:
        raise _Refusal(f"it is longer than {TEXT_LENGTH_MAX} characters")
    return int(value) if _INTEGER.fullmatch(value) else value


def _duration_text_ms(text: str) -> int:
    if text.startswith("-"):
        raise _Refusal("it is negative")
    if _ISO_YEARS_OR_MONTHS.match(text):
        raise _Refusal("years and months have no exact length, use days, such as P365D")
    if iso := _ISO.fullmatch(text):
        counts = iso.groups()
        if any("." in count for count in [count for count in counts if count][:-1]):
            raise _Refusal("in ISO 8601 only the last number may have a fraction")
        return _sum_ms(counts)
    if compact := _COMPACT.fullmatch(text):
        return _sum_ms(compact.groups())
    raise _Refusal("it cannot be read")


# The one rounding is of the sum: `0.0005s 0.5ms` is 1 ms, not 2.
def _sum_ms(counts: tuple[str | None, ...]) -> int:
    pairs = zip(counts, _READ_UNITS_MS, strict=False)  # ISO has no milliseconds
    return ceil(sum(_exact(count) * unit_ms for count, unit_ms in pairs if count))


# Whole numbers, the common case, go without Fraction, which takes 2 µs each instead of 0.06 µs.
def _exact(count: str) -> int | Fraction:
    return Fraction(count) if "." in count else int(count)


def _duration_in_range(ms: int) -> int:
    if ms < 0:
        raise _Refusal("it is negative")
    if ms > DURATION_MS_MAX:
        raise _Refusal("it is longer than 1,000 years")
    return ms


def _instant_text_ms(text: str) -> int:
    found = _INSTANT.fullmatch(text)
    if not found:
        dated = _DATE_ONLY.fullmatch(text)
        raise _Refusal("it has no time of day and no offset" if dated else "it cannot be read")
    if not (found["utc"] or found["sign"]):
        raise _Refusal("it has no offset, add Z or an offset such as +01:00")
    # The offset is subtracted: 09:00+01:00 is 08:00 in UTC.
    return _date_ms(found) + _time_of_day_ms(found) - _offset_ms(found)


def _date_ms(found: re.Match[str]) -> int:
    try:
        day = date(int(found["year"]), int(found["month"]), int(found["day"]))
    except ValueError:
        raise _Refusal("there is no such date") from None
    return (day.toordinal() - _EPOCH_ORDINAL) * DAY_MS


def _time_of_day_ms(found: re.Match[str]) -> int:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if hour == _HOURS:
        raise _Refusal("hour 24 is not read, write 00:00 of the next day")
    if second == _SIXTY:
        raise _Refusal("leap seconds (:60) are not counted, write :59 or the next minute")
    if hour > _HOURS or minute >= _SIXTY or second > _SIXTY:
        raise _Refusal("there is no such time of day")
    nanos = int((found["fraction"] or "").ljust(9, "0"))
    return hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + -(-nanos // 1_000_000)


def _offset_ms(found: re.Match[str]) -> int:
    if found["utc"]:
        return 0
    hour, minute = int(found["off_hour"]), int(found["off_minute"] or 0)
    if hour >= _HOURS or minute >= _SIXTY:
        raise _Refusal("there is no such offset")
    size = hour * HOUR_MS + minute * MINUTE_MS
    return -size if found["sign"] == "-" else size


def _instant_in_range(ms: int) -> int:
    if ms < INSTANT_MS_MIN:
        raise _Refusal("it is before the year 1 in UTC")
    if ms > INSTANT_MS_MAX:
        raise _Refusal("it is after the year 9999 in UTC")
    return ms


def _error(value: object, kind: str, refusal: _Refusal, forms: str) -> TimeTextError:
    return TimeTextError(f"{_shown(value)} is not {kind}: {refusal}. Accepted: {forms}.")


# Cut before repr as well as after: repr of a long integer raises, of a deep list too.
def _shown(value: object) -> str:
    if isinstance(value, str):
        return _cut(repr(value[: _SHOWN_LENGTH_MAX + 1]))
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS_MAX:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, int | float):
        return _cut(repr(value))
    return _cut(f"a value of type {type(value).__name__}")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[: _SHOWN_LENGTH_MAX - 1]}…"
