"""Intake: each command is answered."""

from tocsin.app.processors.outcome import effects_of, effects_of_several, settle
from tocsin.core.commands import Arm, Cancel, Destroy, Pause, Resume, ServiceCommand
from tocsin.core.decide import decide, decide_all, refused
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import Destroyed, Refused, name_of
from tocsin.core.evolve import evolve
from tocsin.core.naming import beginning
from tocsin.core.partitioning import partition_of
from tocsin.core.reminder import Reminder
from tocsin.core.rules import check_actor, check_room
from tocsin.dataflow import BuryCommand, Change, Effect, Incoming, Note, Record, Turn, View

#: A command refused for one of these was sound and lost; any other is kept in the dead letters.
LOST = frozenset({Reason.ABSENT, Reason.EXISTS, Reason.OTHER_VERSION})


def intake(incoming: Incoming, view: View, turn: Turn) -> list[Effect]:
    """Answer one command: what it changes and its event, or a refusal that says the way out."""
    record, command = incoming.record, incoming.command
    try:
        actor = check_actor(record.key, turn.limits)
        if isinstance(command, Refusal):
            raise command
        return _answer(actor, command, record, view, turn)
    except Refusal as refusal:
        readable = None if isinstance(command, Refusal) else command
        return refuse(record, refused(refusal, readable))


def refuse(record: Record, event: Refused) -> list[Effect]:
    """Answer with no; the dead letters keep what was not even sound."""
    effects: list[Effect] = [Note(record.key, event, record.offset, answer=True)]
    if event.reason not in LOST:
        effects.append(BuryCommand(record, event))
    return effects


def _answer(
    actor: str, command: ServiceCommand, record: Record, view: View, turn: Turn
) -> list[Effect]:
    if isinstance(command, Destroy) or (
        isinstance(command, Cancel | Pause | Resume) and command.reminder is None
    ):
        return _answer_for_several(actor, command, record, view, turn)
    reminder = view.reminder(actor, command.reminder or "")
    if reminder is None:
        armed = view.armed(actor)
        if not armed:
            _check_partition(record, turn)
        if isinstance(command, Arm):
            check_room(armed, turn.limits)
    events = decide(reminder, command, turn.now, turn.limits, turn.partition)
    if reminder is not None and len(events) > 1:
        return effects_of_several(events, actor, reminder, record.offset, turn)
    (event,) = events
    if isinstance(event, Refused):
        return refuse(record, event)
    return effects_of(settle(event, reminder, turn), actor, reminder, record.offset, answer=True)


def _answer_for_several(
    actor: str,
    command: Cancel | Pause | Resume | Destroy,
    record: Record,
    view: View,
    turn: Turn,
) -> list[Effect]:
    start = beginning(command) if isinstance(command, Cancel) else ""
    reminders = view.reminders(actor, start)
    if not reminders:
        _check_partition(record, turn)
    *others, last = decide_all(reminders, command, turn.now, turn.limits, turn.partition)
    if isinstance(last, Refused):
        return refuse(record, last)
    effects: list[Effect] = [
        Note(record.key, event, record.offset, answer=False) for event in others
    ]
    effects.append(Note(record.key, last, record.offset, answer=True))
    if isinstance(last, Destroyed):
        effects += [Change(actor, gone.spec.reminder, gone, None) for gone in reminders]
        return effects
    current: dict[str, Reminder | None] = {one.spec.reminder: one for one in reminders}
    for event in (*others, last):
        name = name_of(event)
        if name is not None:
            current[name] = evolve(current[name], event)
    for before in reminders:
        after = current[before.spec.reminder]
        if after is not before:
            effects.append(Change(actor, before.spec.reminder, before, after))
    return effects


def _check_partition(record: Record, turn: Turn) -> None:
    """Refuse a key that another partition owns; asked only when the actor has nothing here."""
    assert record.key is not None, "check_actor has seen it"
    home = partition_of(record.key, turn.partitions)
    if home != record.partition:
        raise Refusal(
            Reason.WRONG_PARTITION,
            "partition",
            record.partition,
            f"this key belongs in partition {home}, by Java's murmur2. Set the partitioner: "
            "librdkafka clients (Python, Go, .NET, PHP, Ruby) partitioner=murmur2_random; "
            "Sarama a murmur2 hash partitioner; kafka-go Murmur2Balancer; KafkaJS "
            "DefaultPartitioner; Java and kafka-python their defaults",
        )
