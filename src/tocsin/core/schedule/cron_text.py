"""Cron as people write it: checked field by field, so that a refusal names the field and a way out.

Five fields, or six with seconds first as in Quartz, Spring, Dapr and Go; croniter alone puts them
last. Numbers of weekdays are Unix ones: 0 and 7 are Sunday. When both day of month and day of week
are restricted either one is enough, unless one starts with `*` (as in Debian's and Vixie's cron).
"""

import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from tocsin.core.errors import Reason, Refusal, shown
from tocsin.core.schedule.fields import Fields
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.schedule.zones import check_zone

#: All 60 minutes written out take 169 characters.
CRON_CHARS_MAX: Final = 512
EXCLUDED_DATES_MAX: Final = 1_000
#: Compiled crons that are remembered, up to 20 KiB each.
_COMPILED_MAX: Final = 1_024

NICKNAMES: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

_FIVE: Final = 5
_SIX: Final = 6
_FORMS: Final = (
    "minute hour day-of-month month day-of-week, with seconds in front where wanted,"
    " or @hourly, @daily, @weekly, @monthly, @yearly"
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class _Kind(NamedTuple):
    name: str
    #: Largest step that differs from no step at all.
    step_max: int
    takes: str


_LISTS: Final = "lists 1,3, ranges 1-5 and steps */2"
_DAY_OF_MONTH: Final = _Kind(
    "day of month", 31, f"1-31, L (the last), LW (the last weekday), {_LISTS}"
)
_DAY_OF_WEEK: Final = _Kind(
    "day of week", 7, f"0-7 or SUN-SAT, 5L (the last Friday), MON#2 (the second Monday), {_LISTS}"
)
_KINDS: Final = (
    _Kind("second", 60, f"0-59, {_LISTS}"),
    _Kind("minute", 60, f"0-59, {_LISTS}"),
    _Kind("hour", 24, f"0-23, {_LISTS}"),
    _DAY_OF_MONTH,
    _Kind("month", 12, f"1-12 or JAN-DEC, {_LISTS}"),
    _DAY_OF_WEEK,
)
_STEP: Final = re.compile(r"(?P<of>[^/]*)/(?P<step>[0-9]{1,9})")
#: A weekday's number, not that of a step or of a week of the month.
_NUMBERED_DAY: Final = re.compile(r"(?<![#/0-9])[0-9]")
#: A week that is written through to its Sunday: the library counts up, and takes 7 for Sunday too.
_TO_SUNDAY: Final = re.compile(r"(?<![A-Z0-9])([1-6]|MON|TUE|WED|THU|FRI|SAT)-(?:SUN|0)(?![0-9])")
_KNOWN: Final = re.compile(r"[A-Z0-9*?,/#-]+")


def read_cron(
    text: str,
    *,
    zone: str = "UTC",
    gap: Gap = Gap.AFTER,
    overlap: Overlap = Overlap.FIRST,
    exclude: Iterable[str] = (),
) -> Cron:
    """Return a checked and normalised Cron; raises Refusal and nothing else."""
    normal = _checked(text)
    check_zone(zone)
    return Cron(text=normal, zone=zone, gap=gap, overlap=overlap, exclude=_dates(exclude))


@lru_cache(maxsize=_COMPILED_MAX)
def fields_of(text: str, exclude: tuple[str, ...] = ()) -> Fields:
    """Return the compiled form of the text and dates of a Cron that `read_cron` made."""
    return Fields(" ".join(_for_library(_split(text))), exclude)


# Most arms repeat a text: 50 µs once, then 0.1. What is refused is not remembered.
@lru_cache(maxsize=_COMPILED_MAX)
def _checked(text: str) -> str:
    normal = _normalised(text)
    _check_fields(text, normal)
    return normal


def _normalised(text: str) -> str:
    if len(text) > CRON_CHARS_MAX:
        raise _refusal(text, f"it is longer than {CRON_CHARS_MAX} characters: give a shorter one")
    # Not str.upper for all: it would make letters of other scripts into ours.
    normal = " ".join(text.split())
    return normal.upper() if normal.isascii() else normal


def _check_fields(text: str, normal: str) -> None:
    if normal.startswith("@"):
        if normal not in NICKNAMES:
            raise _refusal(text, _nickname_way_out(normal))
        return
    if normal.startswith(("TZ=", "CRON_TZ=")):
        raise _refusal(text, "the zone is a field of its own: give zone, such as Europe/Berlin")
    parts = normal.split(" ")
    if len(parts) not in (_FIVE, _SIX):
        raise _refusal(text, _number_way_out(len(parts) if normal else 0))
    kinds = _KINDS[-len(parts) :]
    for position, kind in enumerate(kinds):
        _check_field(text, position, parts, kind)
    if "?" in (parts[-3], parts[-1]) and _NUMBERED_DAY.search(parts[-1]):
        # Quartz, which this was written for, counts Sunday as 1.
        raise _refusal(
            text,
            f"day of week is {shown(parts[-1])} in a text with ?, where Quartz means another day"
            " than cron: write names such as MON-FRI, or * in place of ?",
        )
    if not _ever_matches(parts):
        raise _refusal(
            text,
            f"it never matches, no month {shown(parts[-2])} has a day {shown(parts[-3])}:"
            " correct one of the two",
        )


def _ever_matches(parts: list[str]) -> bool:
    try:
        fields = Fields(" ".join(_for_library(parts)))
    except ValueError:  # each field can be read, so that it is their sum: the library saw it too
        return False
    return fields.next_from(0) is not None


def _check_field(text: str, position: int, parts: list[str], kind: _Kind) -> None:
    part = parts[position]
    way_out = f"{kind.name} is {shown(part)}: it takes {kind.takes}"
    if not _KNOWN.fullmatch(part):
        raise _refusal(text, way_out)
    if "?" in part:
        both = parts[-3] == parts[-1] == "?"
        if part != "?" or kind not in (_DAY_OF_MONTH, _DAY_OF_WEEK) or both:
            raise _refusal(
                text, f"{kind.name} is {shown(part)}: ? stands alone for one of the days, * for all"
            )
    for term in part.split(","):
        _check_term(text, term, kind)
    if not _is_readable(part, position, len(parts)):
        raise _refusal(text, way_out + _hint(part, position, kind, len(parts)))


def _is_readable(part: str, position: int, fields: int) -> bool:
    alone = ["*"] * fields
    alone[position] = part
    try:
        Fields(" ".join(_for_library(alone)))
    except ValueError:
        return False
    return True


def _check_term(text: str, term: str, kind: _Kind) -> None:
    """Refuse what the library takes, but for something else than its author meant."""
    step = _STEP.fullmatch(term)
    if step is None:
        return
    said = f"{kind.name} is {shown(term)}"
    if step["of"].endswith(("L", "W")) and step["of"] != "JUL":
        raise _refusal(text, f"{said}: a step needs a range, such as 1-15/2")
    if int(step["step"]) > kind.step_max:
        raise _refusal(
            text,
            f"{said}: steps start anew with each {_WITHIN[kind.name]}, so that the largest is"
            f" {kind.step_max}; a longer period is an interval, such as every 90m",
        )


_WITHIN: Final = {
    "second": "minute",
    "minute": "hour",
    "hour": "day",
    "day of month": "month",
    "month": "year",
    "day of week": "week",
}


def _hint(part: str, position: int, kind: _Kind, fields: int) -> str:
    if part.startswith("H"):
        return "; for a spread over time give jitter"
    if kind is _DAY_OF_MONTH and part.endswith("W"):
        return "; the weekday nearest to a day is not read"
    first, _, last = part.partition("-")
    if last and all(_is_readable(end, position, fields) for end in (first, last)):
        return "; a range counts up: write one that wraps as two"
    if kind is _DAY_OF_WEEK and fields == _SIX:
        return "; of six fields the first is the seconds, and there is none for years"
    return ""


def _nickname_way_out(normal: str) -> str:
    if normal.startswith("@EVERY"):
        return "an interval is not a cron: give it as every"
    if normal == "@REBOOT":
        return "no engine start is a slot: reminders outlive it; give an instant as at"
    return f"there is no such nickname: give {_FORMS}"


def _number_way_out(fields: int) -> str:
    if fields == _SIX + 1:
        return "it has 7 fields, years are not read: leave them out, and give until for an end"
    return f"it has {fields} field{'s' * (fields != 1)}: give {_FORMS}"


def _split(text: str) -> list[str]:
    return NICKNAMES.get(text, text).split(" ")


def _for_library(parts: list[str]) -> list[str]:
    plain = ["*" if part == "?" else part for part in parts]
    plain[-1] = _TO_SUNDAY.sub(r"\1-7", plain[-1])
    return plain


def _dates(exclude: Iterable[str]) -> tuple[str, ...]:
    """Return the dates sorted, each once."""
    dates = set()
    for given in exclude:
        dates.add(_iso_date(given))
        if len(dates) > EXCLUDED_DATES_MAX:
            raise Refusal(
                Reason.LIMIT,
                "exclude",
                given,
                f"at most {EXCLUDED_DATES_MAX} dates: leave out those that are past",
            )
    return tuple(sorted(dates))


def _iso_date(given: str) -> str:
    if _DATE.fullmatch(given):
        try:
            return date.fromisoformat(given).isoformat()
        except ValueError:
            pass
    raise Refusal(
        Reason.INVALID, "exclude", given, "it is no date: give one of the zone, such as 2027-12-24"
    )


def _refusal(text: str, way_out: str) -> Refusal:
    return Refusal(Reason.INVALID, "cron", text, way_out)
