"""Reminders by a calendar: slots keep their number, and the zone decides when they are due."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.commands import Arm, Fire, FireDue, Move, Pause, Resume
from tocsin.core.decide import decide, decide_due
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Armed,
    Completed,
    Event,
    Expired,
    Fired,
    Kept,
    Moved,
    Refused,
    Resumed,
    Skipped,
    Undeliverable,
)
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.reminder import Missed, Options, Reminder, Spec
from tocsin.core.schedule.slots import next_slot
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.schedule.zones import tz_version
from tocsin.core.time_text import parse_instant
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

#: A Monday in winter.
NOW = EpochMs(parse_instant("2027-01-18T12:00:00Z"))
DAY = 86_400_000
HERE: dict[str, Any] = {"offset": Offset(9), "appended": NOW, "reminder": "r"}
BERLIN: dict[str, Any] = {"cron": "0 2 * * *", "zone": "Europe/Berlin"}


def ms(text: str) -> EpochMs:
    return EpochMs(parse_instant(text))


def decided(command: Any, reminder: Reminder | None = None) -> Event:
    (event,) = decide(reminder, command, NOW, Limits())
    return event


def armed(**what: Any) -> Reminder:
    reminder = evolve(None, decided(Arm(**HERE | what)))
    assert reminder is not None
    return reminder


def looked(reminder: Reminder, now: int, limits: Limits | None = None) -> tuple[Event, ...]:
    command = FireDue(version=reminder.spec.version, next_command=Offset(12))
    return decide_due(reminder, command, EpochMs(now), limits or Limits())


def after(reminder: Reminder | None, events: tuple[Event, ...]) -> Reminder | None:
    for event in events:
        reminder = evolve(reminder, event)
    return reminder


def told(events: tuple[Event, ...]) -> list[tuple[Any, ...]]:
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


# --- arming


def test_without_a_due_the_first_slot_is_the_first_of_the_calendar() -> None:
    event = decided(Arm(**HERE, **BERLIN))
    assert isinstance(event, Armed)
    assert event.spec.anchor == ms("2027-01-19T02:00+01:00")
    assert event.spec.cron == Cron(text="0 2 * * *", zone="Europe/Berlin")


def test_the_event_says_which_tz_database_computed_the_slot() -> None:
    event = decided(Arm(**HERE, **BERLIN))
    assert isinstance(event, Armed)
    assert event.tz == tz_version()
    plain = decided(Arm(**HERE, every=DurationMs(1_000)))
    assert isinstance(plain, Armed)
    assert plain.tz is None


def test_a_due_that_is_given_is_the_first_occurrence_and_the_calendar_goes_on_from_there() -> None:
    reminder = armed(**BERLIN, at=EpochMs(NOW + 5))
    (event,) = looked(reminder, NOW + 5)
    assert isinstance(event, Fired)
    assert (event.occurrence, event.due) == (0, NOW + 5)
    assert event.next_due == ms("2027-01-19T02:00+01:00")


def test_every_option_of_the_calendar_is_kept() -> None:
    reminder = armed(**BERLIN, gap="skip", overlap="both", exclude=("2027-12-24", "2027-01-19"))
    assert reminder.spec.cron == Cron(
        text="0 2 * * *",
        zone="Europe/Berlin",
        gap=Gap.SKIP,
        overlap=Overlap.BOTH,
        exclude=("2027-01-19", "2027-12-24"),
    )
    assert reminder.due == ms("2027-01-20T02:00+01:00")


def test_a_nightly_report_is_due_at_its_local_time_in_winter_and_in_summer() -> None:
    reminder: Reminder | None = armed(cron="30 3 * * *", zone="Europe/Berlin")
    dues: list[int] = []
    while reminder is not None and len(dues) < 100:
        (event,) = looked(reminder, reminder.due)
        assert isinstance(event, Fired)
        assert event.occurrence == len(dues)
        dues.append(event.due)
        reminder = evolve(reminder, event)
    assert dues[0] == ms("2027-01-19T03:30+01:00")
    assert ms("2027-03-27T03:30+01:00") in dues
    assert ms("2027-03-28T03:30+02:00") in dues
    assert {(later - due) // 3_600_000 for due, later in pairwise(dues)} == {
        23,
        24,
    }


@pytest.mark.parametrize(
    ("what", "field", "way_out"),
    [
        ({"cron": "61 * * * *"}, "cron", "minute is '61'"),
        ({"cron": "0 0 30 2 *"}, "cron", "it never matches"),
        ({"cron": "* * *"}, "cron", "it has 3 fields"),
        ({"cron": "@daily", "zone": "Mars/Phobos"}, "zone", "the tz database"),
        ({"cron": "@daily", "gap": "after,skip"}, "gap", "give one of after, skip"),
        ({"cron": "@daily", "overlap": "x"}, "overlap", "give one of first, second, both"),
        ({"cron": "@daily", "exclude": ("24.12.2027",)}, "exclude", "it is no date"),
        ({"cron": "@daily", "every": DurationMs(1_000)}, "cron", "every and cron exclude each"),
        ({"zone": "Europe/Berlin"}, "zone", "give cron as well, or leave it out"),
        ({"every": DurationMs(1_000), "gap": "skip"}, "gap", "give cron as well, or leave it out"),
        ({"overlap": "both"}, "overlap", "give cron as well, or leave it out"),
        ({"exclude": ("2027-12-24",)}, "exclude", "give cron as well, or leave it out"),
        ({"cron": "@daily", "until": NOW}, "until", "give a later until, or an earlier due"),
    ],
)
def test_what_a_calendar_cannot_mean_is_refused(
    what: dict[str, Any], field: str, way_out: str
) -> None:
    event = decided(Arm(**HERE, **what))
    assert isinstance(event, Refused)
    assert (event.reason, event.field) == (Reason.INVALID, field)
    assert way_out in event.way_out


# --- changing it


def test_a_move_to_a_calendar_leaves_nothing_of_the_interval() -> None:
    interval = armed(every=DurationMs(1_000))
    moved = decided(Move(**HERE, **BERLIN), interval)
    assert isinstance(moved, Moved)
    assert moved.anchor == ms("2027-01-19T02:00+01:00")
    assert (moved.every, moved.tz) == (None, tz_version())
    (event,) = looked(after(interval, (moved,)) or interval, moved.anchor)
    assert isinstance(event, Fired)
    assert event.next_due == ms("2027-01-20T02:00+01:00")


def test_a_move_to_an_interval_leaves_nothing_of_the_calendar() -> None:
    moved = after(armed(**BERLIN), (decided(Move(**HERE, every=DurationMs(1_000)), armed()),))
    assert moved is not None
    assert (moved.spec.cron, moved.spec.every, moved.due) == (None, 1_000, NOW + 1_000)


def test_a_move_of_the_due_keeps_the_calendar() -> None:
    reminder = armed(**BERLIN)
    moved = after(reminder, (decided(Move(**HERE, at=EpochMs(NOW + 5)), reminder),))
    assert moved is not None
    assert (moved.due, moved.spec.cron) == (NOW + 5, reminder.spec.cron)


def test_changing_the_calendar_leaves_nothing_of_the_old_one() -> None:
    reminder = armed(**BERLIN)
    moved = after(reminder, (decided(Move(**HERE, cron="@hourly"), reminder),))
    assert moved is not None
    assert moved.spec.cron == Cron(text="@HOURLY")
    assert looked(reminder, reminder.due) != ()
    assert looked(moved, moved.due - 1) == ()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, Kept),
        ({"cron": "0  2 * * *"}, Kept),
        ({"zone": "Europe/Paris"}, Armed),
        ({"cron": "0 3 * * *"}, Armed),
        ({"gap": "skip"}, Armed),
        ({"gap": "after"}, Kept),
        ({"exclude": ("2027-12-24",)}, Armed),
        ({"after": DurationMs(0)}, Armed),
    ],
)
def test_arming_the_same_calendar_in_start_up_code_changes_nothing(
    change: dict[str, Any], kind: type[Event]
) -> None:
    reminder = armed(**BERLIN)
    later = HERE | {"offset": Offset(10), "appended": EpochMs(NOW + 3 * DAY)}
    again = Arm(**later | BERLIN | change, if_changed=True)
    (event,) = decide(reminder, again, EpochMs(NOW + 3 * DAY), Limits())
    assert type(event) is kind


# --- when it is late

#: The engine comes back at noon of the sixth day: slots 0 to 4 went by.
LATE = NOW + 5 * DAY


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        ({}, [("fired", 0, 4)]),
        ({"missed": "all"}, [("fired", k, k) for k in range(5)]),
        ({"missed": "skip"}, [("policy", 0, 4)]),
        ({"catch_up": DurationMs(2 * DAY)}, [("catch_up", 0, 2), ("fired", 3, 4)]),
        ({"ttl": DurationMs(2 * DAY)}, [("expired", 0, 2), ("fired", 3, 4)]),
        ({"ttl": DurationMs(1)}, [("expired", 0, 4)]),
        ({"occurrences": 3}, [("fired", 0, 2), ("completed", 3)]),
        ({"until": ms("2027-01-20T02:00+01:00")}, [("fired", 0, 1), ("completed", 2)]),
    ],
)
def test_what_went_by_is_decided_as_for_intervals(
    options: dict[str, Any], outcome: list[tuple[Any, ...]]
) -> None:
    reminder = armed(**BERLIN, **options)
    events = looked(reminder, LATE)
    assert told(events) == outcome
    following = after(reminder, events)
    if following is not None:
        assert (following.occurrence, following.due) == (5, ms("2027-01-24T02:00+01:00"))


def test_a_year_of_a_cron_by_the_second_is_counted_and_not_walked_through() -> None:
    for policy in Missed:
        reminder = armed(cron="* * * * * *", missed=policy)
        events = looked(reminder, NOW + 300 * DAY)
        first = events[0]
        assert isinstance(first, Fired | Skipped)
        if policy is Missed.LATEST:
            assert told(events) == [("fired", 0, 300 * DAY // 1_000 - 1)]
        elif policy is Missed.ALL:
            assert told(events)[0] == ("fired", 0, 300 * DAY // 1_000 - 10_000)
            assert len(events) == 100


def test_jitter_of_a_calendar_stays_before_the_next_slot() -> None:
    reminder: Reminder | None = armed(cron="* * * * *", jitter=DurationMs(DAY))
    for _ in range(50):
        assert reminder is not None
        wake = reminder.due if reminder.wake is None else reminder.wake
        assert reminder.due <= wake < reminder.due + 60_000
        reminder = after(reminder, looked(reminder, wake))


def test_a_fire_by_hand_leaves_the_open_slot_of_a_calendar() -> None:
    reminder = armed(**BERLIN)
    event = decided(Fire(**HERE), reminder)
    assert isinstance(event, Fired)
    assert evolve(reminder, event) is reminder


minutes = st.sampled_from(["*", "*/7", "0,30", "59"])
hours = st.sampled_from(["*", "2", "2-3", "*/5"])
zones = st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"])


@given(
    minutes,
    hours,
    zones,
    st.sampled_from(Missed),
    st.none() | st.integers(1, 40),
    st.integers(0, 4 * DAY),
    st.sampled_from([ms("2027-03-27T00:00Z"), ms("2027-10-30T00:00Z"), ms("2017-10-14T00:00Z")]),
)
def test_one_look_is_what_walking_through_the_calendar_says(
    minute: str,
    hour: str,
    zone: str,
    policy: Missed,
    occurrences: int | None,
    wait: int,
    start: EpochMs,
) -> None:
    cron = Cron(text=f"{minute} {hour} * * *", zone=zone)
    first = next_slot(cron, start)
    assert first is not None
    spec = Spec(
        reminder="r",
        version=Version(9),
        anchor=first.due,
        every=None,
        payload=b"",
        content_type=None,
        headers=(),
        to=None,
        traceparent=None,
        cron=cron,
        options=Options(missed=policy, occurrences=occurrences),
    )
    now = first.due + wait
    walked = [first.due]
    while (slot := next_slot(cron, walked[-1])) is not None and slot.due <= now:
        walked.append(slot.due)
    ends = occurrences is not None and len(walked) >= occurrences
    walked = walked[:occurrences]
    reminder = Reminder(spec, 0, first.due)
    events = looked(reminder, now, Limits(catch_up_fires_max=30))
    fires = [(event.occurrence, event.due) for event in events if isinstance(event, Fired)]
    numbered = list(enumerate(walked))
    if policy is Missed.LATEST:
        assert fires == numbered[-1:]
    elif policy is Missed.ALL:
        assert fires == numbered[-30:]
    else:
        assert fires == (numbered if len(numbered) == 1 else [])
    assert isinstance(events[-1], Completed) == ends
    following = after(reminder, events)
    if following is not None:
        assert following.occurrence == len(walked)
        assert following.due == getattr(next_slot(cron, walked[-1]), "due", None)


# --- a zone that is gone


def in_a_lost_zone(**options: Any) -> Reminder:
    spec = Spec(
        reminder="r",
        version=Version(9),
        anchor=NOW,
        every=None,
        payload=b"{}",
        content_type=None,
        headers=(),
        to=None,
        traceparent=None,
        cron=Cron(text="0 2 * * *", zone="Mars/Phobos"),
        options=Options(**options) if options else None,
    )
    return Reminder(spec, 0, NOW)


def test_a_reminder_whose_zone_no_longer_exists_ends_in_the_dead_letters_and_says_why() -> None:
    reminder = in_a_lost_zone()
    (event,) = looked(reminder, NOW + 5)
    assert isinstance(event, Undeliverable)
    assert "zone = 'Mars/Phobos'" in event.error
    assert tz_version() in event.error
    assert evolve(reminder, event) is None


def test_what_skips_in_a_lost_zone_can_be_resumed_and_then_ends_in_the_dead_letters() -> None:
    reminder = in_a_lost_zone(missed=Missed.SKIP)
    resting = after(reminder, (decided(Pause(**HERE), reminder),))
    resumed = decided(Resume(**HERE), resting)
    assert isinstance(resumed, Resumed)
    awake = after(resting, (resumed,))
    assert awake is not None
    (event,) = looked(awake, NOW + 5)
    assert isinstance(event, Undeliverable)


def test_a_reminder_in_a_lost_zone_can_be_moved_to_another_calendar() -> None:
    reminder = in_a_lost_zone()
    moved = after(reminder, (decided(Move(**HERE, **BERLIN), reminder),))
    assert moved is not None
    assert isinstance(looked(moved, moved.due)[0], Fired)
