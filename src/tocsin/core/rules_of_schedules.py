"""What the schedule of an Arm or Move must satisfy. Each check raises Refusal with the way out."""

from enum import StrEnum
from typing import TypeVar

from tocsin.core.commands import Arm, Move
from tocsin.core.errors import Reason, Refusal
from tocsin.core.schedule.cron_text import read_cron
from tocsin.core.schedule.schedule_text import parse_interval
from tocsin.core.schedule.slots import next_slot
from tocsin.core.schedule.values import Cron, Gap, Interval, Overlap
from tocsin.core.values import DurationMs, EpochMs

E = TypeVar("E", bound=StrEnum)


def cron_of(command: Arm | Move) -> Cron | None:
    """Return the cron that `command` asks for, once it is found sound."""
    if command.cron is None:
        _check_nothing_else(command)
        return None
    if command.every is not None:
        raise Refusal(
            Reason.INVALID, "cron", command.cron, "every and cron exclude each other: give one"
        )
    return read_cron(
        command.cron,
        zone="UTC" if command.zone is None else command.zone,
        gap=_one_of(Gap, "gap", command.gap) or Gap.AFTER,
        overlap=_one_of(Overlap, "overlap", command.overlap) or Overlap.FIRST,
        exclude=command.exclude,
    )


def read_every(value: int | str) -> tuple[DurationMs, int | None]:
    """Return what `every` means: a period, and the number of occurrences where it tells one."""
    schedule = parse_interval(value)
    assert isinstance(schedule.timing, Interval), "that is what was read"
    return schedule.timing.every, schedule.occurrences


def read_period(value: int | str) -> DurationMs:
    """Return what the `every` of a Move means, which keeps the number of occurrences."""
    every, occurrences = read_every(value)
    if occurrences is not None:
        raise Refusal(
            Reason.INVALID,
            "every",
            value,
            "a move keeps the number of occurrences: give the period alone, or arm anew",
        )
    return every


def first_slot(cron: Cron, after: EpochMs) -> EpochMs:
    """Return the first slot of `cron` after the instant; refused when there is none."""
    slot = next_slot(cron, after)
    if slot is None:
        raise Refusal(
            Reason.INVALID,
            "cron",
            cron.text,
            "it has no slot within 50 years: correct it, or take dates out of exclude",
        )
    return slot.due


def _one_of(kind: type[E], field: str, value: str | None) -> E | None:
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        forms = ", ".join(kind)
        raise Refusal(Reason.INVALID, field, value, f"give one of {forms}") from None


def _check_nothing_else(command: Arm | Move) -> None:
    if command.zone is command.gap is command.overlap is None and not command.exclude:
        return
    for field in ("zone", "gap", "overlap", "exclude"):
        value = getattr(command, field)
        if value not in (None, ()):
            raise Refusal(
                Reason.INVALID,
                field,
                value,
                f"{field} goes with a cron: give cron as well, or leave it out",
            )
