"""What an event brings about, the same for both boxes: a note, a change, a delivery."""

from collections.abc import Sequence

from msgspec.structs import replace

from tocsin.core.errors import shown
from tocsin.core.events import Event, Fired, GaveUp, Undeliverable
from tocsin.core.evolve import evolve
from tocsin.core.reminder import Reminder
from tocsin.core.values import Offset
from tocsin.dataflow import BuryDelivery, Change, Deliver, Effect, Note, Turn


def settle(event: Event, reminder: Reminder | None, turn: Turn) -> Event:
    """Return `event`, or Undeliverable in the place of a fire that the broker will never take."""
    if not isinstance(event, Fired) or reminder is None:
        return event
    target = reminder.spec.to
    error = _rejection(reminder, turn)
    if error is None:
        return event
    if event.retry is not None:  # nobody can acknowledge what never went out
        event = replace(event, retry=None)
    return Undeliverable(fired=event, target=target or "deliveries", error=error)


def effects_of(
    event: Event,
    actor: str,
    reminder: Reminder | None,
    command: Offset | None,
    *,
    answer: bool,
) -> list[Effect]:
    """Return what follows from `event` about one reminder of `actor`."""
    after = evolve(reminder, event)
    effects: list[Effect] = []
    if reminder is not None:
        if isinstance(event, Fired):
            effects.append(Deliver(actor, reminder.spec, event))
        elif isinstance(event, Undeliverable):
            effects.append(
                BuryDelivery(actor, reminder.spec, event.fired, event.target, event.error)
            )
        elif isinstance(event, GaveUp):
            letter = BuryDelivery(
                actor, reminder.spec, event.fired, event.target, event.error, "unacknowledged"
            )
            effects.append(letter)
    effects.append(Note(actor.encode(), event, command, answer))
    if after is not reminder:
        one = after if after is not None else reminder
        assert one is not None, "they differ"
        effects.append(Change(actor, one.spec.reminder, reminder, after))
    return effects


def effects_of_several(
    events: Sequence[Event], actor: str, reminder: Reminder, command: Offset | None, turn: Turn
) -> list[Effect]:
    """Return what follows from `events` about one reminder, one after the other.

    The last one is the answer to `command`. The store sees the end of it alone.
    """
    effects: list[Effect] = []
    current: Reminder | None = reminder
    for number, event in enumerate(events, 1):
        answer = command is not None and number == len(events)
        settled = settle(event, current, turn)
        for effect in effects_of(settled, actor, current, command, answer=answer):
            if isinstance(effect, Change):
                current = effect.after
            else:
                effects.append(effect)
    if current is not reminder:
        effects.append(Change(actor, reminder.spec.reminder, reminder, current))
    return effects


def _rejection(reminder: Reminder, turn: Turn) -> str | None:
    target = reminder.spec.to
    if target is not None and target not in turn.limits.targets:
        return f"topic {shown(target)} is not among the allowed targets"
    if not turn.rejections:
        return None
    return turn.rejections.get(target or "") or turn.rejections.get(
        (turn.partition, reminder.spec.version)
    )
