"""What goes out after a downtime, for each policy; numbers keep their slot."""

from typing import Any

import pytest
from msgspec.structs import replace

from tocsin.core.commands import FireDue, Pause, Resume
from tocsin.core.decide import decide, decide_due
from tocsin.core.events import Completed, Completion, Event, Expired, Fired, PassedOver, Skipped
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.missed import BYTES_PER_LOOK_MAX, CATCH_UP_MS, FIRES_PER_LOOK_MAX
from tocsin.core.reminder import Missed, Options, Reminder, Spec
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

DUE = 1_800_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR
YEAR = CATCH_UP_MS


def armed(every: int | None = HOUR, payload: bytes = b"x", **options: Any) -> Reminder:
    spec = Spec(
        reminder="r",
        version=Version(7),
        anchor=EpochMs(DUE),
        every=None if every is None else DurationMs(every),
        payload=payload,
        content_type=None,
        headers=(),
        to=None,
        traceparent=None,
        options=Options(**options) if options else None,
    )
    return Reminder(spec, 0, EpochMs(DUE))


def looked(reminder: Reminder, now: int, limits: Limits | None = None) -> list[Event]:
    command = FireDue(version=Version(7), next_command=Offset(12))
    return list(decide_due(reminder, command, EpochMs(now), limits or Limits()))


