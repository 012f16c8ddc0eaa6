"""The driver: arms reminders as a service does, by Avro commands through an idempotent producer."""

from collections.abc import Iterable, Iterator, Sequence

from tocsin.adapters.kafka.bulk import BulkProducer
from tocsin.codec.commands import encode_command
from tocsin.core.commands import Arm
from tocsin.core.partitioning import partition_of
from tocsin.core.values import DurationMs, EpochMs, Offset

#: Reminders are spread over so many actors; the same for all systems that are compared.
ACTORS = 10_000
PAYLOAD = bytes(b"0123456789abcdef"[i % 16] for i in range(200))
#: Commands between two looks at the progress.
CHUNK = 10_000

#: Key and value of a record on the commands topic.
Command = tuple[bytes, bytes]


def one_shots(label: str, dues: Iterable[EpochMs]) -> Iterator[Command]:
    """Return an Arm for each due, spread over the actors; `label` tells runs apart."""
    for number, due in enumerate(dues):
        yield arm(actor_of(number), f"{label}:{number}", at=due)


def intervals(label: str, firsts: Iterable[EpochMs], every: DurationMs) -> Iterator[Command]:
    """Return an Arm of an interval reminder for each first due."""
    for number, first in enumerate(firsts):
        yield arm(actor_of(number), f"{label}:{number}", at=first, every=every)


def one_for_each_partition(label: str, partitions: int) -> list[Command]:
    """Return an Arm for now in each partition."""
    found: dict[int, Command] = {}
    number = 0
    while len(found) < partitions:
        actor = f"partition/{number}"
        found.setdefault(partition_of(actor.encode(), partitions), arm(actor, label, at=None))
        number += 1
    return list(found.values())


def arm(
    actor: str, reminder: str, *, at: EpochMs | None, every: DurationMs | None = None
) -> Command:
    """Return the command record; due now without `at`."""
    command = Arm(
        # Where it comes to lie is the log's to say, and not part of what is encoded.
        offset=Offset(0),
        appended=None,
        reminder=reminder,
        at=at,
        every=every,
        payload=PAYLOAD,
    )
    return actor.encode(), encode_command(command)


def actor_of(number: int) -> str:
    """Return the actor of the reminder with this number."""
    return f"actor/{number % ACTORS}"


def send(producer: BulkProducer, topic: str, commands: Sequence[Command]) -> None:
    """Produce as fast as the producer takes them; they may still be under way after this."""
    produce = producer.produce
    for key, value in commands:
        produce(topic, key, value)
