"""Intake: each command has an answer, and what it brings about."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pytest

from tocsin.app.processors.intake import intake
from tocsin.core.commands import (
    Arm,
    Cancel,
    Destroy,
    Fire,
    Move,
    Pause,
    Resume,
    ServiceCommand,
)
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import (
    Armed,
    Cancelled,
    Destroyed,
    Fired,
    Kept,
    Moved,
    NothingCancelled,
    Refused,
    Undeliverable,
)
from tocsin.core.limits import Limits
from tocsin.core.partitioning import partition_of
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.values import DurationMs, EpochMs, Offset, Version
from tocsin.dataflow import (
    Armament,
    BuryCommand,
    BuryDelivery,
    Change,
    Deliver,
    Effect,
    Incoming,
    Note,
    Record,
    Turn,
)

ACTOR = "order/1"
PARTITIONS = 16
HOME = partition_of(ACTOR.encode(), PARTITIONS)
NOW = EpochMs(1_800_000_000_000)
HOUR = DurationMs(3_600_000)
HERE: dict[str, Any] = {"offset": Offset(9), "appended": NOW}
UNREADABLE = Refusal(Reason.UNDECODABLE, "value", b"?", "send Avro or JSON")

E_co = TypeVar("E_co", bound=Effect, covariant=True)


class InMemory:
    """A View of what it is given."""

    def __init__(self, *reminders: Reminder, actor: str = ACTOR) -> None:
        self.armed_now: Mapping[str, dict[str, Reminder]] = {
            actor: {reminder.spec.reminder: reminder for reminder in reminders}
        }

    def reminder(self, actor: str, name: str) -> Reminder | None:
        return self.armed_now.get(actor, {}).get(name)

    def reminders(self, actor: str, beginning: str = "") -> list[Reminder]:
        armed_now = sorted(self.armed_now.get(actor, {}).items())
        return [reminder for name, reminder in armed_now if name.startswith(beginning)]

    def armed(self, actor: str) -> int:
        return len(self.armed_now.get(actor, {}))


def armed(name: str = "pay", every: DurationMs | None = None, to: str | None = None) -> Reminder:
    spec = Spec(
        reminder=name,
        version=Version(7),
        anchor=EpochMs(NOW + HOUR),
        every=every,
        payload=b"{}",
        content_type=None,
        headers=(),
        to=to,
        traceparent=None,
    )
    return Reminder(spec, 0, spec.anchor)


def answered(
    command: ServiceCommand | Refusal,
    *reminders: Reminder,
    key: bytes | None = ACTOR.encode(),
    partition: int = HOME,
    limits: Limits | None = None,
    rejections: Mapping[str | Armament, str] | None = None,
) -> list[Effect]:
    record = Record("tocsin.commands", partition, Offset(9), key, b"value", (), NOW, True)
    turn = Turn(
        partition=partition,
        partitions=PARTITIONS,
        now=NOW,
        next_command=Offset(10),
        limits=limits or Limits(),
        rejections=rejections or {},
    )
    return intake(Incoming(record, command), InMemory(*reminders), turn)


def of(kind: type[E_co], effects: Iterable[Effect]) -> list[E_co]:
    return [effect for effect in effects if isinstance(effect, kind)]


def refusal(effects: Iterable[Effect]) -> Refused:
    (note,) = of(Note, effects)
    assert isinstance(note.event, Refused)
    return note.event


ARM = Arm(**HERE, reminder="pay", after=HOUR)
MOVE = Move(**HERE, reminder="pay", after=HOUR)
CANCEL = Cancel(**HERE, reminder="pay")
CANCEL_ALL = Cancel(**HERE, all=True)
CANCEL_UNDER = Cancel(**HERE, prefix="pay")
CANCEL_OPERATION = Cancel(**HERE, operation="pay")
FIRE = Fire(**HERE, reminder="pay")
PAUSE = Pause(**HERE, reminder="pay")
PAUSE_ALL = Pause(**HERE, all=True)
RESUME = Resume(**HERE, reminder="pay")
RESUME_ALL = Resume(**HERE, all=True)
DESTROY = Destroy(**HERE)
ALL = (
    ARM,
    MOVE,
    CANCEL,
    CANCEL_ALL,
    CANCEL_UNDER,
    CANCEL_OPERATION,
    FIRE,
    PAUSE,
    PAUSE_ALL,
    RESUME,
    RESUME_ALL,
    DESTROY,
)


# --- answers


@pytest.mark.parametrize("command", [*ALL, UNREADABLE], ids=lambda command: type(command).__name__)
@pytest.mark.parametrize("reminders", [(), (armed(),), (armed(), armed("z"))], ids=len)
def test_each_command_has_one_answer_and_it_comes_last(
    command: ServiceCommand | Refusal, reminders: tuple[Reminder, ...]
) -> None:
    notes = of(Note, answered(command, *reminders))
    assert [note.answer for note in notes] == [False] * (len(notes) - 1) + [True]


@pytest.mark.parametrize("command", [*ALL, UNREADABLE], ids=lambda command: type(command).__name__)
def test_each_event_says_which_command_caused_it(command: ServiceCommand | Refusal) -> None:
    notes = of(Note, answered(command, armed(), armed("z")))
    assert {note.command for note in notes} == {9}


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (ARM, Armed),
        (MOVE, Moved),
        (CANCEL, Cancelled),
        (CANCEL_ALL, Cancelled),
        (FIRE, Fired),
        (DESTROY, Destroyed),
    ],
)
def test_a_sound_command_is_answered_by_its_event(command: ServiceCommand, event: type) -> None:
    (note,) = of(Note, answered(command, armed()))
    assert type(note.event) is event


# --- what changes


@pytest.mark.parametrize("reminders", [(), (armed(),)], ids=len)
def test_an_arm_changes_the_reminder_from_what_it_was(reminders: tuple[Reminder, ...]) -> None:
    (change,) = of(Change, answered(ARM, *reminders))
    assert change.before is (reminders[0] if reminders else None)


def test_an_arm_opens_its_first_slot() -> None:
    (change,) = of(Change, answered(ARM))
    assert change.after is not None
    assert (change.after.occurrence, change.after.due) == (0, NOW + HOUR)


def test_a_cancel_touches_only_the_exact_name() -> None:
    changes = of(Change, answered(CANCEL, armed(), armed("pay:1"), armed("payment")))
    assert changes == [Change(ACTOR, "pay", armed(), None)]


@pytest.mark.parametrize("command", [CANCEL_UNDER, CANCEL_OPERATION], ids=["prefix", "operation"])
def test_a_cancel_of_several_spares_what_merely_starts_with_the_same_letters(
    command: Cancel,
) -> None:
    changes = of(Change, answered(command, armed(), armed("pay:1"), armed("payment"), armed("z")))
    assert [(change.name, change.after) for change in changes] == [("pay", None), ("pay:1", None)]


def test_a_condition_that_does_not_hold_changes_nothing() -> None:
    command = Arm(**HERE, reminder="pay", after=DurationMs(2 * HOUR), if_earlier=True)
    (note,) = answered(command, armed())
    assert isinstance(note, Note)
    assert isinstance(note.event, Kept)


def test_pause_all_puts_each_reminder_to_rest_at_once() -> None:
    changes = of(Change, answered(PAUSE_ALL, armed("a"), armed("b")))
    resting = [change.after is not None and change.after.paused is not None for change in changes]
    assert resting == [True, True]


@pytest.mark.parametrize("command", [CANCEL_ALL, DESTROY])
def test_all_of_an_actor_goes_at_once(command: ServiceCommand) -> None:
    changes = of(Change, answered(command, armed("a"), armed("b")))
    assert [(change.name, change.after) for change in changes] == [("a", None), ("b", None)]


def test_destroy_is_one_event_however_many_reminders_go() -> None:
    assert len(of(Note, answered(DESTROY, armed("a"), armed("b")))) == 1


@pytest.mark.parametrize("command", [CANCEL, CANCEL_ALL, CANCEL_UNDER, CANCEL_OPERATION])
def test_cancelling_what_is_absent_is_no_error(command: Cancel) -> None:
    (note,) = answered(command)
    assert isinstance(note, Note)
    assert isinstance(note.event, NothingCancelled)


def test_a_fire_by_hand_delivers() -> None:
    (deliver,) = of(Deliver, answered(FIRE, armed()))
    assert deliver.spec is not None


def test_a_fire_by_hand_changes_nothing_of_an_interval() -> None:
    assert of(Change, answered(FIRE, armed(every=HOUR))) == []


def test_a_one_shot_fired_by_hand_is_gone() -> None:
    (change,) = of(Change, answered(FIRE, armed()))
    assert change.after is None


@pytest.mark.parametrize("command", [ARM, MOVE, CANCEL, CANCEL_ALL, DESTROY])
def test_only_a_fire_delivers(command: ServiceCommand) -> None:
    assert of(Deliver, answered(command, armed())) == []


# --- refusals


@pytest.mark.parametrize(
    ("command", "reminders"),
    [
        (MOVE, ()),
        (FIRE, ()),
        (PAUSE, ()),
        (RESUME, ()),
        (PAUSE_ALL, ()),
        (RESUME_ALL, ()),
        (Arm(**HERE, reminder="pay", if_absent=True), (armed(),)),
        (Arm(**HERE, reminder="pay", if_version=Version(1)), (armed(),)),
        (Arm(**HERE, reminder="pay", if_version=Version(1)), ()),
        (Cancel(**HERE, reminder="pay", if_version=Version(1)), (armed(),)),
    ],
)
def test_a_sound_command_that_loses_leaves_an_event_only(
    command: ServiceCommand, reminders: tuple[Reminder, ...]
) -> None:
    assert len(answered(command, *reminders)) == 1


@pytest.mark.parametrize(
    "command",
    [
        UNREADABLE,
        Arm(**HERE, reminder=""),
        Arm(**HERE, reminder="pay", payload=b"x" * 300_000),
        Cancel(**HERE),
        Cancel(**HERE, reminder="pay", all=True),
    ],
)
def test_an_unsound_command_is_kept_in_the_dead_letters(
    command: ServiceCommand | Refusal,
) -> None:
    assert len(of(BuryCommand, answered(command, armed()))) == 1


@pytest.mark.parametrize("key", [None, b"", b"\xff", b"x" * 1025])
@pytest.mark.parametrize("command", [ARM, DESTROY, UNREADABLE])
def test_a_key_that_is_no_actor_is_refused_under_the_key_as_received(
    key: bytes | None, command: ServiceCommand | Refusal
) -> None:
    (note,) = of(Note, answered(command, key=key))
    assert note.key == key


@pytest.mark.parametrize(
    ("command", "name"), [(ARM, "arm"), (CANCEL_ALL, "cancel"), (UNREADABLE, None)]
)
@pytest.mark.parametrize("key", [ACTOR.encode(), None], ids=["good key", "no key"])
def test_a_refusal_names_the_command_that_could_be_read(
    command: ServiceCommand | Refusal, name: str | None, key: bytes | None
) -> None:
    full = Limits(reminders_per_actor_max=0)
    event = refusal(answered(command, key=key, limits=full, partition=HOME ^ 1))
    assert event.command == name


# --- partitions


@pytest.mark.parametrize("command", ALL)
def test_a_key_of_another_partition_is_refused(command: ServiceCommand) -> None:
    event = refusal(answered(command, partition=HOME ^ 1))
    assert event.reason is Reason.WRONG_PARTITION


def test_the_refusal_of_a_partition_names_the_setting() -> None:
    assert "partitioner=murmur2_random" in refusal(answered(ARM, partition=HOME ^ 1)).way_out


def test_the_refusal_of_a_partition_names_the_right_one() -> None:
    assert f"partition {HOME}," in refusal(answered(ARM, partition=HOME ^ 1)).way_out


@pytest.mark.parametrize("command", ALL)
def test_who_has_something_here_is_not_asked_for_the_partition(command: ServiceCommand) -> None:
    events = [note.event for note in of(Note, answered(command, armed(), partition=HOME ^ 1))]
    assert not any(isinstance(event, Refused) for event in events)


# --- limits


def test_one_reminder_too_many_is_refused() -> None:
    event = refusal(answered(ARM, armed("a"), limits=Limits(reminders_per_actor_max=1)))
    assert event.reason is Reason.LIMIT


def test_an_actor_at_its_limit_may_replace_what_it_has() -> None:
    (note,) = of(Note, answered(ARM, armed(), limits=Limits(reminders_per_actor_max=1)))
    assert isinstance(note.event, Armed)


# --- fires that the broker will never take


@pytest.mark.parametrize("subject", ["orders", (HOME, Version(7))])
def test_a_fire_by_hand_that_no_broker_takes_goes_to_the_dead_letters(
    subject: str | Armament,
) -> None:
    effects = answered(
        FIRE,
        armed(to="orders"),
        limits=Limits(targets=frozenset({"orders"})),
        rejections={subject: "gone"},
    )
    assert [type(effect) for effect in effects] == [BuryDelivery, Note, Change]


def test_an_undeliverable_fire_by_hand_is_the_answer_all_the_same() -> None:
    (note,) = of(Note, answered(FIRE, armed(to="orders")))
    assert (type(note.event), note.answer) == (Undeliverable, True)
