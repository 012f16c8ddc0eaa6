"""Decisions: what each command does, what the clock does, and which of them lose."""

from typing import Any

import pytest

from tocsin.core.commands import Arm, Cancel, Destroy, Fire, FireDue, Move, ServiceCommand
from tocsin.core.decide import decide, decide_all, decide_due
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Armed,
    Cancelled,
    Completed,
    Completion,
    Destroyed,
    Ended,
    Event,
    Fired,
    Kind,
    Moved,
    NothingCancelled,
    Refused,
)
from tocsin.core.limits import Limits
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX, INSTANT_MS_MIN
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

NOW = 1_800_000_000_000
APPENDED = NOW - 3_000
HOUR = 3_600_000
DUE = NOW + HOUR


def armed(**changes: Any) -> Reminder:
    """Version 7 of a one-shot that is due in an hour, but for `changes`."""
    occurrence = changes.pop("occurrence", 0)
    due = changes.pop("due", None)
    values: dict[str, Any] = {
        "reminder": "pay:1",
        "version": Version(7),
        "anchor": EpochMs(DUE),
        "every": None,
        "payload": b"{}",
        "content_type": "application/json",
        "headers": (("tenant", b"acme"), ("flag", None)),
        "to": None,
        "traceparent": "00-1-2-01",
    }
    spec = Spec(**(values | changes))
    return Reminder(spec, occurrence, spec.anchor if due is None else EpochMs(due))


HERE: dict[str, Any] = {"offset": Offset(9), "appended": EpochMs(APPENDED)}


def arm(**changes: Any) -> Arm:
    return Arm(**(HERE | {"reminder": "pay:1"} | changes))


def move(**changes: Any) -> Move:
    return Move(**(HERE | {"reminder": "pay:1"} | changes))


def cancel(**changes: Any) -> Cancel:
    return Cancel(**(HERE | changes))


FIRE = Fire(**HERE, reminder="pay:1")
DESTROY = Destroy(**HERE)


def decided(
    command: ServiceCommand, reminder: Reminder | None = None, limits: Limits | None = None
) -> Event:
    (event,) = decide(reminder, command, EpochMs(NOW), limits or Limits())
    return event


def anchor_of(command: Arm | Move) -> int:
    match decided(command, armed(every=DurationMs(2 * HOUR))):
        case Armed(spec=spec):
            return spec.anchor
        case Moved(anchor=anchor):
            return anchor
        case event:
            raise AssertionError(event)


def reason_of(event: Event) -> Reason:
    assert isinstance(event, Refused)
    return event.reason


def due_fire(reminder: Reminder | None, now: int, version: int = 7) -> tuple[Event, ...]:
    command = FireDue(version=Version(version), next_command=Offset(12))
    return decide_due(reminder, command, EpochMs(now), Limits())


def fired(reminder: Reminder, now: int) -> Fired:
    (event,) = due_fire(reminder, now)
    assert isinstance(event, Fired)
    return event


# --- when it is due


@pytest.mark.parametrize("make", [arm, move])
@pytest.mark.parametrize(
    ("when", "due"),
    [
        ({"after": 0}, APPENDED),
        ({"after": 1}, APPENDED + 1),
        ({"after": DURATION_MS_MAX}, APPENDED + DURATION_MS_MAX),
        ({"every": HOUR}, APPENDED + HOUR),
        ({"every": DURATION_MS_MAX}, APPENDED + DURATION_MS_MAX),
        ({"every": HOUR, "after": 0}, APPENDED),
        ({"every": HOUR, "after": 5}, APPENDED + 5),
        ({"every": HOUR, "at": DUE}, DUE),
        ({"at": DUE}, DUE),
        ({"at": INSTANT_MS_MAX}, INSTANT_MS_MAX),
        ({"at": APPENDED - 1}, APPENDED),
        ({"at": 0}, APPENDED),
        ({"at": -1}, APPENDED),
        ({"at": INSTANT_MS_MIN}, APPENDED),
    ],
)
def test_due_is_what_was_asked_counted_from_the_append_time(
    make: Any, when: dict[str, int], due: int
) -> None:
    assert anchor_of(make(**when)) == due


