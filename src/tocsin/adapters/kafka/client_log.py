"""Kafka as the client library sees it: one idempotent producer, readers made on demand."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.complaints import Complaints
from tocsin.adapters.kafka.errors import UNANSWERED, UNKNOWN_TOPIC, error_of
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.adapters.kafka.records import record_of
from tocsin.client.errors import (
    ClientError,
    DeniedError,
    NotWrittenError,
    TopicMissingError,
    UnreachableError,
)
from tocsin.client.ports import Source, Written
from tocsin.core.values import Header, Offset
from tocsin.dataflow import Record
from tocsin.ports import Bounds, Denied, Unreachable

T = TypeVar("T")

#: Longest wait for metadata.
METADATA_S_MAX = 5.0
#: A broker has taken a command by then, or the caller is told that nobody knows.
WRITE_S_MAX = 15.0
#: The client library reports by itself within WRITE_S_MAX; this is for our own bugs.
REPORT_S_MAX = WRITE_S_MAX + 2.0
POLL_S = 0.05
#: A client's reader has a handful of records in hand, not a restore's hundred thousands.
READER = {"queued.min.messages": 5_000, "queued.max.messages.kbytes": 16 * 1024}


class KafkaClientLog:
    """See client.ports.ClientLog."""

    def __init__(self, client: config.Settings) -> None:
        self._client = client
        self._servers = str(client.get("bootstrap.servers", ""))
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._cluster: KafkaCluster | None = None
        self._partitions: dict[str, int] = {}

    def partitions(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = self._ask_partitions(topic)
        return self._partitions[topic]

    def write(self, topic: str, key: bytes, value: bytes, headers: Sequence[Header]) -> Written:
        self.partitions(topic)  # tells at once when no broker answers or the topic is missing
        told: list[tuple[KafkaError | None, Any]] = []
        producer = self._shared_producer()
        try:
            producer.produce(
                topic,
                value,
                key,
                headers=list(headers),
                on_delivery=lambda error, message: told.append((error, message)),
            )
        except BufferError as full:
            raise NotWrittenError("more commands are waiting than the queue takes") from full
        except KafkaException as exception:
            raise self._said_no(error_of(exception), topic) from exception
        until = time.monotonic() + REPORT_S_MAX
        while not told:
            producer.poll(POLL_S)
            if not told and time.monotonic() >= until:
                raise NotWrittenError(f"no report within {REPORT_S_MAX:g} s")
        error, message = told[0]
        if error is not None:
            raise self._not_written(error, topic)
        return Written(message.partition(), Offset(message.offset()))

    def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
        with self._lock:
            if self._cluster is None:
                self._cluster = KafkaCluster(self._client)
        return self._answered(lambda cluster: cluster.bounds(topic, partitions), self._cluster)

    def reader(self) -> KafkaLogReader:
        return KafkaLogReader({**READER, **self._client})

    def group(self, topic: str, group: str, *, from_beginning: bool) -> Source:
        return KafkaGroupSource(self._client, topic, group, from_beginning=from_beginning)

    def close(self) -> None:
        with self._lock:
            if self._producer is not None:
                self._producer.flush(POLL_S)
                self._producer = None
            if self._cluster is not None:
                self._cluster.close()
                self._cluster = None

    def _ask_partitions(self, topic: str) -> int:
        try:
            # `topic` alone: the others are none of a client's business.
            known = AdminClient(config.admin(self._client)).list_topics(topic, METADATA_S_MAX)
        except KafkaException as exception:
            raise self._said_no(error_of(exception), topic) from exception
        found = known.topics[topic]
        if found.error is not None:
            raise self._said_no(found.error, topic)
        return len(found.partitions)

    def _shared_producer(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = self._checked(lambda: Producer(_producer(self._client)))
            return self._producer

    def _checked(self, make: Callable[[], T]) -> T:
        try:
            return make()
        except KafkaException as exception:
            raise DeniedError(str(error_of(exception).str())) from exception

    def _answered(self, ask: Callable[[KafkaCluster], T], cluster: KafkaCluster) -> T:
        until = time.monotonic() + METADATA_S_MAX
        while True:
            try:
                return ask(cluster)
            except Unreachable as error:
                # A topic just made, or a broker just lost, has no leader for a moment.
                if time.monotonic() >= until:
                    raise UnreachableError(self._servers, str(error)) from error
                time.sleep(POLL_S)
            except Denied as error:
                raise DeniedError(str(error)) from error

    def _said_no(self, error: KafkaError, topic: str) -> ClientError:
        if error.code() in UNKNOWN_TOPIC:
            return TopicMissingError(topic)
        if error.retriable() or error.code() in UNANSWERED:
            return UnreachableError(self._servers, f"{error.name()}: {error.str()}")
        return DeniedError(f"{error.name()}: {error.str()}")

    def _not_written(self, error: KafkaError, topic: str) -> ClientError:
        if error.code() == KafkaError._MSG_TIMED_OUT or error.code() in UNANSWERED:  # noqa: SLF001
            return NotWrittenError(f"{error.name()}: {error.str()}")
        return self._said_no(error, topic)


class KafkaGroupSource:
    """One member of a group; what was handled is committed every few seconds and at `close`."""

    def __init__(
        self, client: config.Settings, topic: str, group: str, *, from_beginning: bool
    ) -> None:
        reset = "earliest" if from_beginning else "latest"
        self._consumer = Consumer(_group_consumer(client, group, reset))
        self._consumer.subscribe([topic])
        self._complaints = Complaints("group")

    def read(self, timeout_s: float, limit: int) -> list[Record]:
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        records = []
        messages: list[Any] = [first, *self._consumer.consume(limit - 1, 0)]
        for message in messages:
            error = message.error()
            if error is None:
                records.append(record_of(message))
            elif error.fatal() or error.code() in UNKNOWN_TOPIC | _NO:
                raise DeniedError(f"{error.name()}: {error.str()}")
            else:
                self._complaints.add(error)
        return records

    def handled(self, record: Record) -> None:
        after = TopicPartition(record.topic, record.partition, record.offset + 1)
        try:
            self._consumer.store_offsets(offsets=[after])
        except KafkaException as exception:
            # The partition went to another member meanwhile, which sees the record again.
            if error_of(exception).code() != KafkaError._STATE:  # noqa: SLF001
                raise DeniedError(str(error_of(exception).str())) from exception

    def finished(self) -> bool:
        return False

    def progress(self) -> tuple[int, int]:
        return 0, 0

    def close(self) -> None:
        self._consumer.close()


_NO = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED})


def _producer(client: config.Settings) -> dict[str, Any]:
    return {
        **config.admin(client),
        "client.id": "tocsin-client",
        "linger.ms": 0,
        **client,
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "delivery.timeout.ms": round(WRITE_S_MAX * 1000),
        "delivery.report.only.error": False,
        "allow.auto.create.topics": False,
    }


def _group_consumer(client: config.Settings, group: str, reset: str) -> dict[str, Any]:
    return {
        **config.admin(client),
        "client.id": "tocsin-deliveries",
        "partition.assignment.strategy": "cooperative-sticky",
        "fetch.wait.max.ms": 100,
        **client,
        "group.id": group,
        "isolation.level": "read_committed",
        "auto.offset.reset": reset,
        # What `handled` stored is committed in the background and at close.
        "enable.auto.commit": True,
        "enable.auto.offset.store": False,
        "allow.auto.create.topics": False,
    }
