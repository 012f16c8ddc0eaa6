"""The same world twice: a broker in memory and a real one, behind the ports."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from time import monotonic
from typing import Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.commands import KafkaCommands
from tocsin.adapters.kafka.heartbeat import KafkaHeartbeat
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.adapters.kafka.topics import create_topics
from tocsin.adapters.kafka.transaction import KafkaTransaction
from tocsin.adapters.memory.broker import MemoryBroker
from tocsin.adapters.memory.clock import ManualClock
from tocsin.adapters.memory.cluster import MemoryCluster
from tocsin.adapters.memory.commands import MemoryCommands
from tocsin.adapters.memory.faults import Faults
from tocsin.adapters.memory.heartbeat import MemoryHeartbeat
from tocsin.adapters.memory.log_reader import MemoryLogReader
from tocsin.adapters.memory.transaction import MemoryTransaction
from tocsin.core.values import Offset
from tocsin.dataflow import Record, Topology
from tocsin.embedded import EmbeddedKafka
from tocsin.ports import (
    Cluster,
    Commands,
    Denied,
    Heartbeat,
    LogReader,
    Transaction,
    Unknown,
    Unreachable,
)

ANSWER_S_MAX = 30.0
REQUEST_S_MAX = 3.0
MEMORY_ROUNDS_MAX = 100
#: Polls with nothing to come, after which nothing will come.
QUIET_POLLS = 4

T = TypeVar("T")


class Closing(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closing)


class World(ABC):
    """What a contract test may do. Everything made here is closed at the end of the test."""

    def __init__(self, names: Iterator[int]) -> None:
        self._names = names
        self._stack = ExitStack()

    def name(self, what: str) -> str:
        return f"{what}-{next(self._names)}"

    def topic(self, partitions: int = 1, **config: str) -> str:
        name = self.name("topic")
        self.create_topic(name, partitions, **config)
        return name

    def commands(self, topic: str, group: str, *, instance_id: str | None = None) -> Commands:
        return self._closed(self._commands(topic, group, instance_id))

    def transaction(
        self, commands: str = "", group: str = "", identity: str | None = None
    ) -> Transaction:
        made = self._transaction(identity or self.name("producer"), commands, group)
        return self._closed(made)

    def opened(self, commands: str = "", group: str = "") -> Transaction:
        transaction = self.transaction(commands, group)
        self.known(transaction.open)
        return transaction

    def reader(self) -> LogReader:
        return self._closed(self._reader())

    def cluster(self) -> Cluster:
        return self._closed(self._cluster())

    def heartbeat(self, topic: str) -> Heartbeat:
        return self._closed(self._heartbeat(topic))

    def known(self, call: Callable[[], None]) -> None:
        """Make the call until its outcome is known."""

        def tried() -> bool:
            try:
                call()
            except Unknown:
                return False
            return True

        self.until(tried)

    def polled(self, commands: Commands, wanted: int, limit: int = 1000) -> list[Record]:
        """Poll until `wanted` records have come."""
        records: list[Record] = []

        def enough() -> bool:
            if len(records) < wanted:
                records.extend(commands.poll(0.1, min(limit, wanted - len(records))))
            return len(records) >= wanted

        self.until(enough)
        return records

    def quiet(self, commands: Commands) -> bool:
        """Return whether several polls returned nothing."""
        return not any(commands.poll(0.1, 1000) for _ in range(QUIET_POLLS))

    def read(self, topic: str, partition: int = 0) -> list[Record]:
        """Return all committed records of a partition in which no transaction is open."""
        self.settled(topic, partition)
        return self.read_stable(topic, partition)

    def settled(self, topic: str, partition: int = 0) -> None:
        """Wait for the outcome of transactions to be written: a commit returns before it is."""
        cluster = self.cluster()

        def decided() -> bool:
            bounds = cluster.bounds(topic, [partition])[partition]
            return bounds.stable_end == bounds.end

        self.until(decided)

    def written(self, topic: str, end: int) -> None:
        """Wait for the log to reach `end`: a record that never left cannot be aborted."""
        cluster = self.cluster()
        self.until(lambda: cluster.bounds(topic, [0])[0].end >= end)

    def read_stable(self, topic: str, partition: int = 0) -> list[Record]:
        """Return what a read_committed reader sees now."""
        end = self.cluster().bounds(topic, [partition])[partition].stable_end
        reader = self.reader()
        reader.seek(topic, partition, Offset(0))
        records: list[Record] = []

        def done() -> bool:
            if reader.position(topic, partition) < end:
                records.extend(reader.read(0.1, 1000))
            return reader.position(topic, partition) >= end

        self.until(done)
        return records

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.read(topic, partition)]

    def close(self) -> None:
        self._stack.close()

    @abstractmethod
    def until(self, holds: Callable[[], T]) -> T:
        """Return the first truthy result of `holds`."""

    @abstractmethod
    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Write committed records, without a transaction."""

    @abstractmethod
    def create_topic(self, name: str, partitions: int, **config: str) -> None: ...

    @abstractmethod
    def create_map(self, topology: Topology, prefix: str, partitions: int) -> dict[str, bool]: ...

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def delete_before(self, topic: str, offset: int) -> None: ...

    @abstractmethod
    def forbid(self, topic: str) -> None: ...

    @abstractmethod
    def silence(self) -> AbstractContextManager[None]:
        """Let no broker answer."""

    @abstractmethod
    def _commands(self, topic: str, group: str, instance_id: str | None) -> Commands: ...

    @abstractmethod
    def _transaction(self, identity: str, commands: str, group: str) -> Transaction: ...

    @abstractmethod
    def _reader(self) -> LogReader: ...

    @abstractmethod
    def _cluster(self) -> Cluster: ...

    @abstractmethod
    def _heartbeat(self, topic: str) -> Heartbeat: ...

    def _closed(self, made: C) -> C:
        self._stack.callback(made.close)
        return made


