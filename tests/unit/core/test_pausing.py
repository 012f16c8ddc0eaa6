"""A paused reminder has no due, and goes on where it was: same version, same grid, one fire."""

from typing import Any

import pytest

from tocsin.core.commands import Arm, Fire, FireDue, Move, Pause, Resume
from tocsin.core.decide import decide, decide_all, decide_due
from tocsin.core.errors import Reason
from tocsin.core.events import Armed, Event, Fired, NothingResumed, Paused, Refused, Resumed
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.reminder import PauseInForce, Reminder, Spec, next_due
from tocsin.core.rules import NOTE_CHARS_MAX
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

NOW = EpochMs(1_800_000_000_000)
HOUR = DurationMs(3_600_000)
LIMITS = Limits()
HERE: dict[str, Any] = {"offset": Offset(9), "appended": NOW}
PAUSE = Pause(**HERE, reminder="pay", note="on holiday")
RESUME = Resume(**HERE, reminder="pay", note="back")


def armed(every: DurationMs | None = None, *, name: str = "pay", due: int = NOW + HOUR) -> Reminder:
    spec = Spec(
        reminder=name,
        version=Version(7),
        anchor=EpochMs(due),
        every=every,
        payload=b"{}",
        content_type=None,
        headers=(),
        to=None,
        traceparent=None,
    )
    return Reminder(spec, 0, EpochMs(due))


def after(reminder: Reminder | None, *events: Event) -> Reminder:
    for event in events:
        reminder = evolve(reminder, event)
    assert reminder is not None
    return reminder


def paused(reminder: Reminder) -> Reminder:
    return after(reminder, *decide(reminder, PAUSE, NOW, LIMITS))


def resumed(reminder: Reminder, now: int) -> Reminder:
    return after(reminder, *decide(reminder, RESUME, EpochMs(now), LIMITS))


def fires(reminder: Reminder, now: int) -> list[Event]:
    due = FireDue(version=reminder.spec.version, next_command=Offset(12))
    return list(decide_due(reminder, due, EpochMs(now), LIMITS))


def test_a_pause_tells_what_waits_since_when_and_why() -> None:
    assert decide(armed(), PAUSE, NOW, LIMITS) == (
        Paused(
            reminder="pay",
            version=Version(7),
            occurrence=0,
            due=EpochMs(NOW + HOUR),
            since=NOW,
            note="on holiday",
        ),
    )


def test_a_resume_tells_what_is_open_and_how_long_it_rested() -> None:
    assert decide(paused(armed()), RESUME, EpochMs(NOW + 5), LIMITS) == (
        Resumed(
            reminder="pay",
            version=Version(7),
            occurrence=0,
            due=EpochMs(NOW + HOUR),
            since=NOW,
            note="back",
        ),
    )


@pytest.mark.parametrize("every", [None, HOUR])
def test_a_paused_reminder_has_no_due_and_never_fires(every: DurationMs | None) -> None:
    resting = paused(armed(every))
    assert next_due(resting) is None
    assert fires(resting, INSTANT_MS_MAX) == []


@pytest.mark.parametrize("every", [None, HOUR])
def test_pause_and_resume_before_the_due_leave_no_trace_in_the_state(
    every: DurationMs | None,
) -> None:
    before = armed(every)
    assert resumed(paused(before), NOW + 1) == before


def test_an_interval_after_a_pause_keeps_its_phase_and_fires_once() -> None:
    awake = resumed(paused(armed(HOUR)), NOW + 5 * HOUR + 1)
    (event,) = fires(awake, NOW + 5 * HOUR + 1)
    assert isinstance(event, Fired)
    assert (event.occurrence, event.missed, event.due) == (4, 4, NOW + 5 * HOUR)
    assert (event.next_occurrence, event.next_due) == (5, NOW + 6 * HOUR)
    assert fires(after(awake, event), NOW + 5 * HOUR + 1) == []


def test_a_one_shot_that_came_due_in_a_pause_fires_late_rather_than_never() -> None:
    (event,) = fires(resumed(paused(armed()), NOW + 2 * HOUR), NOW + 2 * HOUR)
    assert isinstance(event, Fired)
    assert (event.due, event.fired) == (NOW + HOUR, NOW + 2 * HOUR)


