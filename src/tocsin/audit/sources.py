"""Reads what an audit needs from a live system, so that its ends belong together.

The order of freezing is the proof. Deliveries: their stable end first. State: then, to its written
end, which tells the step N. Events and deliveries of steps up to N: to the end that was written by
then. A transaction decides everywhere at once but shows at each partition when its marker comes,
so a written end is waited for.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from msgspec import Struct

from tocsin.audit.deliveries import DeliveryLog
from tocsin.audit.verify import FINDINGS_MAX, Report, verify_partition
from tocsin.codec.keys import STEP_KEY
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Bounds, Cluster, Denied, LogReader, TopicState, Unreachable

READ_S = 0.5
READ_MAX = 5_000
#: Reads in a row without progress, after which something holds the records back for good.
IDLE_READS_MAX = 60
#: Passes over what was added to the state while it was read; compaction can hide a record only
#: behind a newer one of its key, which the next pass brings.
PASSES_MAX = 5
#: Retention may cut the log while it is read.
ATTEMPTS_MAX = 3


class Topics(Struct, frozen=True, kw_only=True):
    """Full names. `targets` are the topics that deliveries may go to beside the default one."""

    commands: str
    events: str
    state: str
    deliveries: str
    targets: tuple[str, ...] = ()

    @classmethod
    def of(cls, prefix: str, targets: Sequence[str] = ()) -> "Topics":
        """Return the topics of an installation."""
        return cls(
            commands=f"{prefix}.commands",
            events=f"{prefix}.events",
            state=f"{prefix}.state",
            deliveries=f"{prefix}.deliveries",
            targets=tuple(sorted(targets)),
        )


class LiveAudit:
    """Audits the partitions of one installation.

    Constructed just before: the deliveries' ends are frozen then. Unreachable when no broker
    answers or a transaction stays open, Denied without a topic or a permission.
    """

    def __init__(
        self, cluster: Cluster, open_reader: Callable[[], LogReader], topics: Topics
    ) -> None:
        self._cluster = cluster
        self._open_reader = open_reader
        self._topics = topics
        self._events = self._topic(topics.events)
        self._state = self._topic(topics.state)
        self._commands = self._topic(topics.commands)
        self._settled: dict[tuple[str, int], Offset] = {}
        self._counts: dict[str, int | None] = {}
        for topic in (topics.deliveries, *topics.targets):
            found = cluster.topic(topic)
            self._counts[topic] = None if found is None else found.partitions
            if found is not None:
                bounds = cluster.bounds(topic, range(found.partitions))
                self._settled |= {(topic, p): at.stable_end for p, at in bounds.items()}

    @property
    def partitions(self) -> int:
        """How many partitions there are to audit."""
        return self._events.partitions

    def verify(
        self,
        partition: int,
        *,
        findings_max: int = FINDINGS_MAX,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> Report:
        """Return what the log of `partition` proves; `on_progress` gets events read and to read."""
        for _ in range(ATTEMPTS_MAX - 1):
            start = self._start_of_events(partition)
            report = self._verify(partition, start, findings_max, on_progress)
            if report.clean or self._start_of_events(partition) == start:
                return report
        return self._verify(partition, self._start_of_events(partition), findings_max, on_progress)

    def _verify(
        self,
        partition: int,
        start: Offset,
        findings_max: int,
        on_progress: Callable[[int, int], None],
    ) -> Report:
        with ExitStack() as stack:
            logs = _Logs(self._cluster, self._open_reader, stack)
            reading = _Reading(logs, self._topics, partition, start, on_progress)
            return verify_partition(
                partition,
                reading.events(),
                reading.state(),
                deliveries=_Deliveries(
                    logs, self._topics, self._commands.partitions, self._counts, self._settled
                ),
                commands=reading.commands(),
                events_start=start,
                topic_ids=(self._commands.id, self._events.id, self._state.id),
                findings_max=findings_max,
            )

    def _start_of_events(self, partition: int) -> Offset:
        return self._cluster.bounds(self._topics.events, [partition])[partition].start

    def _topic(self, name: str) -> TopicState:
        found = self._cluster.topic(name)
        if found is None:
            raise Denied(f"topic {name} does not exist")
        return found


class _Logs:
    """Single partitions as iterators, each with a reader of its own."""

    def __init__(
        self, cluster: Cluster, open_reader: Callable[[], LogReader], stack: ExitStack
    ) -> None:
        self.cluster = cluster
        self._open_reader = open_reader
        self._stack = stack

    def read(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        on_position: Callable[[int], None] = lambda _position: None,
    ) -> Iterator[Record]:
        """Yield the committed records from `start` to `end`, waiting until they are decided."""
        if start >= end:
            return
        reader = self._open_reader()
        self._stack.callback(reader.close)
        reader.seek(topic, partition, Offset(start))
        idle, before = 0, start
        while before < end:
            records = reader.read(READ_S, READ_MAX)
            position = reader.position(topic, partition)
            for record in records:
                if record.offset < end:
                    yield record
            idle = idle + 1 if position == before else 0
            before = position
            on_position(min(position, end))
            if idle == IDLE_READS_MAX:
                raise Unreachable(
                    f"{topic}[{partition}] shows nothing from offset {position} on although it "
                    f"was written up to {end}: a transaction stays open"
                )
        reader.leave(topic, partition)


class _Reading:
    """The events, state and commands of one partition, to ends that belong together."""

    def __init__(
        self,
        logs: _Logs,
        topics: Topics,
        partition: int,
        start: Offset,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self._logs = logs
        self._topics = topics
        self._partition = partition
        self._start = start
        self._on_progress = on_progress
        self._has_step = False
        #: While there is no step record, only events from before are held against that.
        self._events_before = self._bounds(topics.events).stable_end

    def state(self) -> Iterator[Record]:
        """Yield the state topic up to an end that stood still, or nearly."""
        topic = self._topics.state
        bounds = self._bounds(topic)
        done, end = bounds.start, bounds.end
        for _ in range(PASSES_MAX):
            for record in self._logs.read(topic, self._partition, done, end):
                self._has_step = self._has_step or record.key == STEP_KEY
                yield record
            done, end = end, self._bounds(topic).end
            if done >= end:
                return

    def events(self) -> Iterator[Record]:
        """Yield the events; begun once the state was read."""
        topic = self._topics.events
        end = self._bounds(topic).end if self._has_step else self._events_before
        start, total = self._start, max(0, end - self._start)
        self._on_progress(0, total)
        yield from self._logs.read(
            topic, self._partition, start, end, lambda at: self._on_progress(at - start, total)
        )
        self._on_progress(total, total)

    def commands(self) -> Iterator[Record]:
        """Yield the commands that are left, up to what the engine can have read."""
        topic = self._topics.commands
        bounds = self._bounds(topic)
        yield from self._logs.read(topic, self._partition, bounds.start, bounds.stable_end)

    def _bounds(self, topic: str) -> Bounds:
        return self._logs.cluster.bounds(topic, [self._partition])[self._partition]


class _Deliveries:
    """The target topics, for the audit of one partition."""

    def __init__(
        self,
        logs: _Logs,
        topics: Topics,
        owners: int,
        counts: dict[str, int | None],
        settled: dict[tuple[str, int], Offset],
    ) -> None:
        self._logs = logs
        self._counts = counts
        self._settled = settled
        self.default = topics.deliveries
        self.targets = (topics.deliveries, *topics.targets)
        self.owners = owners

    def partitions(self, topic: str) -> int | None:
        if topic not in self._counts:
            found = self._logs.cluster.topic(topic)
            self._counts[topic] = None if found is None else found.partitions
        return self._counts[topic]

    def log(self, topic: str, partition: int) -> DeliveryLog:
        bounds = self._logs.cluster.bounds(topic, [partition])[partition]
        return DeliveryLog(
            self._logs.read(topic, partition, bounds.start, bounds.end),
            bounds.start,
            self._settled.get((topic, partition), Offset(0)),
        )