class _Silent(Faults):
    """Faults that can be switched on: nobody answers."""

    def __init__(self) -> None:
        self.on = False

    def before(self, call: str) -> None:
        if self.on and call.startswith("transaction."):
            raise Unknown("silence")
        if self.on and call.startswith("cluster."):
            raise Unreachable("silence")


class MemoryWorld(World):
    """Nothing waits, so a round is a poll; a round takes a tenth of a second."""

    def __init__(self) -> None:
        super().__init__(count(1))
        self.clock = ManualClock()
        self.faults = _Silent()
        self.broker = MemoryBroker(self.clock, self.faults)

    def until(self, holds: Callable[[], T]) -> T:
        for _ in range(MEMORY_ROUNDS_MAX):
            if result := holds():
                return result
            self.clock.advance(10)
        raise AssertionError(f"not within {MEMORY_ROUNDS_MAX} rounds")

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        for value in values:
            self.broker.append(topic, b"key", value, partition=partition)

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        self.broker.create_topic(name, partitions, _dotted(config))

    def create_map(self, topology: Topology, prefix: str, partitions: int) -> dict[str, bool]:
        return dict(self.broker.create_topics(topology, prefix=prefix, partitions=partitions))

    def delete_topic(self, name: str) -> None:
        self.broker.delete_topic(name)

    def delete_before(self, topic: str, offset: int) -> None:
        self.broker.delete_before(topic, 0, offset)

    def forbid(self, topic: str) -> None:
        self.broker.forbidden.add(topic)

    @contextmanager
    def silence(self) -> Iterator[None]:
        self.faults.on = True
        yield
        self.faults.on = False

    def _commands(self, topic: str, group: str, instance_id: str | None) -> Commands:
        return MemoryCommands(self.broker, topic, group, instance_id=instance_id)

    def _transaction(self, identity: str, commands: str, group: str) -> Transaction:
        return MemoryTransaction(self.broker, identity, commands, group)

    def _reader(self) -> LogReader:
        return MemoryLogReader(self.broker)

    def _cluster(self) -> Cluster:
        return MemoryCluster(self.broker)

    def _heartbeat(self, topic: str) -> Heartbeat:
        return MemoryHeartbeat(self.broker, topic)


