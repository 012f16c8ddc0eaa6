"""What a schedule is, as plain values: they are stored in events as they stand."""

from enum import StrEnum

from msgspec import Struct

from tocsin.core.values import DurationMs, EpochMs


class Gap(StrEnum):
    """What becomes of slots whose local time the zone leaves out. The values are on the wire."""

    #: One fire at the first instant after the gap, however many slots fell into it.
    AFTER = "after"
    SKIP = "skip"


class Overlap(StrEnum):
    """Which passes count where local time comes twice. The values are on the wire."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Cron(Struct, frozen=True, kw_only=True):
    """Slots by the calendar of a zone; made by `read_cron`, which checks and normalises.

    Equal values have the same slots under the same tz database.
    """

    #: 5 fields, 6 with seconds first, or a nickname; upper case, single blanks.
    text: str
    #: IANA name.
    zone: str = "UTC"
    gap: Gap = Gap.AFTER
    overlap: Overlap = Overlap.FIRST
    #: Local dates without slots, `YYYY-MM-DD`, sorted.
    exclude: tuple[str, ...] = ()


class Interval(Struct, frozen=True, kw_only=True):
    """Slots on a grid of `every`, wherever its anchor lies."""

    every: DurationMs


class Schedule(Struct, frozen=True, kw_only=True):
    """A timing, and the number of occurrences after which it ends."""

    timing: Cron | Interval
    #: None is for ever.
    occurrences: int | None = None


class Mark(StrEnum):
    """What local time did at a slot."""

    NORMAL = "normal"
    #: Stands for at least one slot whose local time was left out.
    GAP = "gap"
    #: Its local time comes twice.
    OVERLAP = "overlap"


class CronSlot(Struct, frozen=True):
    """An instant at which a cron schedule is due."""

    due: EpochMs
    mark: Mark
