"""The next slots of a schedule, for people: local time, and what daylight saving did to each."""

from typing import Final, assert_never

from msgspec import Struct

from tocsin.core.schedule.slots import next_slot
from tocsin.core.schedule.values import Cron, CronSlot, Interval, Mark, Schedule
from tocsin.core.schedule.zones import local_text
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs

#: Slots of one preview; a page of them, not a calendar.
PREVIEW_SLOTS_MAX: Final = 10_000


class PreviewSlot(Struct, frozen=True):
    """One slot as it is shown."""

    occurrence: int
    due: EpochMs
    #: ISO 8601 with the zone's offset at that instant; of an interval in UTC.
    local: str
    mark: Mark


def preview(schedule: Schedule, start: EpochMs, count: int) -> tuple[PreviewSlot, ...]:
    """Return the first `count` slots after `start`, or fewer where the schedule ends.

    At most PREVIEW_SLOTS_MAX.
    """
    timing = schedule.timing
    wanted = min(count, PREVIEW_SLOTS_MAX)
    if schedule.occurrences is not None:
        wanted = min(wanted, schedule.occurrences)
    slots: list[PreviewSlot] = []
    at = start
    for occurrence in range(wanted):
        slot = _following(timing, at)
        if slot is None:
            break
        at = slot.due
        zone = timing.zone if isinstance(timing, Cron) else "UTC"
        slots.append(PreviewSlot(occurrence, at, local_text(zone, at), slot.mark))
    return tuple(slots)


def _following(timing: Cron | Interval, after: EpochMs) -> CronSlot | None:
    match timing:
        case Cron():
            return next_slot(timing, after)
        case Interval(every=every):
            due = EpochMs(after + every)
            return CronSlot(due, Mark.NORMAL) if due <= INSTANT_MS_MAX else None
        case _:
            assert_never(timing)