class KafkaWorld(World):
    """A real broker. A topic is awaited, so that a test meets only the delays that it is about."""

    #: Shared by all tests of a session: the broker is.
    numbers = count(1)

    def __init__(self, kafka: EmbeddedKafka) -> None:
        super().__init__(self.numbers)
        self.kafka = kafka
        self.client = {"bootstrap.servers": kafka.bootstrap_servers}
        quiet: dict[str, str | int | float | bool] = {**self.client, "log_level": 0}
        self._admin = AdminClient(quiet)
        self._producer = Producer({**quiet, "linger.ms": 5})

    def until(self, holds: Callable[[], T]) -> T:
        end = monotonic() + ANSWER_S_MAX
        while monotonic() < end:
            if result := holds():
                return result
        raise AssertionError(f"not within {ANSWER_S_MAX} s")

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        for value in values:
            self._producer.produce(topic, value, b"key", partition)
        assert self._producer.flush(ANSWER_S_MAX) == 0

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        new = NewTopic(name, partitions, 1, config=_dotted(config))

        def created() -> bool:
            try:
                self._admin.create_topics([new], request_timeout=REQUEST_S_MAX)[name].result()
            except KafkaException as exception:
                return bool(exception.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
            return True

        self.until(created)
        cluster = self.cluster()

        def served() -> bool:
            try:
                return bool(cluster.topic(name) and cluster.bounds(name, range(partitions)))
            except (Denied, Unreachable):
                return False

        self.until(served)

    def create_map(self, topology: Topology, prefix: str, partitions: int) -> dict[str, bool]:
        made = create_topics(
            self.client, topology, prefix=prefix, partitions=partitions, replication_factor=1
        )
        return dict(made)

    def delete_topic(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(ANSWER_S_MAX)
        cluster = self.cluster()
        self.until(lambda: cluster.topic(name) is None)

    def delete_before(self, topic: str, offset: int) -> None:
        at = TopicPartition(topic, 0, offset)
        self._admin.delete_records([at])[at].result(ANSWER_S_MAX)

    def forbid(self, topic: str) -> None:
        acl = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.WRITE,
            AclPermissionType.DENY,
        )
        self._admin.create_acls([acl])[acl].result(ANSWER_S_MAX)

    @contextmanager
    def silence(self) -> Iterator[None]:
        self.kafka.pause()
        try:
            yield
        finally:
            self.kafka.resume()
            # A broker that was frozen for some seconds leads nothing until it has registered again.
            self.create_topic(self.name("awake"), 1)

    def _commands(self, topic: str, group: str, instance_id: str | None) -> Commands:
        return KafkaCommands(self.client, topic, group, session_ms=2000, instance_id=instance_id)

    def _transaction(self, identity: str, commands: str, group: str) -> Transaction:
        return KafkaTransaction(self.client, identity, commands)

    def _reader(self) -> LogReader:
        return KafkaLogReader(self.client)

    def _cluster(self) -> Cluster:
        return KafkaCluster(self.client)

    def _heartbeat(self, topic: str) -> Heartbeat:
        return KafkaHeartbeat(self.client, topic)


def _dotted(config: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in config.items()}


class Owner:
    """An Ownership that remembers."""

    def __init__(self) -> None:
        self.owned: set[int] = set()
        self.heard: list[tuple[str, list[int]]] = []

    def assigned(self, partitions: Sequence[int]) -> None:
        self.heard.append(("assigned", list(partitions)))
        self.owned.update(partitions)

    def revoked(self, partitions: Sequence[int]) -> None:
        self.heard.append(("revoked", list(partitions)))
        self.owned.difference_update(partitions)

    def lost(self, partitions: Sequence[int]) -> None:
        self.heard.append(("lost", list(partitions)))
        self.owned.difference_update(partitions)
