"""A broker in memory that keeps Kafka's contract: one thread, one process, no waiting.

Time, and with it append times, sessions and transaction time-outs, is the injected clock's.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from tocsin.adapters.memory.faults import Faults
from tocsin.adapters.memory.group import Group
from tocsin.adapters.memory.log import PartitionLog
from tocsin.core.partitioning import partition_of
from tocsin.core.values import EpochMs, Header, Offset
from tocsin.dataflow import Record, Topology
from tocsin.ports import Clock, Denied

#: What a topic has when nothing else was asked; the broker's own defaults.
TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "604800000",
    "delete.retention.ms": "86400000",
}
#: Added to key and value when a record is measured.
RECORD_OVERHEAD = 70


class NoSuchTopic(Denied):
    """The topic, or its partition, does not exist."""


class Topic(Struct):
    """A topic; one made anew under the same name has another id."""

    name: str
    id: str
    config: dict[str, str]
    logs: list[PartitionLog]


class Writer(Struct):
    """What the coordinator knows of one transactional id."""

    id: str
    timeout_ms: int
    epoch: int = 0
    begun_ms: int | None = None
    logs: list[PartitionLog] = field(default_factory=list)
    #: Offsets that the open transaction will commit.
    offsets: dict[str, dict[tuple[str, int], Offset]] = field(default_factory=dict)


class MemoryBroker:
    """Topics, transactions and groups."""

    def __init__(self, clock: Clock, faults: Faults | None = None) -> None:
        self.clock = clock
        self.faults = faults or Faults()
        #: Topics that nobody may write to.
        self.forbidden: set[str] = set()
        self._topics: dict[str, Topic] = {}
        self._made = 0
        self._writers: dict[str, Writer] = {}
        self._groups: dict[str, Group] = {}

    # --- What an operator does -----------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str] | None = None
    ) -> bool:
        """Create a topic; return False when it is there already."""
        if name in self._topics:
            return False
        self._made += 1
        logs = [PartitionLog() for _ in range(partitions)]
        settings = {**TOPIC_DEFAULTS, **(config or {})}
        self._topics[name] = Topic(name, f"topic-{self._made}", settings, logs)
        return True

    def create_topics(
        self, topology: Topology, *, prefix: str, partitions: int
    ) -> Mapping[str, bool]:
        """Create the topics of a map; return for each whether it was created now."""
        return {
            (name := f"{prefix}.{topic.name}"): self.create_topic(
                name, partitions, {**topic.defaults, **topic.config}
            )
            for topic in topology.topics
        }

    def delete_topic(self, name: str) -> None:
        """Delete a topic and what groups and transactions knew of it."""
        gone = self._topics.pop(name)
        for group in self._groups.values():
            group.offsets = {at: o for at, o in group.offsets.items() if at[0] != name}
        for writer in self._writers.values():
            writer.logs = [log for log in writer.logs if log not in gone.logs]

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        """Cut a log, as retention does."""
        self.log(topic, partition).delete_before(offset)

    def compact(self, topic: str) -> None:
        """Run the cleaner over all of a topic."""
        for log in self._topics[topic].logs:
            log.compact()

    def forget_offsets(self, group: str) -> None:
        """Lose a group's offsets, as Kafka does a week after its last member left."""
        self.group(group, 0).offsets.clear()

    # --- What any client does ------------------------------------------------------------------

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp: EpochMs | None = None,
        writer: str | None = None,
    ) -> Record:
        """Write one record; PermissionError, NoSuchTopic or ValueError when it is refused."""
        if topic in self.forbidden:
            raise PermissionError(f"TOPIC_AUTHORIZATION_FAILED: {topic}")
        found = self.topic(topic)
        size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD
        if size > int(found.config["max.message.bytes"]):
            raise ValueError(f"MSG_SIZE_TOO_LARGE: {topic}")
        if key is None and found.config["cleanup.policy"] == "compact":
            raise ValueError(f"INVALID_RECORD: {topic} is compacted and wants a key")
        if partition is None:
            partition = 0 if key is None else partition_of(key, len(found.logs))
        log = self.log(topic, partition)
        appended = found.config["message.timestamp.type"] == "LogAppendTime"
        now = self.clock.wall_ms()
        time = now if appended or timestamp is None else timestamp
        offset = Offset(log.end)
        record = Record(topic, partition, offset, key, value, tuple(headers), time, appended)
        log.append(record, writer)
        return record

    def topic(self, name: str) -> Topic:
        """Return the topic; NoSuchTopic without one."""
        if name not in self._topics:
            raise NoSuchTopic(f"UNKNOWN_TOPIC_OR_PART: {name}")
        return self._topics[name]

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return the log of a partition; NoSuchTopic without one."""
        logs = self.topic(topic).logs
        if not 0 <= partition < len(logs):
            raise NoSuchTopic(f"UNKNOWN_TOPIC_OR_PART: {topic}[{partition}]")
        self._expire()
        return logs[partition]

    # --- The coordinators ----------------------------------------------------------------------

    def group(self, name: str, partitions: int) -> Group:
        """Return the group, which reads a topic of so many partitions."""
        if name not in self._groups:
            self._groups[name] = Group(name, partitions)
        self._expire()
        group = self._groups[name]
        group.partitions = partitions or group.partitions
        return group

    def pending(self, group: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction will commit an offset of this partition."""
        self._expire()
        return any(
            (topic, partition) in writer.offsets.get(group, {}) for writer in self._writers.values()
        )

    def take_over(self, transactional_id: str, timeout_ms: int) -> int:
        """Return the new epoch of a transactional id; who had it before is fenced."""
        writer = self._writers.setdefault(transactional_id, Writer(transactional_id, timeout_ms))
        self.finish(transactional_id, commit=False)
        writer.timeout_ms = timeout_ms
        writer.epoch += 1
        return writer.epoch

    def is_current(self, transactional_id: str, epoch: int) -> bool:
        """Return whether nobody has taken the id over, nor the broker given up on it."""
        self._expire()
        return self._writers[transactional_id].epoch == epoch

    def write(self, transactional_id: str, topic: str, record: "Draft") -> Record:
        """Append a record in the open transaction; refuses as `append` does."""
        writer = self._writers[transactional_id]
        self._begin(writer)
        written = self.append(
            topic,
            record.key,
            record.value,
            headers=record.headers,
            partition=record.partition,
            timestamp=record.timestamp,
            writer=transactional_id,
        )
        log = self.log(topic, written.partition)
        if not any(log is known for known in writer.logs):
            writer.logs.append(log)
        return written

    def promise(
        self, transactional_id: str, group: str, topic: str, offsets: Mapping[int, Offset]
    ) -> None:
        """Make offsets a part of the open transaction."""
        writer = self._writers[transactional_id]
        self._begin(writer)
        promised = writer.offsets.setdefault(group, {})
        promised.update({(topic, p): offset for p, offset in offsets.items()})

    def finish(self, transactional_id: str, *, commit: bool) -> None:
        """End the open transaction, if there is one."""
        writer = self._writers[transactional_id]
        for log in writer.logs:
            log.finish(transactional_id, commit=commit)
        if commit:
            for group, offsets in writer.offsets.items():
                self.group(group, 0).offsets.update(offsets)
        writer.logs, writer.offsets, writer.begun_ms = [], {}, None

    def _begin(self, writer: Writer) -> None:
        if writer.begun_ms is None:
            writer.begun_ms = self.clock.monotonic_ms()

    def _expire(self) -> None:
        """Do what the coordinators do by the clock."""
        now = self.clock.monotonic_ms()
        for writer in self._writers.values():
            if writer.begun_ms is not None and now - writer.begun_ms > writer.timeout_ms:
                self.finish(writer.id, commit=False)
                writer.epoch += 1
        for group in self._groups.values():
            group.expire(now)


class Draft(Struct, frozen=True):
    """A record that is to be written."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int | None
    timestamp: EpochMs | None