def test_pausing_again_changes_the_note_and_not_since_when() -> None:
    resting = paused(armed())
    again = Pause(**HERE, reminder="pay")
    assert after(resting, *decide(resting, again, EpochMs(NOW + 5), LIMITS)).paused == (
        PauseInForce(NOW, None)
    )


@pytest.mark.parametrize("command", [PAUSE, RESUME])
def test_pausing_or_resuming_what_is_absent_is_refused(command: Pause | Resume) -> None:
    (event,) = decide(None, command, NOW, LIMITS)
    assert isinstance(event, Refused)
    assert (event.reason, event.field, event.value) == (Reason.ABSENT, "reminder", "'pay'")


def test_resuming_what_is_awake_is_no_error() -> None:
    assert decide(armed(), RESUME, NOW, LIMITS) == (NothingResumed(reminder="pay"),)


def test_pause_all_is_each_reminder_that_the_actor_has_now() -> None:
    events = decide_all([armed(), armed(name="z")], Pause(**HERE, all=True), NOW, LIMITS)
    assert [type(event) for event in events] == [Paused, Paused]


def test_resume_all_is_each_paused_one() -> None:
    both = [armed(), paused(armed(name="z"))]
    (event,) = decide_all(both, Resume(**HERE, all=True), NOW, LIMITS)
    assert isinstance(event, Resumed)
    assert event.reminder == "z"


def test_resume_all_without_any_paused_is_no_error() -> None:
    events = decide_all([armed()], Resume(**HERE, all=True), NOW, LIMITS)
    assert events == (NothingResumed(reminder=None),)


@pytest.mark.parametrize("make", [Pause, Resume])
def test_all_of_an_actor_without_reminders_is_refused(make: type[Pause | Resume]) -> None:
    (event,) = decide_all([], make(**HERE, all=True), NOW, LIMITS)
    assert isinstance(event, Refused)
    assert (event.reason, event.field) == (Reason.ABSENT, "all")
    assert event.way_out == "the actor has no reminder: arm one"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({}, "reminder = None: a {} needs one of reminder, all"),
        ({"reminder": "pay", "all": True}, "reminder = 'pay': a {} needs one of reminder, all"),
        (
            {"reminder": "pay", "note": "n" * (NOTE_CHARS_MAX + 1)},
            "note = 1025: a note has at most 1024 characters: put the rest elsewhere",
        ),
        (
            {"reminder": ":"},
            "reminder = ':': a name is operation or operation:key, neither empty",
        ),
    ],
)
@pytest.mark.parametrize("make", [Pause, Resume])
def test_what_a_pause_cannot_mean_is_refused(
    make: type[Pause | Resume], what: dict[str, Any], message: str
) -> None:
    (event,) = decide_all([armed()], make(**HERE, **what), NOW, LIMITS)
    assert isinstance(event, Refused)
    told = f"{event.field} = {event.value}: {event.way_out}"
    assert told == message.format(make.__name__.lower())


def test_a_fire_by_hand_works_in_a_pause_and_does_not_end_it() -> None:
    resting = paused(armed(HOUR))
    (event,) = decide(resting, Fire(**HERE, reminder="pay"), NOW, LIMITS)
    assert isinstance(event, Fired)
    assert after(resting, event) is resting


def test_a_move_keeps_the_pause() -> None:
    resting = paused(armed())
    moved = after(
        resting, *decide(resting, Move(**HERE, reminder="pay", after=DurationMs(5)), NOW, LIMITS)
    )
    assert (moved.due, moved.paused) == (NOW + 5, resting.paused)


def test_arming_anew_ends_the_pause() -> None:
    resting = paused(armed())
    (event,) = decide(resting, Arm(**HERE, reminder="pay"), NOW, LIMITS)
    assert isinstance(event, Armed)
    assert after(resting, event).paused is None


def test_arming_the_same_in_start_up_code_keeps_the_pause() -> None:
    resting = paused(after(None, *decide(None, Arm(**HERE, reminder="pay"), NOW, LIMITS)))
    (event,) = decide(resting, Arm(**HERE, reminder="pay", if_changed=True), NOW, LIMITS)
    assert evolve(resting, event) is resting
