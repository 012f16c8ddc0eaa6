"""Arming in start-up code neither doubles nor postpones; one alarm for a queue only comes near."""

from typing import Any

import pytest

from tocsin.core.commands import Arm, Move
from tocsin.core.decide import decide
from tocsin.core.events import Armed, Event, Kept, Moved, Unchanged
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.reminder import Reminder
from tocsin.core.values import DurationMs, EpochMs, Offset

NOW = 1_800_000_000_000
HOUR = 3_600_000
LIMITS = Limits(targets=frozenset({"orders"}))


def asked(after_ms: int, before: Reminder | None = None, **what: Any) -> Event:
    """Return what an Arm is answered that was sent so long after NOW."""
    at = EpochMs(NOW + after_ms)
    command = Arm(offset=Offset(9 + after_ms), appended=at, reminder="pay", **what)
    (event,) = decide(before, command, at, LIMITS)
    return event


def armed(**what: Any) -> Reminder:
    reminder = evolve(None, asked(0, **what))
    assert reminder is not None
    return reminder


WHENS: list[dict[str, Any]] = [
    {},
    {"after": DurationMs(5 * HOUR)},
    {"after": DurationMs(0)},
    {"every": DurationMs(HOUR)},
    {"every": DurationMs(HOUR), "after": DurationMs(5)},
    {"at": EpochMs(NOW + 5 * HOUR)},
    {"at": EpochMs(NOW + 5)},
    {"at": EpochMs(NOW - 5 * HOUR), "every": DurationMs(HOUR)},
    {"at": EpochMs(0)},
]


@pytest.mark.parametrize("when", WHENS)
def test_arming_the_same_again_in_start_up_code_changes_nothing(when: dict[str, Any]) -> None:
    before = armed(**when, payload=b"x", headers=(("a", None),))
    again = asked(HOUR, before, **when, payload=b"x", headers=(("a", None),), if_changed=True)
    assert again == Kept(
        reminder="pay",
        version=before.spec.version,
        occurrence=0,
        due=before.due,
        reason=Unchanged.SAME,
    )


@pytest.mark.parametrize("when", WHENS)
@pytest.mark.parametrize("other", WHENS)
def test_another_schedule_is_a_change(when: dict[str, Any], other: dict[str, Any]) -> None:
    event = asked(HOUR, armed(**when), **other, if_changed=True)
    # Without a due, a reminder is due at its first slot: the delay may be said or left out.
    now: tuple[dict[str, Any], ...] = ({}, {"after": DurationMs(0)})
    assert isinstance(event, Kept) == (when == other or (when in now and other in now))


@pytest.mark.parametrize(
    "change",
    [
        {"payload": b"y"},
        {"content_type": "x/y"},
        {"headers": (("a", None),)},
        {"to": "orders"},
        {"every": DurationMs(HOUR)},
    ],
)
def test_another_payload_or_option_is_a_change(change: dict[str, Any]) -> None:
    event = asked(HOUR, armed(after=DurationMs(HOUR)), **{"after": HOUR} | change, if_changed=True)
    assert isinstance(event, Armed)


def test_another_trace_context_is_no_change() -> None:
    assert isinstance(asked(1, armed(), if_changed=True, traceparent="00-1-2-01"), Kept)


def test_what_was_moved_is_not_as_it_was_armed() -> None:
    before = armed(after=DurationMs(HOUR))
    move = Move(offset=Offset(10), appended=EpochMs(NOW), reminder="pay", after=DurationMs(5))
    (moved,) = decide(before, move, EpochMs(NOW), LIMITS)
    assert isinstance(moved, Moved)
    after = evolve(before, moved)
    assert isinstance(asked(1, after, after=DurationMs(HOUR), if_changed=True), Armed)
    assert isinstance(asked(1, after, after=DurationMs(5), if_changed=True), Kept)


def test_what_is_not_armed_is_armed_under_any_condition() -> None:
    assert isinstance(asked(0, None, if_changed=True, if_earlier=True), Armed)


@pytest.mark.parametrize(("due", "kind"), [(-1, Armed), (0, Kept), (1, Kept)])
def test_only_an_earlier_due_takes_the_place(due: int, kind: type[Event]) -> None:
    before = armed(at=EpochMs(NOW + HOUR))
    event = asked(1, before, at=EpochMs(NOW + HOUR + due), payload=b"new", if_earlier=True)
    assert type(event) is kind


def test_what_is_not_earlier_tells_what_stays() -> None:
    before = armed(every=DurationMs(HOUR))
    before = Reminder(before.spec, 3, EpochMs(NOW + 4 * HOUR))
    assert asked(0, before, at=EpochMs(NOW + 4 * HOUR), if_earlier=True) == Kept(
        reminder="pay",
        version=before.spec.version,
        occurrence=3,
        due=EpochMs(NOW + 4 * HOUR),
        reason=Unchanged.NOT_EARLIER,
    )


def test_both_conditions_must_hold() -> None:
    before = armed(at=EpochMs(NOW + HOUR))
    same = asked(1, before, at=EpochMs(NOW + HOUR), if_earlier=True, if_changed=True)
    later = asked(1, before, at=EpochMs(NOW + HOUR + 1), if_earlier=True, if_changed=True)
    earlier = asked(1, before, at=EpochMs(NOW + HOUR - 1), if_earlier=True, if_changed=True)
    assert isinstance(same, Kept)
    assert isinstance(later, Kept)
    assert isinstance(earlier, Armed)
