"""What a run left in the log, read back; and what the events answered, as the oracle takes it."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.kill.oracle import Answer
from tocsin.codec.events import decode_event
from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Destroyed,
    Event,
    Expired,
    Fired,
    Kept,
    Moved,
    NothingCancelled,
    NothingResumed,
    Paused,
    Refused,
    Resumed,
    Skipped,
    Undeliverable,
)

READ_S_MAX = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One event and where it is."""

    partition: int
    offset: int
    actor: str
    command: int | None
    step: int
    event: Event


def read_all(
    servers: str, topic: str, *, committed: bool = True, partition: int | None = None
) -> list[Message]:
    """Return every record of the topic, to the ends that were written when this was called."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reads-all",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    try:
        there = consumer.list_topics(topic, 10).topics[topic].partitions
        wanted = sorted(there) if partition is None else [partition]
        ends = {p: _written_end(servers, topic, p) for p in wanted}
        consumer.assign([TopicPartition(topic, p, 0) for p in wanted])
        return _read(consumer, topic, ends)
    finally:
        consumer.close()


def _written_end(servers: str, topic: str, partition: int) -> int:
    """Return where the next record goes; a read_committed reader's own figure may lie before."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "asks-ends",
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        end: int = consumer.get_watermark_offsets(TopicPartition(topic, partition), 10)[1]
        return end
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, ends: Mapping[int, int]) -> list[Message]:
    missing = {partition for partition, end in ends.items() if end > 0}
    messages = []
    until = time.monotonic() + READ_S_MAX
    while missing:
        assert time.monotonic() < until, f"{topic} {missing}: a transaction stays open"
        for message in consumer.consume(2_000, 0.1):
            error = message.error()
            if error is None:
                messages.append(message)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            if offset >= ends[partition]:
                missing.discard(partition)
    return messages


def found_events(messages: Sequence[Message]) -> list[Found]:
    """Return what records of the events topic say."""
    found = []
    for message in messages:
        event, stamp = decode_event(_bytes(message.value))
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        found.append(
            Found(
                partition=partition,
                offset=offset,
                actor=_bytes(message.key).decode(),
                command=stamp.command,
                step=stamp.step,
                event=event,
            )
        )
    return found


def answers_of(events: Sequence[Found]) -> dict[tuple[int, int], list[Answer]]:
    """Return for each command, by partition and offset, what it was answered."""
    answers: dict[tuple[int, int], list[Answer]] = defaultdict(list)
    for found in events:
        if found.command is not None:
            answers[found.partition, found.command].append(_answer(found.event))
    return answers


def _answer(event: Event) -> Answer:
    match event:
        case Armed():
            previous = -1 if event.previous is None else event.previous.version
            return Answer("armed", event.spec.reminder, event.spec.version, previous)
        case Moved():
            return Answer("moved", event.reminder, event.version, event.previous.version)
        case Cancelled():
            return Answer("cancelled", event.reminder, event.version)
        case NothingCancelled():
            return Answer("nothing_cancelled", event.reminder)
        case Fired():
            return Answer("fired", event.reminder, event.version)
        case Destroyed():
            return Answer("destroyed", count=event.reminders)
        case Refused():
            return Answer("refused", event.reminder, reason=event.reason.value)
        case (
            Kept()
            | Paused()
            | Resumed()
            | NothingResumed()
            | Skipped()
            | Expired()
            | Completed()
            | Undeliverable()
            | CommandsLost()
        ):
            return Answer(type(event).__name__)


def _bytes(part: Callable[[], bytes | str | None]) -> bytes:
    value = part()
    assert isinstance(value, bytes)
    return value
