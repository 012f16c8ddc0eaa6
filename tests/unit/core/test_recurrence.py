"""The grid: where slots lie, which one goes out, which one follows."""

from typing import Any

import pytest
from msgspec.structs import replace

from tocsin.core.events import Completion
from tocsin.core.recurrence import (
    Slot,
    completion,
    first_slot_from,
    last_occurrence,
    newest_due,
    slot_after,
    slot_at,
)
from tocsin.core.reminder import Options, Reminder, Spec
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX
from tocsin.core.values import DurationMs, EpochMs, Version

DUE = 1_800_000_000_000
MINUTE = 60_000


def reminder(every: int | None, occurrence: int = 0, due: int = DUE) -> Reminder:
    spec = Spec(
        reminder="r",
        version=Version(1),
        anchor=EpochMs(due - occurrence * (every or 0)),
        every=None if every is None else DurationMs(every),
        payload=b"",
        content_type=None,
        headers=(),
        to=None,
        traceparent=None,
    )
    return Reminder(spec, occurrence, EpochMs(due))


@pytest.mark.parametrize(
    ("every", "late", "occurrence"),
    [
        (MINUTE, 0, 0),
        (MINUTE, 1, 0),
        (MINUTE, MINUTE - 1, 0),
        (MINUTE, MINUTE, 1),
        (MINUTE, 2 * MINUTE - 1, 1),
        (MINUTE, 2 * MINUTE, 2),
        (1, 10**12, 10**12),
        (100, 99, 0),
        (DURATION_MS_MAX, DURATION_MS_MAX - 1, 0),
        (DURATION_MS_MAX, DURATION_MS_MAX, 1),
    ],
)
def test_the_newest_slot_is_the_last_one_that_is_due(
    every: int, late: int, occurrence: int
) -> None:
    slot = newest_due(reminder(every), EpochMs(DUE + late))
    assert slot == Slot(occurrence, EpochMs(DUE + occurrence * every))


def test_the_newest_slot_counts_on_from_the_open_one() -> None:
    slot = newest_due(reminder(MINUTE, occurrence=41), EpochMs(DUE + MINUTE))
    assert slot == Slot(42, EpochMs(DUE + MINUTE))


@pytest.mark.parametrize("late", [0, 1, DURATION_MS_MAX])
def test_a_one_shot_has_one_slot_however_late(late: int) -> None:
    assert newest_due(reminder(None), EpochMs(DUE + late)) == Slot(0, EpochMs(DUE))


def test_nothing_follows_the_slot_of_a_one_shot() -> None:
    assert slot_after(reminder(None).spec, Slot(0, EpochMs(DUE))) is None


def test_the_next_slot_is_one_period_after_the_slot_not_after_the_fire() -> None:
    following = slot_after(reminder(MINUTE).spec, Slot(5, EpochMs(DUE + 5 * MINUTE)))
    assert following == Slot(6, EpochMs(DUE + 6 * MINUTE))


def test_a_slot_in_the_last_millisecond_of_the_year_9999_follows() -> None:
    following = slot_after(reminder(MINUTE).spec, Slot(5, EpochMs(INSTANT_MS_MAX - MINUTE)))
    assert following == Slot(6, EpochMs(INSTANT_MS_MAX))


def test_no_slot_follows_in_the_year_10000() -> None:
    assert slot_after(reminder(MINUTE).spec, Slot(5, EpochMs(INSTANT_MS_MAX - MINUTE + 1))) is None


def limited(**options: Any) -> Spec:
    return replace(reminder(MINUTE).spec, options=Options(**options))


@pytest.mark.parametrize(
    ("options", "last", "why"),
    [
        ({"occurrences": 1}, 0, Completion.OCCURRENCES),
        ({"occurrences": 5}, 4, Completion.OCCURRENCES),
        ({"until": DUE}, 0, Completion.UNTIL),
        ({"until": DUE + MINUTE - 1}, 0, Completion.UNTIL),
        ({"until": DUE + MINUTE}, 1, Completion.UNTIL),
        ({"until": DUE + 9 * MINUTE, "occurrences": 3}, 2, Completion.OCCURRENCES),
        ({"until": DUE + MINUTE, "occurrences": 3}, 1, Completion.UNTIL),
    ],
)
def test_a_schedule_ends_with_its_last_instant_or_its_number_of_occurrences(
    options: dict[str, Any], last: int, why: Completion
) -> None:
    spec = limited(**options)
    assert last_occurrence(spec) == last
    assert slot_after(spec, slot_at(spec, last)) is None
    assert completion(spec, slot_at(spec, last)) is why
    if last:
        assert slot_after(spec, slot_at(spec, last - 1)) == slot_at(spec, last)


def test_a_schedule_without_an_end_ends_with_the_year_9999() -> None:
    spec = reminder(MINUTE).spec
    last = slot_at(spec, last_occurrence(spec))
    assert INSTANT_MS_MAX - MINUTE < last.due <= INSTANT_MS_MAX
    assert completion(spec, last) is Completion.TIME


@pytest.mark.parametrize(
    ("instant", "first"),
    [(DUE - 1, 0), (DUE, 0), (DUE + 1, 1), (DUE + MINUTE, 1), (DUE + MINUTE + 1, 2), (0, 0)],
)
def test_the_first_slot_from_an_instant_is_due_there_or_later(instant: int, first: int) -> None:
    assert first_slot_from(reminder(MINUTE).spec, instant) == first


def test_a_one_shot_has_one_slot() -> None:
    spec = reminder(None).spec
    assert (first_slot_from(spec, DUE), first_slot_from(spec, DUE + 1)) == (0, 1)
    assert last_occurrence(spec) == 0