def test_without_due_and_schedule_a_reminder_is_due_now() -> None:
    assert anchor_of(arm()) == APPENDED


def test_an_instant_that_only_the_backlog_let_pass_keeps_its_lateness() -> None:
    assert anchor_of(arm(at=EpochMs(NOW - 1_000))) == NOW - 1_000


@pytest.mark.parametrize("make", [arm, move])
def test_a_delay_without_append_time_is_refused(make: Any) -> None:
    event = decided(make(after=DurationMs(1), appended=None), armed())
    assert reason_of(event) is Reason.INVALID


@pytest.mark.parametrize(
    ("when", "due"), [({"after": 0}, NOW), ({"at": 0}, NOW), ({"at": DUE}, DUE)]
)
def test_without_append_time_now_is_the_engines(when: dict[str, int], due: int) -> None:
    assert anchor_of(arm(appended=None, **when)) == due


@pytest.mark.parametrize("field", ["after", "every"])
@pytest.mark.parametrize("make", [arm, move])
def test_a_due_beyond_the_year_9999_is_refused_with_the_field_that_leads_there(
    make: Any, field: str
) -> None:
    command = make(appended=EpochMs(INSTANT_MS_MAX - HOUR + 1), **{field: DurationMs(HOUR)})
    event = decided(command, armed())
    assert isinstance(event, Refused)
    assert event.field == field


def test_the_last_millisecond_of_the_year_9999_is_a_due() -> None:
    command = arm(appended=EpochMs(INSTANT_MS_MAX - HOUR), after=DurationMs(HOUR))
    assert anchor_of(command) == INSTANT_MS_MAX


# --- arm


def test_an_arm_resolves_every_value_in_its_event() -> None:
    asked = arm(
        at=EpochMs(DUE),
        every=DurationMs(HOUR),
        payload=b"\x00\xff",
        content_type="x/y",
        headers=(("a", None),),
        to="orders",
        traceparent="00-1-2-01",
    )
    assert decided(asked, limits=Limits(targets=frozenset({"orders"}))) == Armed(
        spec=Spec(
            reminder="pay:1",
            version=Version(9),
            anchor=EpochMs(DUE),
            every=DurationMs(HOUR),
            payload=b"\x00\xff",
            content_type="x/y",
            headers=(("a", None),),
            to="orders",
            traceparent="00-1-2-01",
        )
    )


def test_arming_again_replaces_the_whole_spec() -> None:
    event = decided(arm(at=EpochMs(DUE)), armed(every=DurationMs(HOUR)))
    fresh = decided(arm(at=EpochMs(DUE)))
    assert isinstance(event, Armed)
    assert isinstance(fresh, Armed)
    assert event.spec == fresh.spec


def test_arming_again_tells_what_the_name_stood_for() -> None:
    event = decided(arm(), armed(every=DurationMs(HOUR), occurrence=3, due=DUE + 3 * HOUR))
    assert isinstance(event, Armed)
    assert event.previous == Ended(version=Version(7), occurrence=3, due=EpochMs(DUE + 3 * HOUR))


@pytest.mark.parametrize(("due", "replaced"), [(DUE, False), (DUE + 1, True), (DUE - 1, True)])
def test_arming_again_is_a_replacement_only_at_another_due(due: int, replaced: bool) -> None:
    event = decided(arm(at=EpochMs(due)), armed())
    assert isinstance(event, Armed)
    assert event.replaced is replaced


def test_if_absent_loses_against_an_armed_name() -> None:
    assert reason_of(decided(arm(if_absent=True), armed())) is Reason.EXISTS


def test_if_absent_arms_a_free_name() -> None:
    assert isinstance(decided(arm(if_absent=True)), Armed)


def test_if_version_arms_over_that_version() -> None:
    assert isinstance(decided(arm(if_version=Version(7)), armed()), Armed)


@pytest.mark.parametrize("version", [-1, 0, 6, 8, 2**63 - 1])
def test_if_version_loses_against_another_version(version: int) -> None:
    event = decided(arm(if_version=Version(version)), armed())
    assert reason_of(event) is Reason.OTHER_VERSION


