"""Timer: what is due goes out, or to the dead letters; nothing else does."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tocsin.app.processors.timer import timer
from tocsin.core.events import Fired, Kind, Undeliverable
from tocsin.core.limits import Limits
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.schedule.values import Cron
from tocsin.core.values import DurationMs, EpochMs, Offset, Version
from tocsin.dataflow import Armament, BuryDelivery, Change, Deliver, Due, Effect, Note, Turn

ACTOR = "order/1"
DUE = EpochMs(1_800_000_000_000)
HOUR = DurationMs(3_600_000)
ALLOWED = Limits(targets=frozenset({"orders", "others"}))


class Empty:
    """A View of nothing: all that a fire needs is in its due entry."""

    def reminder(self, actor: str, name: str) -> Reminder | None:
        return None

    def reminders(self, actor: str, beginning: str = "") -> list[Reminder]:
        return []

    def armed(self, actor: str) -> int:
        return 0


def armed(every: DurationMs | None = None, to: str | None = None) -> Reminder:
    spec = Spec(
        reminder="pay",
        version=Version(7),
        anchor=DUE,
        every=every,
        payload=b"{}",
        content_type=None,
        headers=(),
        to=to,
        traceparent=None,
    )
    return Reminder(spec, 0, DUE)


def fire(
    reminder: Reminder,
    now: int = DUE,
    limits: Limits = ALLOWED,
    rejections: Mapping[str | Armament, str] | None = None,
) -> list[Effect]:
    turn = Turn(
        partition=3,
        partitions=16,
        now=EpochMs(now),
        next_command=Offset(12),
        limits=limits,
        rejections=rejections or {},
    )
    return timer(Due(ACTOR, reminder), Empty(), turn)


FIRED_ONCE = Fired("pay", Version(7), Kind.SCHEDULED, 0, DUE, DUE, 0, None, None, None, Offset(12))


def test_nothing_goes_out_before_its_due() -> None:
    assert fire(armed(), DUE - 1) == []


def test_a_one_shot_is_delivered_noted_and_gone() -> None:
    reminder = armed()
    assert fire(reminder) == [
        Deliver(ACTOR, reminder.spec, FIRED_ONCE),
        Note(ACTOR.encode(), FIRED_ONCE, None, False),
        Change(ACTOR, "pay", reminder, None),
    ]


def test_an_interval_is_open_for_its_next_slot_on_the_grid() -> None:
    reminder = armed(every=HOUR)
    (change,) = [effect for effect in fire(reminder, DUE + 5) if isinstance(effect, Change)]
    assert change.after == Reminder(reminder.spec, 1, EpochMs(DUE + HOUR))


def test_missed_slots_are_one_delivery() -> None:
    effects = fire(armed(every=HOUR), DUE + 5 * HOUR)
    assert [type(effect) for effect in effects] == [Deliver, Note, Change]


def test_what_fired_does_not_fire_again_at_that_instant() -> None:
    (change,) = [effect for effect in fire(armed(every=HOUR)) if isinstance(effect, Change)]
    assert change.after is not None
    assert fire(change.after) == []


@pytest.mark.parametrize(
    ("limits", "rejections"),
    [
        (Limits(), {}),
        (ALLOWED, {"orders": "gone"}),
        (ALLOWED, {(3, Version(7)): "too large"}),
    ],
    ids=["no longer allowed", "target refused", "record refused"],
)
def test_what_no_broker_takes_goes_to_the_dead_letters(
    limits: Limits, rejections: Mapping[str | Armament, str]
) -> None:
    effects = fire(armed(to="orders"), limits=limits, rejections=rejections)
    assert [type(effect) for effect in effects] == [BuryDelivery, Note, Change]


def test_an_undeliverable_event_says_why() -> None:
    effects = fire(armed(to="orders"), rejections={"orders": "gone"})
    (note,) = [effect for effect in effects if isinstance(effect, Note)]
    assert isinstance(note.event, Undeliverable)
    assert (note.event.target, note.event.error) == ("orders", "gone")


def test_an_undeliverable_slot_does_not_end_the_schedule() -> None:
    reminder = armed(every=HOUR, to="orders")
    effects = fire(reminder, rejections={"orders": "gone"})
    (change,) = [effect for effect in effects if isinstance(effect, Change)]
    assert change.after == Reminder(reminder.spec, 1, EpochMs(DUE + HOUR))


@pytest.mark.parametrize("to", [None, "others"])
def test_what_one_target_refuses_does_not_stop_the_others(to: str | None) -> None:
    effects = fire(armed(to=to), rejections={"orders": "gone", (3, Version(8)): "too large"})
    assert isinstance(effects[0], Deliver)


def test_a_refused_record_is_known_by_its_partition_too() -> None:
    effects = fire(armed(), rejections={(5, Version(7)): "too large"})
    assert isinstance(effects[0], Deliver)


def test_a_lost_zone_leaves_a_dead_letter_and_ends_the_reminder() -> None:
    reminder = armed()
    spec = replace(reminder.spec, cron=Cron(text="@DAILY", zone="Mars/Phobos"))
    effects = fire(Reminder(spec, 0, DUE))
    (letter,) = [effect for effect in effects if isinstance(effect, BuryDelivery)]
    assert "Mars/Phobos" in letter.error
    (change,) = [effect for effect in effects if isinstance(effect, Change)]
    assert change.after is None
