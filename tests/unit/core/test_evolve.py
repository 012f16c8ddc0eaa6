"""State is a fold of events: what each event leaves behind."""

from typing import Any

import pytest
from msgspec.structs import replace

from tocsin.core.errors import Reason
from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Destroyed,
    Ended,
    Event,
    Fired,
    Kind,
    Moved,
    NothingCancelled,
    Refused,
    Undeliverable,
)
from tocsin.core.evolve import evolve
from tocsin.core.naming import operation_and_key
from tocsin.core.reminder import Reminder, Spec, next_due
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

DUE = EpochMs(1_800_000_000_000)
HOUR = DurationMs(3_600_000)

SPEC = Spec(
    reminder="pay:1",
    version=Version(7),
    anchor=DUE,
    every=HOUR,
    payload=b"{}",
    content_type="application/json",
    headers=(("tenant", b"acme"),),
    to="orders",
    traceparent="00-1-2-01",
)
REMINDER = Reminder(SPEC, 3, EpochMs(DUE + 3 * HOUR))
ENDED = Ended(version=Version(7), occurrence=3, due=EpochMs(DUE + 3 * HOUR))


def fired(kind: Kind, following: int | None) -> Fired:
    return Fired(
        "pay:1",
        Version(7),
        kind,
        3,
        EpochMs(DUE + 3 * HOUR),
        EpochMs(DUE + 3 * HOUR + 5),
        0,
        None,
        following,
        None if following is None else EpochMs(DUE + following * HOUR),
        Offset(12),
    )


def undeliverable(event: Fired) -> Undeliverable:
    return Undeliverable(fired=event, target="orders", error="gone")


@pytest.mark.parametrize("before", [None, REMINDER])
def test_armed_starts_at_occurrence_0_whatever_was_before(before: Reminder | None) -> None:
    assert evolve(before, Armed(spec=SPEC)) == Reminder(SPEC, 0, DUE)


def test_moved_starts_anew_and_keeps_all_else() -> None:
    moved = Moved(
        reminder="pay:1", version=Version(9), anchor=EpochMs(DUE + 1), every=None, previous=ENDED
    )
    spec = replace(SPEC, version=Version(9), anchor=EpochMs(DUE + 1), every=None)
    assert evolve(REMINDER, moved) == Reminder(spec, 0, EpochMs(DUE + 1))


@pytest.mark.parametrize("wrap", [lambda event: event, undeliverable])
def test_a_scheduled_fire_opens_the_next_slot(wrap: Any) -> None:
    after = evolve(REMINDER, wrap(fired(Kind.SCHEDULED, 4)))
    assert after == Reminder(SPEC, 4, EpochMs(DUE + 4 * HOUR))


@pytest.mark.parametrize("wrap", [lambda event: event, undeliverable])
@pytest.mark.parametrize("kind", Kind)
def test_a_fire_without_a_next_slot_ends_the_reminder(kind: Kind, wrap: Any) -> None:
    assert evolve(REMINDER, wrap(fired(kind, None))) is None


@pytest.mark.parametrize("wrap", [lambda event: event, undeliverable])
def test_a_fire_by_hand_changes_nothing_of_an_interval(wrap: Any) -> None:
    assert evolve(REMINDER, wrap(fired(Kind.MANUAL, 3))) is REMINDER


def test_a_fire_keeps_the_very_same_spec_so_that_no_payload_is_written_again() -> None:
    after = evolve(REMINDER, fired(Kind.SCHEDULED, 4))
    assert after is not None
    assert after.spec is SPEC


@pytest.mark.parametrize(
    "event",
    [
        Cancelled(reminder="pay:1", version=Version(7), occurrence=3, due=DUE),
        Destroyed(reminders=1),
    ],
)
def test_what_is_cancelled_or_destroyed_is_gone(event: Event) -> None:
    assert evolve(REMINDER, event) is None


@pytest.mark.parametrize("before", [None, REMINDER])
@pytest.mark.parametrize(
    "event",
    [
        NothingCancelled(reminder="pay:1"),
        Refused(
            reason=Reason.EXISTS,
            command="arm",
            reminder="pay:1",
            field="reminder",
            value="'pay:1'",
            way_out="leave it",
        ),
        CommandsLost(first=Offset(1), last=Offset(2)),
    ],
)
def test_what_changed_nothing_leaves_the_state(before: Reminder | None, event: Event) -> None:
    assert evolve(before, event) is before


def test_the_engine_looks_again_when_the_open_slot_is_due() -> None:
    assert next_due(REMINDER) == DUE + 3 * HOUR


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("pay", ("pay", None)),
        ("pay:1", ("pay", "1")),
        ("pay:a:b::", ("pay", "a:b::")),
        ("pay::", ("pay", ":")),
        ("\0", ("\0", None)),
        ("⏰:\0/\\|@#", ("⏰", "\0/\\|@#")),
    ],
)
def test_the_first_colon_ends_the_operation(name: str, parts: tuple[str, str | None]) -> None:
    assert operation_and_key(name) == parts
