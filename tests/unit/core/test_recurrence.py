"""The grid: where slots lie, which one goes out, which one follows."""

from typing import Any

import pytest
from msgspec.structs import replace

from tocsin.core.events import Completion
from tocsin.core.recurrence import (
    Slot,
    Slots,
    completion,
    newest_due,
    slot_after,
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
        ({}, (INSTANT_MS_MAX - DUE) // MINUTE, Completion.TIME),
    ],
)
def test_a_schedule_ends_with_its_last_instant_or_its_number_of_occurrences(
    options: dict[str, Any], last: int, why: Completion
) -> None:
    spec = limited(**options)
    slot = Slot(last, EpochMs(DUE + last * MINUTE))
    assert Slots(spec, Slot(0, EpochMs(DUE))).newest(EpochMs(2 * INSTANT_MS_MAX)) == slot
    assert slot_after(spec, slot) is None
    assert completion(spec, slot) is why
    if last:
        before = Slot(last - 1, EpochMs(slot.due - MINUTE))
        assert slot_after(spec, before) == slot


@pytest.mark.parametrize(
    ("instant", "first"),
    [(DUE - 1, 0), (DUE, 0), (DUE + 1, 1), (DUE + MINUTE, 1), (DUE + MINUTE + 1, 2), (0, 0)],
)
def test_the_first_slot_from_an_instant_is_due_there_or_later(instant: int, first: int) -> None:
    slots = Slots(reminder(MINUTE).spec, Slot(0, EpochMs(DUE)))
    last = slots.newest(EpochMs(DUE + 2 * MINUTE))
    assert slots.first_from(instant, last) == Slot(first, EpochMs(DUE + first * MINUTE))


def test_there_is_no_slot_from_an_instant_behind_the_last() -> None:
    slots = Slots(reminder(MINUTE).spec, Slot(0, EpochMs(DUE)))
    assert slots.first_from(DUE + 1, Slot(0, EpochMs(DUE))) is None
    once = Slots(reminder(None).spec, Slot(0, EpochMs(DUE)))
    assert once.first_from(DUE + 1, once.newest(EpochMs(INSTANT_MS_MAX))) is None
