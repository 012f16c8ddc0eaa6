"""What options a reminder may have, and how each refusal reads."""

from typing import Any

import pytest

from tocsin.core.commands import Arm, Move
from tocsin.core.decide import decide
from tocsin.core.events import Armed, Event, Refused
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.reminder import Missed, Options
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX
from tocsin.core.values import DurationMs, EpochMs, Offset

NOW = EpochMs(1_800_000_000_000)
HOUR = DurationMs(3_600_000)
HERE: dict[str, Any] = {"offset": Offset(9), "appended": NOW, "reminder": "r"}
LATE = "every fire is a little late, so nothing would go out: give a longer one, or leave it out"


def decided(**what: Any) -> Event:
    (event,) = decide(None, Arm(**HERE, **what), NOW, Limits())
    return event


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({}, None),
        ({"jitter": DurationMs(0)}, None),
        ({"missed": "latest"}, None),
        ({"missed": "all"}, Options(missed=Missed.ALL)),
        ({"catch_up": HOUR}, Options(catch_up=HOUR)),
        ({"ttl": DurationMs(1)}, Options(ttl=DurationMs(1))),
        ({"jitter": HOUR}, Options(jitter=HOUR)),
        ({"every": HOUR, "occurrences": 1}, Options(occurrences=1)),
        ({"every": HOUR, "until": INSTANT_MS_MAX}, Options(until=EpochMs(INSTANT_MS_MAX))),
        ({"every": HOUR, "until": NOW + HOUR}, Options(until=EpochMs(NOW + HOUR))),
    ],
)
def test_options_are_as_asked_and_defaults_are_none(
    asked: dict[str, Any], options: Options | None
) -> None:
    event = decided(**asked)
    assert isinstance(event, Armed)
    assert event.spec.options == options


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"missed": "most"}, "missed = 'most': give one of latest, all, skip"),
        ({"catch_up": 0}, f"catch_up = 0: {LATE}"),
        ({"catch_up": -1}, "catch_up = -1: a duration is from 0 to 1,000 years"),
        ({"ttl": 0}, f"ttl = 0: {LATE}"),
        (
            {"ttl": DURATION_MS_MAX + 1},
            f"ttl = {DURATION_MS_MAX + 1}: a duration is from 0 to 1,000 years",
        ),
        ({"jitter": -1}, "jitter = -1: a duration is from 0 to 1,000 years"),
        (
            {"jitter": 5, "ttl": 5},
            (
                "jitter = 5: it may delay a fire beyond ttl, 5 ms, so that it never goes out: "
                "give a shorter jitter, or a longer ttl"
            ),
        ),
        (
            {"jitter": 5, "catch_up": 4},
            (
                "jitter = 5: it may delay a fire beyond catch_up, 4 ms, so that it never goes out: "
                "give a shorter jitter, or a longer catch_up"
            ),
        ),
        (
            {"every": HOUR, "until": INSTANT_MS_MAX + 1},
            f"until = {INSTANT_MS_MAX + 1}: an instant lies in the years 1 to 9999",
        ),
        (
            {"every": HOUR, "occurrences": 0},
            "occurrences = 0: a schedule has 1 occurrence or more",
        ),
        (
            {"occurrences": 3},
            (
                "occurrences = 3: occurrences ends a schedule: give every or cron as well, or leave"
                " it out; a one-shot that must not be late has a ttl"
            ),
        ),
        (
            {"until": NOW},
            (
                f"until = {NOW}: until ends a schedule: give every or cron as well, or leave it "
                "out; a one-shot that must not be late has a ttl"
            ),
        ),
        (
            {"every": HOUR, "until": NOW + HOUR - 1},
            (
                f"until = {NOW + HOUR - 1}: the first occurrence is due at "
                "2027-01-15T09:00:00.000Z, after the last instant, until = "
                "2027-01-15T08:59:59.999Z: give a later until, or an earlier due"
            ),
        ),
    ],
)
def test_what_an_option_cannot_mean_is_refused(asked: dict[str, Any], message: str) -> None:
    event = decided(**asked)
    assert isinstance(event, Refused)
    assert f"{event.field} = {event.value}: {event.way_out}" == message


def test_a_move_beyond_the_last_instant_is_refused() -> None:
    reminder = evolve(None, decided(every=HOUR, until=EpochMs(NOW + 5 * HOUR)))
    move = Move(**HERE, after=DurationMs(6 * HOUR))
    (event,) = decide(reminder, move, NOW, Limits())
    assert isinstance(event, Refused)
    assert event.field == "after"
    assert "give a later until, or an earlier due" in event.way_out


def test_a_move_keeps_the_options() -> None:
    reminder = evolve(None, decided(every=HOUR, occurrences=3))
    assert reminder is not None
    (event,) = decide(reminder, Move(**HERE, after=HOUR), NOW, Limits())
    moved = evolve(reminder, event)
    assert moved is not None
    assert moved.spec.options == reminder.spec.options