def test_arming_with_if_version_where_nothing_is_armed_is_another_version() -> None:
    assert reason_of(decided(arm(if_version=Version(7)))) is Reason.OTHER_VERSION


# --- move


def test_a_move_is_a_new_version_that_tells_the_one_before() -> None:
    assert decided(move(at=EpochMs(DUE + 5)), armed()) == Moved(
        reminder="pay:1",
        version=Version(9),
        anchor=EpochMs(DUE + 5),
        every=None,
        previous=Ended(version=Version(7), occurrence=0, due=EpochMs(DUE)),
    )


def test_a_move_of_the_due_keeps_the_period() -> None:
    event = decided(move(at=EpochMs(DUE)), armed(every=DurationMs(HOUR)))
    assert isinstance(event, Moved)
    assert event.every == HOUR


def test_a_move_of_the_schedule_makes_a_one_shot_recur() -> None:
    event = decided(move(every=DurationMs(HOUR)), armed())
    assert isinstance(event, Moved)
    assert event.every == HOUR


def test_moving_what_is_absent_is_refused() -> None:
    assert reason_of(decided(move(after=DurationMs(1)))) is Reason.ABSENT


def test_a_move_of_another_version_loses() -> None:
    event = decided(move(after=DurationMs(1), if_version=Version(6)), armed())
    assert reason_of(event) is Reason.OTHER_VERSION


def test_a_move_without_anything_to_change_is_refused() -> None:
    assert reason_of(decided(move(), armed())) is Reason.INVALID


# --- cancel and destroy

GONE = Cancelled(reminder="pay:1", version=Version(7), occurrence=0, due=EpochMs(DUE))


def test_a_cancel_tells_the_occurrence_that_will_not_fire() -> None:
    assert decided(cancel(reminder="pay:1"), armed()) == GONE


@pytest.mark.parametrize("version", [None, Version(7)])
def test_cancelling_what_is_absent_is_no_error(version: Version | None) -> None:
    event = decided(cancel(reminder="pay:1", if_version=version))
    assert event == NothingCancelled(reminder="pay:1")


def test_a_cancel_of_that_version_cancels() -> None:
    assert decided(cancel(reminder="pay:1", if_version=Version(7)), armed()) == GONE


def test_a_cancel_of_another_version_loses() -> None:
    event = decided(cancel(reminder="pay:1", if_version=Version(6)), armed())
    assert reason_of(event) is Reason.OTHER_VERSION


def test_cancel_all_tells_each_reminder_in_order() -> None:
    both = [armed(), armed(reminder="z")]
    names = [event.reminder for event in decide_all(both, cancel(all=True), EpochMs(NOW), Limits())]  # type: ignore[union-attr]
    assert names == ["pay:1", "z"]


def test_cancel_all_of_nothing_is_no_error() -> None:
    assert decide_all((), cancel(all=True), EpochMs(NOW), Limits()) == (
        NothingCancelled(reminder=None),
    )


def test_destroy_is_one_decision_about_all() -> None:
    assert decide_all([armed(), armed(reminder="z")], DESTROY, EpochMs(NOW), Limits()) == (
        Destroyed(reminders=2),
    )


def test_destroying_what_has_nothing_is_answered() -> None:
    assert decide_all((), DESTROY, EpochMs(NOW), Limits()) == (Destroyed(reminders=0),)


# --- fire by hand


def test_a_fire_by_hand_is_due_and_fired_now() -> None:
    event = decided(FIRE, armed())
    assert isinstance(event, Fired)
    assert (event.kind, event.due, event.fired) == (Kind.MANUAL, NOW, NOW)


def test_a_fire_by_hand_carries_the_version_that_is_armed() -> None:
    event = decided(FIRE, armed())
    assert isinstance(event, Fired)
    assert event.version == 7


def test_a_fire_by_hand_names_its_own_command() -> None:
    event = decided(FIRE, armed())
    assert isinstance(event, Fired)
    assert event.next_command == 9


