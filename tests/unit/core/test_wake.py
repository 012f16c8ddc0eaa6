"""Jitter delays within bounds, the same for the same delivery."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import durations, instants, versions
from tocsin.core.commands import Arm, FireDue
from tocsin.core.decide import decide, decide_due
from tocsin.core.events import Armed, Fired
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.recurrence import Slot
from tocsin.core.reminder import Options, Reminder, Spec, next_due
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import DurationMs, EpochMs, Offset, Version
from tocsin.core.waking import wake_of

DUE = 1_800_000_000_000
HOUR = 3_600_000


def jittered(jitter: int, every: int | None = HOUR, **changes: Any) -> Spec:
    values: dict[str, Any] = {"version": Version(7), "anchor": EpochMs(DUE)}
    until = changes.pop("until", None)
    return Spec(
        reminder="r",
        every=None if every is None else DurationMs(every),
        payload=b"",
        content_type=None,
        headers=(),
        to=None,
        traceparent=None,
        options=Options(jitter=DurationMs(jitter), until=until),
        **(values | changes),
    )


def slot_at(spec: Spec, occurrence: int) -> Slot:
    return Slot(occurrence, EpochMs(spec.anchor + occurrence * (spec.every or 0)))


partitions = st.integers(0, 100)


@given(versions, instants, durations, durations.filter(bool) | st.none(), st.integers(0, 50))
def test_a_fire_is_delayed_by_no_more_than_was_asked_and_never_past_the_next_slot(
    version: Version, anchor: EpochMs, jitter: int, every: int | None, occurrence: int
) -> None:
    spec = jittered(jitter, every, version=version, anchor=anchor)
    slot = slot_at(spec, occurrence if every else 0)
    wake = wake_of(spec, slot, 3)
    if wake is not None and slot.due <= INSTANT_MS_MAX:
        assert slot.due < wake <= min(slot.due + jitter, INSTANT_MS_MAX)
        assert every is None or wake < slot.due + every or slot.due + every > INSTANT_MS_MAX


@given(partitions, st.integers(0, 100))
def test_the_same_delivery_is_always_delayed_by_the_same(partition: int, occurrence: int) -> None:
    spec = jittered(HOUR)
    slot = slot_at(spec, occurrence)
    assert wake_of(spec, slot, partition) == wake_of(jittered(HOUR), slot, partition)


def test_delays_are_spread_over_the_whole_length() -> None:
    spec = jittered(999)
    delays = [
        (wake_of(spec, slot_at(spec, k), p) or slot_at(spec, k).due) - slot_at(spec, k).due
        for k in range(100)
        for p in range(16)
    ]
    assert (min(delays) < 20, max(delays) > 980) == (True, True)
    assert 450 < sum(delays) / len(delays) < 550


def test_no_fire_is_delayed_past_the_last_instant() -> None:
    for version in range(50):
        spec = jittered(HOUR, version=Version(version), until=EpochMs(DUE + 5))
        wake = wake_of(spec, slot_at(spec, 0), 0)
        assert wake is None or wake <= DUE + 5


def fire(reminder: Reminder, now: int) -> tuple[Any, ...]:
    command = FireDue(version=reminder.spec.version, next_command=Offset(1))
    return decide_due(reminder, command, EpochMs(now), Limits(), 3)


def test_a_jittered_fire_is_never_early_nor_twice_and_its_due_stays_on_the_grid() -> None:
    arm = Arm(
        offset=Offset(9),
        appended=EpochMs(DUE - HOUR),
        reminder="r",
        every=DurationMs(HOUR),
        jitter=DurationMs(HOUR // 2),
    )
    (armed,) = decide(None, arm, EpochMs(DUE - HOUR), Limits(), 3)
    assert isinstance(armed, Armed)
    reminder = evolve(None, armed)
    for occurrence in range(20):
        assert reminder is not None
        wake = next_due(reminder)
        assert wake is not None
        assert wake == (armed.wake if occurrence == 0 else reminder.wake or reminder.due)
        assert fire(reminder, wake - 1) == ()
        (event,) = fire(reminder, wake)
        assert isinstance(event, Fired)
        assert (event.occurrence, event.due) == (occurrence, DUE + occurrence * HOUR)
        reminder = evolve(reminder, event)
        assert reminder is not None
        assert fire(reminder, wake) == ()


def test_a_slot_that_jitter_still_holds_back_is_not_fired_with_those_it_follows() -> None:
    for version in range(40):
        spec = jittered(HOUR, version=Version(version))
        newest = wake_of(spec, slot_at(spec, 4), 3) or slot_at(spec, 4).due
        (event,) = fire(Reminder(spec, 0, EpochMs(DUE)), DUE + 4 * HOUR + HOUR // 2)
        assert event.occurrence == (4 if newest <= DUE + 4 * HOUR + HOUR // 2 else 3)
