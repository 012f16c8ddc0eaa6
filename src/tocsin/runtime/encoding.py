"""Effects as records: what goes where, in bytes. Encoding comes before anything is produced, so
that a fault of our own in it leaves no trace of the decision.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from tocsin.codec.deliveries import delivery_headers
from tocsin.codec.events import Stamp, encode_event
from tocsin.core.events import Fired
from tocsin.core.reminder import Spec
from tocsin.core.values import EpochMs, Header
from tocsin.dataflow import Armament, BuryCommand, BuryDelivery, Change, Deliver, Effect, Note
from tocsin.runtime.dead_letters import command_letter, delivery_letter
from tocsin.runtime.index import StateRecord, plan
from tocsin.runtime.names import Names


class Outgoing(Struct, frozen=True):
    """A record to produce; `partition` None is by key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    timestamp: EpochMs | None
    #: Set on deliveries: whose fate has to be known by name.
    delivery: tuple[str, Armament] | None


class Staged(Struct, frozen=True):
    """A change for the index, and the state records that carry it."""

    change: Change
    records: list[StateRecord]


class Encoder:
    """Encodes the effects of one partition's step."""

    def __init__(self, names: Names, partition: int, step: int, engine_time: EpochMs) -> None:
        self._partition = partition
        self._step = step
        self._engine_time = engine_time
        self._events = names.topic("events")
        self._state = names.topic("state")
        self._deliveries = names.topic("deliveries")
        self._dead_letters = names.topic("dead-letters")

    def encode(self, effects: Sequence[Effect]) -> tuple[list[Outgoing], list[Staged]]:
        """Return the records to produce, and the changes to stage once they are."""
        outgoing: list[Outgoing] = []
        staged: list[Staged] = []
        for effect in effects:
            match effect:
                case Note():
                    outgoing.append(self._note(effect))
                case Change():
                    records = plan(effect, self._step)
                    staged.append(Staged(effect, records))
                    for key, value in records:
                        outgoing.append(
                            Outgoing(self._state, self._partition, key, value, (), None, None)
                        )
                case Deliver(actor=actor, spec=spec, fired=fired):
                    outgoing.append(self._delivery(actor, spec, fired))
                case BuryCommand(record=record, event=event):
                    outgoing.append(self._letter(record.key, *command_letter(record, event)))
                case BuryDelivery():
                    outgoing.append(self._buried(effect))
                case _:
                    assert_never(effect)
        return outgoing, staged

    def _note(self, note: Note) -> Outgoing:
        stamp = Stamp(self._engine_time, self._step, note.command, note.answer)
        value = encode_event(note.event, stamp)
        return Outgoing(self._events, self._partition, note.key, value, (), None, None)

    def _delivery(self, actor: str, spec: Spec, fired: Fired) -> Outgoing:
        topic = spec.to or self._deliveries
        headers = delivery_headers(self._partition, actor, spec, fired)
        return Outgoing(
            topic,
            None,
            actor.encode(),
            spec.payload,
            headers,
            fired.fired,
            (topic, (self._partition, spec.version)),
        )

    def _buried(self, effect: BuryDelivery) -> Outgoing:
        headers = delivery_headers(self._partition, effect.actor, effect.spec, effect.fired)
        return self._letter(effect.actor.encode(), *delivery_letter(effect, headers))

    def _letter(
        self, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> Outgoing:
        return Outgoing(self._dead_letters, None, key, value, headers, None, None)