def test_a_one_shot_fired_by_hand_is_done() -> None:
    event = decided(FIRE, armed())
    assert isinstance(event, Fired)
    assert event.next_due is None


def test_a_fire_by_hand_leaves_the_open_slot_of_an_interval() -> None:
    event = decided(FIRE, armed(every=DurationMs(HOUR), occurrence=3, due=DUE + 3 * HOUR))
    assert isinstance(event, Fired)
    assert (event.next_occurrence, event.next_due) == (3, DUE + 3 * HOUR)


def test_firing_what_is_absent_is_refused() -> None:
    assert reason_of(decided(FIRE)) is Reason.ABSENT


# --- fire when due


@pytest.mark.parametrize("early", [1, HOUR, DUE, DUE + DURATION_MS_MAX])
def test_nothing_fires_before_its_due(early: int) -> None:
    assert due_fire(armed(), DUE - early) == ()


def test_at_its_due_a_reminder_fires() -> None:
    assert fired(armed(), DUE).fired == DUE


def test_what_is_gone_does_not_fire() -> None:
    assert due_fire(None, DUE) == ()


@pytest.mark.parametrize("version", [6, 8])
def test_a_superseded_version_does_not_fire(version: int) -> None:
    assert due_fire(armed(), DUE, version) == ()


def test_a_one_shot_fires_late_rather_than_never() -> None:
    event = fired(armed(), INSTANT_MS_MAX)
    assert (event.occurrence, event.due, event.fired) == (0, DUE, INSTANT_MS_MAX)


def test_a_one_shot_that_fired_is_done() -> None:
    event = fired(armed(), DUE)
    assert (event.next_occurrence, event.next_due) == (None, None)


def test_a_late_fire_does_not_shift_the_grid() -> None:
    event = fired(armed(every=DurationMs(HOUR)), DUE + HOUR - 1)
    assert (event.occurrence, event.next_occurrence, event.next_due) == (0, 1, DUE + HOUR)


def test_missed_slots_go_out_once_as_the_newest() -> None:
    event = fired(armed(every=DurationMs(HOUR)), DUE + 5 * HOUR + 1)
    assert (event.occurrence, event.due) == (5, DUE + 5 * HOUR)


def test_a_fire_tells_how_many_slots_were_passed_over_and_since_when() -> None:
    late = armed(every=DurationMs(HOUR), occurrence=2, due=DUE + 2 * HOUR)
    event = fired(late, DUE + 5 * HOUR)
    assert (event.missed, event.missed_due) == (3, DUE + 2 * HOUR)


def test_a_fire_in_time_passed_over_nothing() -> None:
    event = fired(armed(every=DurationMs(HOUR)), DUE)
    assert (event.missed, event.missed_due) == (0, None)


def test_a_fire_says_which_command_came_next() -> None:
    assert fired(armed(), DUE).next_command == 12


def test_an_interval_ends_where_the_year_10000_begins() -> None:
    last = armed(every=DurationMs(HOUR), anchor=EpochMs(INSTANT_MS_MAX - HOUR + 1))
    end = Completed(reminder="pay:1", version=Version(7), occurrences=1, reason=Completion.TIME)
    (event, completed) = due_fire(last, INSTANT_MS_MAX)
    assert isinstance(event, Fired)
    assert (event.next_due, completed) == (None, end)


# --- what a refusal tells


@pytest.mark.parametrize(
    ("command", "name"),
    [(arm(after=-1), "arm"), (move(), "move"), (cancel(), "cancel"), (FIRE, "fire")],
)
def test_a_refusal_names_its_command_as_json_does(command: ServiceCommand, name: str) -> None:
    event = decided(command)
    assert isinstance(event, Refused)
    assert event.command == name


def test_a_refusal_names_its_reminder() -> None:
    event = decided(FIRE)
    assert isinstance(event, Refused)
    assert event.reminder == "pay:1"


def test_a_refusal_stays_small_whatever_name_was_sent() -> None:
    event = decided(arm(reminder="n" * 1_000_000))
    assert isinstance(event, Refused)
    assert len(event.reminder or "") < 2_000
