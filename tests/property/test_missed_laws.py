"""Any options, any looks: each slot once, in one event, as counting on one's fingers says."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.commands import Arm, FireDue, Pause, Resume
from tocsin.core.decide import decide, decide_due
from tocsin.core.events import Armed, Completed, Event, Expired, Fired, Paused, Resumed, Skipped
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.reminder import Missed, Options, Reminder, next_due
from tocsin.core.values import DurationMs, EpochMs, Offset

START = 1_800_000_000_000
LIMITS = Limits(catch_up_fires_max=7)

lengths = st.integers(1, 5_000).map(DurationMs)
arms = st.builds(
    Arm,
    offset=st.integers(0, 5).map(Offset),
    appended=st.just(EpochMs(START)),
    reminder=st.just("r"),
    every=st.integers(100, 1_000).map(DurationMs),
    missed=st.sampled_from(Missed),
    catch_up=st.none() | lengths,
    ttl=st.none() | lengths,
    until=st.none() | st.integers(START + 1_000, START + 20_000).map(EpochMs),
    occurrences=st.none() | st.integers(1, 30),
    jitter=st.none() | st.integers(0, 2_000).map(DurationMs),
).filter(lambda arm: (arm.jitter or 0) < min(arm.ttl or 10**9, arm.catch_up or 10**9))
waits = st.integers(0, 400) | st.integers(0, 4_000)
actions = st.lists(st.tuples(st.sampled_from(["look", "look", "pause", "resume"]), waits))


def lived(arm: Arm, history: list[tuple[str, int]]) -> tuple[list[Event], Reminder | None]:
    (armed,) = decide(None, arm, EpochMs(START), LIMITS, 3)
    events: list[Event] = [armed]
    state = evolve(None, armed)
    now = START
    for action, wait in history:
        now += wait
        if state is None:
            break
        here: dict[str, Any] = {"offset": Offset(9), "appended": None, "reminder": "r"}
        if action == "look":
            command = FireDue(version=state.spec.version, next_command=Offset(9))
            found = decide_due(state, command, EpochMs(now), LIMITS, 3)
        else:
            asked = Pause(**here) if action == "pause" else Resume(**here)
            found = decide(state, asked, EpochMs(now), LIMITS, 3)
        for event in found:
            state = evolve(state, event)
            events.append(event)
    return events, state


@given(arms, actions)
def test_each_slot_is_in_exactly_one_event_or_open(
    arm: Arm, history: list[tuple[str, int]]
) -> None:
    events, state = lived(arm, history)
    open_slot: int | None = 0
    for event in events:
        match event:
            case Fired():
                assert event.occurrence - event.missed == open_slot
                open_slot = event.next_occurrence
                assert open_slot in (None, event.occurrence + 1)
            case Skipped() | Expired():
                assert event.first == open_slot
                assert event.first <= event.last
                open_slot = event.next_occurrence
                assert open_slot in (None, event.last + 1)
            case Paused() | Resumed():
                assert event.occurrence == open_slot
            case Completed():
                assert open_slot is None
            case _:
                pass
    assert (None if state is None else state.occurrence) == open_slot
    assert (open_slot is None) == isinstance(events[-1], Completed)


@given(arms, actions)
def test_each_slot_is_on_the_grid_and_none_is_early_dead_or_beyond_the_end(
    arm: Arm, history: list[tuple[str, int]]
) -> None:
    events, _ = lived(arm, history)
    (first, *others) = events
    assert isinstance(first, Armed)
    spec, options = first.spec, first.spec.options or Options()
    wake = first.wake
    for event in others:
        match event:
            case Fired():
                assert event.due == spec.anchor + event.occurrence * (spec.every or 0)
                assert event.fired >= event.due
                assert event.missed or event.fired >= (wake or event.due)
                assert options.ttl is None or event.fired <= event.due + options.ttl
                assert options.catch_up is None or event.fired <= event.due + options.catch_up
                assert options.until is None or event.due <= options.until
                assert options.occurrences is None or event.occurrence < options.occurrences
            case Skipped() | Expired():
                assert event.first_due == spec.anchor + event.first * (spec.every or 0)
                assert event.last_due == spec.anchor + event.last * (spec.every or 0)
            case _:
                continue
        wake, due = event.next_wake, event.next_due
        if wake is not None:
            assert due is not None
            assert due < wake <= due + options.jitter
            assert wake < due + (spec.every or 0)


@given(arms, st.integers(0, 20_000))
def test_one_look_is_what_counting_slot_by_slot_says(arm: Arm, wait: int) -> None:
    (armed,) = decide(None, arm, EpochMs(START), LIMITS, 3)
    assert isinstance(armed, Armed)
    state = evolve(None, armed)
    assert state is not None
    now = EpochMs((next_due(state) or 0) + wait)
    spec, options = state.spec, state.spec.options or Options()
    events = decide_due(
        state, FireDue(version=spec.version, next_command=Offset(9)), now, LIMITS, 3
    )
    went_by: list[int] = []
    slot, due, wake = 0, spec.anchor, next_due(state)
    while wake is not None and wake <= now:
        went_by.append(slot)
        slot, due, wake = _counted_on(arm, slot, due, now, events)
    dead = [k for k in went_by if now - _due(spec.anchor, arm, k) > (options.ttl or 10**9)]
    far = [k for k in went_by if now - _due(spec.anchor, arm, k) > (options.catch_up or 10**9)]
    alive = [k for k in went_by if k not in dead and k not in far]
    out = {
        Missed.LATEST: alive[-1:],
        Missed.ALL: alive[-LIMITS.catch_up_fires_max :],
        Missed.SKIP: alive if len(went_by) == 1 else [],
    }[options.missed]
    assert [event.occurrence for event in events if isinstance(event, Fired)] == out
    expired = [k for k in dead if k not in far]
    told = [event for event in events if isinstance(event, Expired)]
    assert [k for event in told for k in range(event.first, event.last + 1)] == expired


def _due(anchor: int, arm: Arm, occurrence: int) -> int:
    return anchor + occurrence * (arm.every or 0)


def _counted_on(
    arm: Arm, slot: int, due: int, now: int, events: tuple[Event, ...]
) -> tuple[int, EpochMs, EpochMs | None]:
    """Return the next slot; of a jittered one only the events know when it wakes."""
    following, at = slot + 1, EpochMs(due + (arm.every or 0))
    ended = (arm.until is not None and at > arm.until) or (
        arm.occurrences is not None and following >= arm.occurrences
    )
    if ended or at > now:
        return following, at, None
    last = events[-1]
    nexts = [getattr(event, "next_occurrence", None) for event in events]
    if arm.jitter and not isinstance(last, Completed) and nexts[-1] == following:
        return following, at, None  # due, but still held back
    return following, at, at
