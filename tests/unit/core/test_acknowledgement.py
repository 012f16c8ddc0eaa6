"""Deliveries that need an acknowledgement: again until somebody says done, or nobody ever does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.acknowledgement import REASON_CHARS_MAX, retry_at
from tocsin.core.commands import AckAsked, Acknowledge, Arm, Fire, FireDue, Move, Pause, Resume
from tocsin.core.decide import decide, decide_due
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Acknowledged,
    Armed,
    Completed,
    Event,
    Fired,
    GaveUp,
    Moved,
    Outcome,
    Paused,
    Refused,
)
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.reminder import Ack, Reminder, next_due
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX
from tocsin.core.values import DurationMs, EpochMs, Offset

NOW = 1_800_000_000_000
HOUR = 3_600_000
PARTITION = 3
#: Waits a second; back-off of 2 s, 6 s, 10 s; 4 attempts.
POLICY: dict[str, Any] = {
    "timeout": DurationMs(1_000),
    "initial": DurationMs(2_000),
    "factor": 3.0,
    "ceiling": DurationMs(10_000),
    "attempts": 4,
}


class Engine:
    """One reminder and what came of it."""

    def __init__(self, policy: dict[str, Any] | None = None, **options: Any) -> None:
        self.now = NOW
        self.offset = 40
        self.state: Reminder | None = None
        self.events: list[Event] = []
        asked = POLICY if policy is None else policy
        self.ask(Arm, reminder="r", ack=AckAsked(**asked), **options)

    def ask(self, kind: Any, **fields: Any) -> list[Event]:
        self.offset += 1
        command = kind(offset=Offset(self.offset), appended=EpochMs(self.now), **fields)
        return self.take(decide(self.state, command, EpochMs(self.now), Limits(), PARTITION))

    def ack(self, delivery: str, outcome: str = "done", **fields: Any) -> list[Event]:
        return self.ask(Acknowledge, delivery=delivery, outcome=outcome, **fields)

    def look(self, wait: int = 0) -> list[Event]:
        self.now += wait
        assert self.state is not None
        command = FireDue(version=self.state.spec.version, next_command=Offset(self.offset + 1))
        return self.take(decide_due(self.state, command, EpochMs(self.now), Limits(), PARTITION))

    def take(self, events: tuple[Event, ...]) -> list[Event]:
        for event in events:
            self.state = evolve(self.state, event)
        self.events += events
        return list(events)

    @property
    def wake(self) -> int | None:
        return None if self.state is None else next_due(self.state)


def fired(events: list[Event]) -> Fired:
    (event,) = events
    assert isinstance(event, Fired)
    return event


def refusal(events: list[Event]) -> Refused:
    (event,) = events
    assert isinstance(event, Refused)
    return event


# --- again and again


def test_what_is_not_acknowledged_in_time_is_delivered_again_with_growing_back_off() -> None:
    engine = Engine()
    waits = []
    for attempt in range(1, 5):
        event = fired(engine.look())
        assert (event.occurrence, event.attempt, event.due) == (0, attempt, NOW)
        assert engine.wake is not None
        assert engine.look() == []
        waits.append(engine.wake - engine.now)
        engine.now = engine.wake
    assert waits == [3_000, 7_000, 11_000, 1_000]


def test_after_its_last_attempt_a_delivery_is_given_up_and_says_why() -> None:
    engine = Engine({"timeout": DurationMs(1_000), "attempts": 1})
    engine.look()
    (event,) = engine.look(1_000)
    assert isinstance(event, GaveUp)
    assert (event.error, event.failures) == ("not acknowledged after its one attempt", 1)
    assert (event.fired.attempt, event.fired.fired) == (1, NOW)


def test_no_attempt_is_early() -> None:
    engine = Engine()
    engine.look()
    assert engine.wake is not None
    assert engine.look(engine.wake - engine.now - 1) == []
    assert fired(engine.look(1)).attempt == 2


@given(
    st.integers(1, DURATION_MS_MAX),
    st.integers(0, DURATION_MS_MAX),
    st.floats(1, 1_000),
    st.integers(0, DURATION_MS_MAX),
    st.integers(1, 10**9),
)
def test_a_back_off_grows_up_to_its_ceiling_whatever_the_numbers(
    timeout: int, initial: int, factor: float, more: int, attempt: int
) -> None:
    ack = Ack(
        timeout=DurationMs(timeout),
        initial=DurationMs(initial),
        factor=factor,
        ceiling=DurationMs(initial + more),
        attempts=None,
        pause_after_failures=None,
    )
    this, following = retry_at(ack, attempt, 0), retry_at(ack, attempt + 1, 0)
    assert timeout + initial <= this <= following <= timeout + initial + more
    assert retry_at(ack, attempt, INSTANT_MS_MAX) == INSTANT_MS_MAX


# --- done


@pytest.mark.parametrize("told", ["3:41:0", "3:41:0:a2"])
def test_done_for_any_attempt_completes_the_occurrence(told: str) -> None:
    engine = Engine()
    engine.look()
    engine.look(3_000)
    (event,) = engine.ack(told)
    assert isinstance(event, Acknowledged)
    assert event.outcome is Outcome.DONE
    assert engine.state is None


def test_a_late_done_counts_while_the_next_attempt_waits() -> None:
    engine = Engine()
    engine.look()
    engine.now += 2_999
    assert isinstance(engine.ack("3:41:0")[0], Acknowledged)
    assert engine.state is None


def test_a_second_done_is_refused_and_changes_nothing() -> None:
    engine = Engine(every=DurationMs(HOUR))
    engine.look(HOUR)
    engine.ack("3:41:0")
    before = engine.state
    assert refusal(engine.ack("3:41:0")).reason is Reason.SUPERSEDED
    assert engine.state is before


def test_done_with_the_last_occurrence_completes_the_schedule() -> None:
    engine = Engine(every=DurationMs(HOUR), occurrences=1)
    assert len(engine.look(HOUR)) == 1
    done, completed = engine.ack("3:41:0")
    assert isinstance(done, Acknowledged)
    assert isinstance(completed, Completed)
    assert engine.state is None


# --- what counts for the newest attempt alone


@pytest.mark.parametrize("outcome", ["failed", "retry", "extend"])
def test_all_but_done_counts_for_the_newest_attempt_alone(outcome: str) -> None:
    engine = Engine()
    engine.look()
    engine.look(3_000)
    before = engine.state
    assert refusal(engine.ack("3:41:0", outcome)).reason is Reason.SUPERSEDED
    assert engine.state is before
    assert isinstance(engine.ack("3:41:0:a2", outcome)[0], Acknowledged)


def test_failed_is_tried_again_after_the_back_off_without_waiting_for_the_timeout() -> None:
    engine = Engine()
    engine.look()
    engine.now += 10
    engine.ack("3:41:0", "failed", reason="no money")
    assert engine.wake == NOW + 10 + 2_000


def test_a_retry_says_when_and_uses_an_attempt() -> None:
    engine = Engine()
    for attempt in range(1, 4):
        engine.look()
        suffix = "" if attempt == 1 else f":a{attempt}"
        engine.ack(f"3:41:0{suffix}", "retry", after=DurationMs(5))
        assert engine.wake == engine.now + 5
        engine.now += 5
    engine.look()
    assert isinstance(engine.ack("3:41:0:a4", "retry")[1], GaveUp)


def test_extend_restarts_the_timeout() -> None:
    engine = Engine()
    engine.look()
    engine.now += 900
    engine.ack("3:41:0", "extend")
    assert engine.wake == NOW + 900 + 3_000
    engine.ack("3:41:0", "extend", after=DurationMs(HOUR))
    assert engine.wake == NOW + 900 + HOUR + 2_000


def test_failed_at_the_last_attempt_gives_up_with_the_reason() -> None:
    engine = Engine({"attempts": 1})
    engine.look()
    told, gave_up = engine.ack("3:41:0", "failed", reason="no money")
    assert isinstance(told, Acknowledged)
    assert isinstance(gave_up, GaveUp)
    assert gave_up.error == "no money"


# --- done, and due anew


def test_reschedule_is_done_and_a_new_version() -> None:
    engine = Engine()
    engine.look()
    done, moved = engine.ack("3:41:0", "reschedule", after=DurationMs(HOUR))
    assert isinstance(done, Acknowledged)
    assert isinstance(moved, Moved)
    assert (moved.version, moved.anchor) == (42, NOW + HOUR)
    assert fired(engine.look(HOUR)).attempt == 1


def test_an_acknowledgement_after_the_move_is_refused_not_applied() -> None:
    engine = Engine()
    engine.look()
    engine.ask(Move, reminder="r", after=DurationMs(HOUR))
    before = engine.state
    event = refusal(engine.ack("3:41:0"))
    assert event.reason is Reason.SUPERSEDED
    assert "moved, replaced or cancelled" in event.way_out
    assert engine.state is before


# --- one is outstanding


@pytest.mark.parametrize(("policy", "occurrences"), [("latest", [4]), ("all", [1]), ("skip", [])])
def test_one_is_outstanding_and_what_went_by_meanwhile_is_for_the_missed_policy(
    policy: str, occurrences: list[int]
) -> None:
    engine = Engine({"timeout": DurationMs(100 * HOUR)}, every=DurationMs(HOUR), missed=policy)
    engine.look(HOUR)
    assert engine.look(4 * HOUR) == []
    engine.ack("3:41:0")
    found = [event.occurrence for event in engine.look() if isinstance(event, Fired)]
    assert found == occurrences


def test_all_is_one_after_the_other_each_once_acknowledged() -> None:
    engine = Engine({}, every=DurationMs(HOUR), missed="all")
    engine.now += 5 * HOUR
    for occurrence in range(5):
        assert fired(engine.look()).occurrence == occurrence
        assert engine.look() == []
        engine.ack(f"3:41:{occurrence}")
    assert engine.look() == []


# --- failures


def test_a_one_shot_that_was_given_up_stays_listed_as_failed_until_redriven() -> None:
    engine = Engine({"attempts": 1})
    engine.look()
    engine.ack("3:41:0", "failed")
    assert engine.state is not None
    assert engine.wake is None
    engine.ask(Move, reminder="r", after=DurationMs(0))
    assert fired(engine.look()).attempt == 1


def test_a_late_done_ends_a_failed_one_shot() -> None:
    engine = Engine({"attempts": 1})
    engine.look()
    engine.ack("3:41:0", "failed")
    assert isinstance(engine.ack("3:41:0")[0], Acknowledged)
    assert engine.state is None


def test_a_failing_reminder_neither_stops_its_schedule_nor_fires_in_a_hot_loop() -> None:
    engine = Engine({"attempts": 1}, every=DurationMs(HOUR))
    for occurrence in range(5):
        event = fired(engine.look(HOUR))
        assert event.occurrence == occurrence
        engine.ack(f"3:41:{occurrence}", "failed")
        assert engine.look() == []


def test_a_schedule_is_paused_after_so_many_failures_in_a_row() -> None:
    engine = Engine({"attempts": 1, "pause_after_failures": 2}, every=DurationMs(HOUR))
    engine.look(HOUR)
    assert len(engine.ack("3:41:0", "failed")) == 2
    engine.look(HOUR)
    *_, paused = engine.ack("3:41:1", "failed")
    assert isinstance(paused, Paused)
    assert paused.note == "2 failures in a row"
    assert engine.wake is None
    engine.ask(Resume, reminder="r")
    engine.look(HOUR)
    assert not any(isinstance(event, Paused) for event in engine.ack("3:41:2", "failed"))


def test_a_done_in_between_starts_the_count_anew() -> None:
    engine = Engine({"attempts": 1, "pause_after_failures": 2}, every=DurationMs(HOUR))
    for occurrence, outcome in enumerate(["failed", "done", "failed"]):
        engine.look(HOUR)
        engine.ack(f"3:41:{occurrence}", outcome)
    assert engine.wake is not None


def test_a_pause_withholds_redelivery() -> None:
    engine = Engine()
    engine.look()
    engine.ask(Pause, reminder="r")
    assert engine.wake is None
    assert engine.look(HOUR) == []
    engine.ask(Resume, reminder="r")
    assert fired(engine.look()).attempt == 2


def test_a_fire_by_hand_needs_no_acknowledgement() -> None:
    engine = Engine(every=DurationMs(HOUR))
    engine.look(HOUR)
    before = engine.state
    event = fired(engine.ask(Fire, reminder="r"))
    assert (event.retry, event.attempt) == (None, 1)
    assert engine.state is before


# --- refusals


@pytest.mark.parametrize(
    ("delivery", "fields", "reason", "field"),
    [
        ("x", {}, Reason.INVALID, "delivery"),
        ("3:41:m", {}, Reason.INVALID, "delivery"),
        ("3:41:0:b2", {}, Reason.INVALID, "delivery"),
        ("3:41:0:a0", {}, Reason.SUPERSEDED, "delivery"),
        ("3:41:0:a2", {}, Reason.SUPERSEDED, "delivery"),
        ("3:41:1", {}, Reason.SUPERSEDED, "delivery"),
        ("3:40:0", {}, Reason.SUPERSEDED, "delivery"),
        ("2:41:0", {}, Reason.SUPERSEDED, "delivery"),
        ("3:41:0", {"outcome": "fine"}, Reason.INVALID, "outcome"),
        ("3:41:0", {"after": DurationMs(5)}, Reason.INVALID, "after"),
        ("3:41:0", {"outcome": "failed", "after": DurationMs(5)}, Reason.INVALID, "after"),
        ("3:41:0", {"outcome": "retry", "after": DurationMs(-5)}, Reason.INVALID, "after"),
        ("3:41:0", {"at": EpochMs(5)}, Reason.INVALID, "at"),
        ("3:41:0", {"outcome": "reschedule"}, Reason.INVALID, "at"),
        ("3:41:0", {"reason": "n" * (REASON_CHARS_MAX + 1)}, Reason.LIMIT, "reason"),
    ],
)
def test_what_is_unknown_superseded_or_unclear_is_refused(
    delivery: str, fields: dict[str, Any], reason: Reason, field: str
) -> None:
    engine = Engine()
    engine.look()
    before = engine.state
    event = refusal(engine.ack(delivery, **fields))
    assert (event.reason, event.field) == (reason, field)
    assert event.way_out
    assert engine.state is before


def test_what_needs_no_acknowledgement_cannot_be_acknowledged() -> None:
    engine = Engine()
    engine.state = None
    engine.ask(Arm, reminder="r", every=DurationMs(HOUR))
    engine.look(HOUR)
    assert "needs no acknowledgement" in refusal(engine.ack("3:42:0")).way_out


@pytest.mark.parametrize(
    ("ack", "field"),
    [
        ({"timeout": 0}, "ack.timeout"),
        ({"timeout": -1}, "ack.timeout"),
        ({"initial": -1}, "ack.initial"),
        ({"factor": 0.5}, "ack.factor"),
        ({"factor": 1_001.0}, "ack.factor"),
        ({"factor": float("nan")}, "ack.factor"),
        ({"ceiling": 5, "initial": 6}, "ack.ceiling"),
        ({"ceiling": 5}, "ack.ceiling"),
        ({"attempts": 0}, "ack.attempts"),
        ({"pause_after_failures": 0}, "ack.pause_after_failures"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(ack: dict[str, Any], field: str) -> None:
    event = refusal(Engine(ack).events)
    assert (event.reason, event.field) == (Reason.INVALID, field)
    assert event.way_out


def test_every_default_of_a_policy_is_resolved_in_the_event() -> None:
    (event,) = Engine({}).events
    assert isinstance(event, Armed)
    assert event.spec.options is not None
    assert event.spec.options.ack == Ack(
        timeout=DurationMs(30_000),
        initial=DurationMs(30_000),
        factor=2.0,
        ceiling=DurationMs(600_000),
        attempts=None,
        pause_after_failures=None,
    )
