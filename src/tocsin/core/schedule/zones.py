"""Zones as periods of constant offset, from the tzdata package alone.

The machine's own zone data is not read: two workers would compute different slots, and the version
in an event would not say which data it came from. `pip install --upgrade tzdata` renews it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tocsin.core.errors import Reason, Refusal
from tocsin.core.time_text import (
    DAY_MS,
    HOUR_MS,
    INSTANT_MS_MAX,
    INSTANT_MS_MIN,
    MINUTE_MS,
    SECOND_MS,
    format_instant,
)
from tocsin.core.values import EpochMs

DAY_SECONDS: Final = DAY_MS // SECOND_MS
#: Offsets are below a day, so that the first and last days of the calendar have no local time.
SECOND_MIN: Final = INSTANT_MS_MIN // SECOND_MS + 2 * DAY_SECONDS
SECOND_MAX: Final = INSTANT_MS_MAX // SECOND_MS - 2 * DAY_SECONDS

#: Offsets are looked up this far apart. In the whole tz database changes are at least 6.9 days
#: apart, so that none hides between two looks; a test holds us to it.
_LOOK_SECONDS: Final = 3 * DAY_SECONDS
_BLOCK_SECONDS: Final = 487 * _LOOK_SECONDS
#: Blocks of four years that are remembered, over all zones; about 1 KiB each.
_BLOCKS_CACHED_MAX: Final = 4_096
_SUGGESTIONS_MAX: Final = 3


class Period(NamedTuple):
    """Seconds since the epoch, [start, end), over which a zone keeps one offset.

    A period may end without a change, `offset_after == offset`: that is where a block ends.
    """

    start: int
    end: int
    offset_before: int
    offset: int
    offset_after: int


def check_zone(name: str) -> None:
    """Check that the tz database has a zone of exactly this name; raises Refusal."""
    if name not in _names():
        raise Refusal(Reason.INVALID, "zone", name, _way_out(name))


def period_at(zone: str, second: int) -> Period:
    """Return the period that holds `second`, from SECOND_MIN to SECOND_MAX; raises Refusal."""
    starts, periods = _block(zone, second // _BLOCK_SECONDS)
    return periods[bisect_right(starts, second) - 1]


def local_text(zone: str, instant: EpochMs) -> str:
    """Return `instant` as the clocks of `zone` show it: `2027-03-28T03:00:00.000+02:00`."""
    second = min(max(instant // SECOND_MS, SECOND_MIN), SECOND_MAX)
    offset = period_at(zone, second).offset
    hours, rest = divmod(abs(offset) * SECOND_MS, HOUR_MS)
    minutes, seconds = divmod(rest, MINUTE_MS)
    sign = "-" if offset < 0 else "+"
    shown = f"{sign}{hours:02}:{minutes:02}" + (f":{seconds // SECOND_MS:02}" if seconds else "")
    local = min(max(instant + offset * SECOND_MS, INSTANT_MS_MIN), INSTANT_MS_MAX)
    return format_instant(local).removesuffix("Z") + shown


@lru_cache(maxsize=1)
def tz_version() -> str:
    """Return the version of the tz database that slots are computed from, such as `2026f`."""
    with files("tzdata").joinpath("zoneinfo", "tzdata.zi").open(encoding="utf-8") as source:
        return source.readline().removeprefix("# version ").strip()


@lru_cache(maxsize=_BLOCKS_CACHED_MAX)
def _block(zone: str, number: int) -> tuple[list[int], list[Period]]:
    # One look to either side: what ends or begins with the block is a change of it.
    first = number * _BLOCK_SECONDS
    last = first + _BLOCK_SECONDS
    info = _zone_info(zone)
    bounds = [first]
    offsets = [_offset(info, first)]
    for change, offset in _changes(info, first, last):
        bounds.append(change)
        offsets.append(offset)
    bounds.append(last)
    before = [_offset(info, first - 1), *offsets]
    after = [*offsets[1:], _offset(info, last)]
    periods = [
        Period(*period) for period in zip(bounds, bounds[1:], before, offsets, after, strict=False)
    ]
    return bounds[:-1], periods


def _changes(info: ZoneInfo, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield each second in (first, last) at which the offset changes, and the offset from there."""
    offset = _offset(info, first)
    for look in range(first + _LOOK_SECONDS, last + 1, _LOOK_SECONDS):
        low, high = look - _LOOK_SECONDS, min(look, last - 1)
        new = _offset(info, high)
        if new == offset:
            continue
        while high - low > 1:  # 18 halvings
            middle = (low + high) // 2
            if _offset(info, middle) == offset:
                low = middle
            else:
                high = middle
        yield high, new
        offset = new


def _offset(info: ZoneInfo, second: int) -> int:
    # Beyond the calendar local time cannot be told; nothing asks for it there.
    within = min(max(second, SECOND_MIN), SECOND_MAX)
    shift = datetime.fromtimestamp(within, UTC).astimezone(info).utcoffset()
    assert shift is not None, "a zone knows its offset"
    return shift.days * DAY_SECONDS + shift.seconds


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1_024)
def _zone_info(name: str) -> ZoneInfo:
    check_zone(name)  # names come from users, and end in a path
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as source:
        return ZoneInfo.from_file(source, key=name)


def _way_out(name: str) -> str:
    known = f"the tz database {tz_version()} has no such zone"
    by_fold = {zone.casefold(): zone for zone in sorted(_names(), reverse=True)}
    folds = get_close_matches(name[:64].casefold(), by_fold, n=_SUGGESTIONS_MAX)
    if folds:
        return f"{known}; did you mean {' or '.join(by_fold[fold] for fold in folds)}?"
    return f"{known}: give an IANA name such as Europe/Berlin or UTC; a fixed +02:00 is Etc/GMT-2"
