"""Copies of one partition of a real log under another prefix, with one thing made wrong.

A copy is what the audit would see had the engine written it so: the records as they were
committed, commands at their offsets (they are the versions), and the copy's own topic ids in the
step records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message, Producer
from msgspec.structs import replace

from tests.kill.evidence import read_all
from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.codec.events import Stamp, decode_event, encode_event
from tocsin.codec.framing import read
from tocsin.codec.keys import STEP_KEY
from tocsin.codec.state import (
    REMINDER,
    decode_reminder,
    decode_step,
    encode_spec,
    encode_step,
)
from tocsin.core.events import Fired, Kind
from tocsin.core.values import EpochMs

TOPICS = ("commands", "events", "state", "deliveries")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record without its place."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp: int


#: The records of one partition of each topic.
Log = dict[str, list[Line]]


def committed_log(servers: str, prefix: str, partition: int) -> Log:
    """Return the committed records of `partition`."""
    log: Log = {}
    for name in TOPICS:
        messages = read_all(servers, f"{prefix}.{name}", partition=partition)
        if name == "commands":
            offsets = [message.offset() for message in messages]
            assert offsets == list(range(len(messages))), "a copy must keep the offsets"
        log[name] = [_line(message) for message in messages]
    return log


def write_copy(servers: str, prefix: str, partition: int, log: Log) -> None:
    """Write `log` to the topics of `prefix`, which are there and empty."""
    cluster = KafkaCluster({"bootstrap.servers": servers})
    try:
        states = {name: cluster.topic(f"{prefix}.{name}") for name in TOPICS}
    finally:
        cluster.close()
    ids = {f"{name}_id": state.id for name, state in states.items() if state is not None}
    ids.pop("deliveries_id")
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    failures: list[Any] = []
    for name, lines in log.items():
        for line in lines:
            value = line.value
            if name == "state" and line.key == STEP_KEY:
                value = encode_step(replace(decode_step(value or b""), **ids))
            producer.produce(
                f"{prefix}.{name}",
                value,
                line.key,
                partition=partition,
                headers=line.headers,
                timestamp=line.timestamp,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
            producer.poll(0)
    assert producer.flush(30) == 0
    assert not failures, failures


# --- damages


def duplicate(log: Log) -> None:
    """A delivery is there twice."""
    deliveries = log["deliveries"]
    deliveries.append(deliveries[len(deliveries) // 2])


def missing(log: Log) -> None:
    """A delivery is not there."""
    deliveries = log["deliveries"]
    del deliveries[len(deliveries) // 2]


def early(log: Log) -> None:
    """A fire was a millisecond before its due, by its event."""

    def scheduled(event: object, _: Stamp) -> bool:
        return isinstance(event, Fired) and event.kind is Kind.SCHEDULED and not event.missed

    i = _middle(log, scheduled)
    event, stamp = decode_event(log["events"][i].value or b"")
    assert isinstance(event, Fired)
    changed = replace(event, fired=EpochMs(event.due - 1))
    log["events"][i] = _with_value(log["events"][i], encode_event(changed, stamp))


def altered_state(log: Log) -> None:
    """A reminder in the state topic is due at another time than its events say."""
    state = log["state"]
    i = _last_live(log)
    stored = decode_reminder(state[i].value or b"", None)
    _, record = read(state[i].value or b"")
    altered = replace(stored, due=EpochMs(stored.due + 1))
    state[i] = _with_value(state[i], encode_spec(altered, record["step"]))


def gap_in_steps(log: Log) -> None:
    """All that one step wrote to the events is gone."""
    i = _middle(log, lambda _event, stamp: stamp.step > 1)
    _, lost = decode_event(log["events"][i].value or b"")
    log["events"] = [
        line for line in log["events"] if decode_event(line.value or b"")[1].step != lost.step
    ]


def _middle(log: Log, wanted: Callable[[object, Stamp], bool]) -> int:
    there = [i for i, line in enumerate(log["events"]) if wanted(*decode_event(line.value or b""))]
    return there[len(there) // 2]


def _last_live(log: Log) -> int:
    """Return the place of a state record that the end of the log still stands on."""
    last = {line.key: i for i, line in enumerate(log["state"])}
    live = [
        i
        for key, i in last.items()
        if key != STEP_KEY
        and log["state"][i].value is not None
        and read(log["state"][i].value or b"")[0] == REMINDER
    ]
    assert live, "the driver leaves something armed"
    return live[-1]


def _with_value(line: Line, value: bytes) -> Line:
    return Line(key=line.key, value=value, headers=line.headers, timestamp=line.timestamp)


def _line(message: Message) -> Line:
    key, value = message.key(), message.value()
    assert not isinstance(key, str)
    assert not isinstance(value, str)
    headers = message.headers() or []
    assert isinstance(headers, list)
    return Line(key=key, value=value, headers=headers, timestamp=message.timestamp()[1])