def told(events: list[Event]) -> list[tuple[Any, ...]]:
    """Return of each event its kind and slots: a fire with those that coalesced into it."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        match event:
            case Fired():
                found.append(("fired", event.occurrence - event.missed, event.occurrence))
            case Skipped():
                found.append((event.reason.value, event.first, event.last))
            case Expired():
                found.append(("expired", event.first, event.last))
            case Completed():
                found.append(("completed", event.occurrences))
            case _:
                pass
    return found


def after(reminder: Reminder, events: list[Event]) -> Reminder | None:
    now: Reminder | None = reminder
    for event in events:
        now = evolve(now, event)
    return now


#: Slots 0 to 4 went by, 4 half an hour ago.
AFTER_A_DOWNTIME = DUE + 4 * HOUR + HOUR // 2


def test_latest_is_one_delivery_of_the_newest_that_tells_how_many_were_passed_over() -> None:
    assert told(looked(armed(), AFTER_A_DOWNTIME)) == [("fired", 0, 4)]
    assert told(looked(armed(missed=Missed.LATEST, jitter=0), AFTER_A_DOWNTIME)) == [
        ("fired", 0, 4)
    ]


def test_all_is_every_one_in_order_each_once() -> None:
    events = looked(armed(missed=Missed.ALL), AFTER_A_DOWNTIME)
    assert told(events) == [("fired", k, k) for k in range(5)]
    assert [event.due for event in events if isinstance(event, Fired)] == [
        DUE + k * HOUR for k in range(5)
    ]


def test_skip_is_none_of_the_missed_and_the_next_future_slot_fires_normally() -> None:
    reminder = armed(missed=Missed.SKIP)
    events = looked(reminder, AFTER_A_DOWNTIME)
    assert told(events) == [("policy", 0, 4)]
    following = after(reminder, events)
    assert following is not None
    assert (following.occurrence, following.due) == (5, DUE + 5 * HOUR)
    assert told(looked(following, DUE + 5 * HOUR)) == [("fired", 5, 5)]


@pytest.mark.parametrize("policy", Missed)
def test_a_slot_that_is_late_but_not_missed_goes_out_under_any_policy(policy: Missed) -> None:
    assert told(looked(armed(missed=policy), DUE + HOUR - 1)) == [("fired", 0, 0)]


@pytest.mark.parametrize("policy", Missed)
def test_a_one_shot_fires_late_rather_than_never(policy: Missed) -> None:
    assert told(looked(armed(None, missed=policy), DUE + 100 * YEAR)) == [("fired", 0, 0)]


@pytest.mark.parametrize("policy", Missed)
def test_looking_again_brings_nothing_more(policy: Missed) -> None:
    reminder = armed(missed=policy)
    following = after(reminder, looked(reminder, AFTER_A_DOWNTIME))
    assert following is not None
    assert looked(following, AFTER_A_DOWNTIME) == []


# --- bounds of a catch-up


def test_a_catch_up_is_bounded_and_the_older_rest_coalesces_saying_so() -> None:
    limits = Limits(catch_up_fires_max=3)
    events = looked(armed(missed=Missed.ALL), AFTER_A_DOWNTIME, limits)
    assert told(events) == [("fired", 0, 2), ("fired", 3, 3), ("fired", 4, 4)]
    (first, *_) = events
    assert isinstance(first, Fired)
    assert (first.missed, first.missed_due) == (2, DUE)


def test_one_look_fires_so_many_and_the_next_goes_on_behind_them() -> None:
    reminder: Reminder | None = armed(missed=Missed.ALL)
    seen: list[int] = []
    now = DUE + 250 * HOUR
    while reminder is not None and (events := looked(reminder, now)):
        assert len(events) <= FIRES_PER_LOOK_MAX
        seen += [event.occurrence for event in events if isinstance(event, Fired)]
        reminder = after(reminder, events)
    assert seen == list(range(251))


def test_large_payloads_are_fewer_in_one_look() -> None:
    big = armed(missed=Missed.ALL, payload=b"x" * (BYTES_PER_LOOK_MAX // 4))
    assert len(looked(big, AFTER_A_DOWNTIME)) == 3
    huge = armed(missed=Missed.ALL, payload=b"x" * (2 * BYTES_PER_LOOK_MAX))
    assert len(looked(huge, AFTER_A_DOWNTIME)) == 1


def test_work_is_bounded_whatever_the_downtime_was() -> None:
    for policy in Missed:
        events = looked(armed(100, missed=policy), DUE + 7_000 * YEAR)
        assert len(events) <= FIRES_PER_LOOK_MAX + 1


# --- how far back


@pytest.mark.parametrize(
    ("policy", "rest"),
    [
        (Missed.LATEST, [("fired", 3, 4)]),
        (Missed.ALL, [("fired", 3, 3), ("fired", 4, 4)]),
        (Missed.SKIP, [("policy", 3, 4)]),
    ],
)
def test_no_policy_looks_further_back_than_the_catch_up_window(
    policy: Missed, rest: list[tuple[Any, ...]]
) -> None:
    reminder = armed(missed=policy, catch_up=DurationMs(2 * HOUR))
    assert told(looked(reminder, AFTER_A_DOWNTIME)) == [("catch_up", 0, 2), *rest]


def test_a_schedule_that_does_not_say_looks_a_year_back() -> None:
    now = DUE + YEAR + 5 * DAY
    for reminder in (armed(DAY), armed(DAY, jitter=0, ttl=None, until=None)):
        assert told(looked(reminder, now)) == [("catch_up", 0, 4), ("fired", 5, YEAR // DAY + 5)]


def test_what_lies_further_back_altogether_is_skipped_even_when_nothing_is_missed() -> None:
    reminder = armed(5 * YEAR)
    assert told(looked(reminder, DUE + YEAR)) == [("fired", 0, 0)]
    assert told(looked(reminder, DUE + YEAR + 1)) == [("catch_up", 0, 0)]


def test_a_one_shot_with_a_catch_up_window_ends_beyond_it() -> None:
    reminder = armed(None, catch_up=DurationMs(HOUR))
    assert told(looked(reminder, DUE + HOUR)) == [("fired", 0, 0)]
    events = looked(reminder, DUE + HOUR + 1)
    assert told(events) == [("catch_up", 0, 0)]
    assert after(reminder, events) is None


# --- time to live


def test_what_could_not_fire_within_its_time_to_live_expires() -> None:
    reminder = armed(None, ttl=DurationMs(1_000))
    assert told(looked(reminder, DUE + 1_000)) == [("fired", 0, 0)]
    events = looked(reminder, DUE + 1_001)
    assert told(events) == [("expired", 0, 0)]
    assert after(reminder, events) is None


def test_expired_slots_are_told_apart_from_those_that_coalesce() -> None:
    reminder = armed(ttl=DurationMs(2 * HOUR))
    events = looked(reminder, AFTER_A_DOWNTIME)
    assert told(events) == [("expired", 0, 2), ("fired", 3, 4)]
    expired = events[0]
    assert isinstance(expired, Expired)
    assert (expired.first_due, expired.last_due, expired.ttl) == (DUE, DUE + 2 * HOUR, 2 * HOUR)


def test_a_schedule_whose_slots_all_expired_goes_on_with_the_next() -> None:
    reminder = armed(ttl=DurationMs(1))
    following = after(reminder, looked(reminder, AFTER_A_DOWNTIME))
    assert following is not None
    assert (following.occurrence, following.due) == (5, DUE + 5 * HOUR)


def test_what_lies_beyond_the_catch_up_window_is_skipped_and_what_is_within_expires() -> None:
    reminder = armed(catch_up=DurationMs(3 * HOUR), ttl=DurationMs(HOUR))
    assert told(looked(reminder, AFTER_A_DOWNTIME)) == [
        ("catch_up", 0, 1),
        ("expired", 2, 3),
        ("fired", 4, 4),
    ]


# --- the end of a schedule


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        (Missed.LATEST, [("fired", 0, 2)]),
        (Missed.ALL, [("fired", k, k) for k in range(3)]),
        (Missed.SKIP, [("policy", 0, 2)]),
    ],
)
def test_the_last_slot_completes_the_schedule_whatever_becomes_of_it(
    policy: Missed, outcome: list[tuple[Any, ...]]
) -> None:
    reminder = armed(missed=policy, occurrences=3)
    events = looked(reminder, AFTER_A_DOWNTIME)
    assert told(events) == [*outcome, ("completed", 3)]
    assert after(reminder, events) is None


def test_a_schedule_that_ends_says_why() -> None:
    (_, ended) = looked(armed(until=EpochMs(DUE + HOUR - 1)), DUE)
    assert ended == Completed(
        reminder="r", version=Version(7), occurrences=1, reason=Completion.UNTIL
    )


def test_a_one_shot_does_not_complete_it_is_done() -> None:
    assert told(looked(armed(None, ttl=DurationMs(5)), DUE)) == [("fired", 0, 0)]


# --- after a pause

HERE: dict[str, Any] = {"offset": Offset(9), "appended": EpochMs(DUE)}


def resumed(reminder: Reminder, now: int) -> tuple[Event, ...]:
    (paused,) = decide(reminder, Pause(**HERE, reminder="r"), EpochMs(DUE - 1), Limits())
    resting = evolve(reminder, paused)
    return decide(resting, Resume(**HERE, reminder="r"), EpochMs(now), Limits())


def test_after_a_pause_a_schedule_that_skips_drops_all_that_went_by() -> None:
    for late, last in ((0, 0), (HOUR - 1, 0), (HOUR, 1), (5 * HOUR, 5)):
        (skipped, awake) = resumed(armed(missed=Missed.SKIP), DUE + late)
        assert isinstance(skipped, Skipped)
        assert (skipped.reason, skipped.first, skipped.last) == (PassedOver.POLICY, 0, last)
        assert getattr(awake, "occurrence", None) == last + 1


@pytest.mark.parametrize("policy", [Missed.LATEST, Missed.ALL])
def test_after_a_pause_the_other_policies_decide_when_the_reminder_is_awake(
    policy: Missed,
) -> None:
    reminder = armed(missed=policy)
    assert len(resumed(reminder, AFTER_A_DOWNTIME)) == 1


def test_a_pause_over_the_last_slots_of_a_schedule_that_skips_completes_it() -> None:
    events = resumed(armed(missed=Missed.SKIP, occurrences=2), AFTER_A_DOWNTIME)
    assert told(list(events)) == [("policy", 0, 1), ("completed", 2)]


def test_a_one_shot_that_went_by_in_a_pause_fires_late_even_under_skip() -> None:
    assert len(resumed(armed(None, missed=Missed.SKIP), AFTER_A_DOWNTIME)) == 1


# --- the plain path


def test_defaults_that_are_spelled_out_decide_as_no_options_do() -> None:
    for every in (None, HOUR):
        for late in (0, HOUR, AFTER_A_DOWNTIME - DUE, YEAR, 2 * YEAR):
            plain = armed(every)
            spelled = replace(plain, spec=replace(plain.spec, options=Options()))
            assert looked(spelled, DUE + late) == looked(plain, DUE + late)
