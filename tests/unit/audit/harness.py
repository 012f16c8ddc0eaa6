"""An honest log: the real Stepper, processors, core and codec, on lists of records."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from tocsin.adapters.memory.clock import ManualClock
from tocsin.adapters.memory.stores import MemoryStores
from tocsin.app.topology import TOPOLOGY
from tocsin.audit.deliveries import DeliveryLog
from tocsin.audit.verify import Report, verify_partition
from tocsin.core.limits import Limits
from tocsin.core.partitioning import partition_of
from tocsin.core.values import EpochMs, Header, Offset
from tocsin.dataflow import Record
from tocsin.ports import Report as Produced
from tocsin.ports import Token
from tocsin.runtime.faults import NoFaults
from tocsin.runtime.index import FORMAT, Checkpoint, TimerIndex
from tocsin.runtime.names import Names
from tocsin.runtime.partition import Partition, Phase
from tocsin.runtime.step import Stepper
from tocsin.runtime.world import Bounds, Installation, World

PARTITION = 0
IDS = ("commands-id", "events-id", "state-id")
TOKEN = Token(1, "member", None)
LIMITS = Limits(targets=frozenset({"other", "gone"}))


class Logs:
    """Everything that was committed; also the transaction that commits it."""

    def __init__(self, delivery_partitions: int = 1) -> None:
        self.counts = {"tocsin.deliveries": delivery_partitions, "other": 1}
        self.records: dict[tuple[str, int], list[Record]] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._open: list[tuple[Record, Callable[[Produced], None] | None]] = []

    def begin(self) -> None:
        self._open = []

    def produce(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        timestamp: EpochMs | None = None,
        report: Callable[[Produced], None] | None = None,
    ) -> None:
        if partition is None:
            partition = partition_of(key or b"", self.counts.get(topic, 1))
        offset = Offset(self._ends.get((topic, partition), 0))
        self._ends[topic, partition] = offset + 1
        at = EpochMs(0) if timestamp is None else timestamp
        record = Record(topic, partition, offset, key, value, tuple(headers), at, timestamp is None)
        self._open.append((record, report))

    def send_positions(self, positions: Mapping[int, Offset], token: Token) -> None:
        pass

    def commit(self) -> None:
        touched = {(record.topic, record.partition) for record, _ in self._open}
        for record, report in self._open:
            self.records.setdefault((record.topic, record.partition), []).append(record)
            if report is not None:
                report(Produced(record.offset, None, None, False))
        for place in touched:
            self._ends[place] += 1  # the control record


class Engine:
    """One partition and its commands."""

    def __init__(self, *, partitions: int = 1, delivery_partitions: int = 1) -> None:
        self.clock = ManualClock()
        self.logs = Logs(delivery_partitions)
        self.commands: list[Record] = []
        self.command_offset = 0
        self._taken = 0
        self._stores = MemoryStores()
        self.partition = self._mounted()
        installation = Installation(
            topology=TOPOLOGY, names=Names("tocsin"), limits=LIMITS, bounds=Bounds(decisions_max=40)
        )
        nothing = cast("Any", _Nothing())
        world = World(
            commands=nothing,
            cluster=nothing,
            reader=nothing,
            stores=self._stores,
            heartbeat=nothing,
            clock=self.clock,
            meter=nothing,
            faults=NoFaults(),
            transaction=nothing,
        )
        self.stepper = Stepper(
            world, installation, cast("Any", self.logs), partitions, stopping=lambda: False
        )

    def _mounted(self) -> Partition:
        partition = Partition(PARTITION)
        partition.topic_ids = IDS
        store = self._stores.open(PARTITION)
        checkpoint = Checkpoint(
            format=FORMAT,
            state_id=IDS[2],
            offset=Offset(0),
            at_end=EpochMs(0),
            cursor=b"d",
            armed=0,
        )
        partition.mount(store, TimerIndex(store, checkpoint))
        partition.phase = Phase.LIVE
        return partition

    def restart(self) -> None:
        """Lose the local store, and restore it from the state topic."""
        was = self.partition
        was.close()
        self._stores.wipe(PARTITION)
        self.partition = self._mounted()
        records = {cast("bytes", record.key): record.value for record in self.state}
        self.partition.index.absorb(records.items(), Offset(len(self.state)))
        step = self.partition.index.step_record()
        if step is not None:
            self.partition.step = step.step
            self.partition.engine_time = step.engine_time
            self.partition.next_command = step.next_command
        self.partition.inbox.extend(
            record for record in self.commands if record.offset >= self.partition.next_command
        )

    def send(self, actor: str | bytes | None, command: Mapping[str, Any] | bytes) -> Offset:
        """Put a command into the log."""
        key = actor.encode() if isinstance(actor, str) else actor
        value = command if isinstance(command, bytes) else msgspec.json.encode(command)
        offset = Offset(self.command_offset)
        self.command_offset += 1
        now = self.clock.wall_ms()
        record = Record("tocsin.commands", PARTITION, offset, key, value, (), now, True)
        self.commands.append(record)
        self.partition.inbox.append(record)
        return offset

    def step(self) -> bool:
        return self.stepper.run([self.partition], TOKEN, may_fire=True)

    def settle(self) -> None:
        while self.step():
            pass

    # --- what an audit reads

    @property
    def events(self) -> list[Record]:
        return self.logs.records.setdefault(("tocsin.events", PARTITION), [])

    @property
    def state(self) -> list[Record]:
        return self.logs.records.setdefault(("tocsin.state", PARTITION), [])

    def deliveries(self, topic: str = "tocsin.deliveries", partition: int = 0) -> list[Record]:
        return self.logs.records.setdefault((topic, partition), [])


class HeldDeliveries:
    """Delivery logs of what an Engine committed."""

    default = "tocsin.deliveries"
    targets = ("tocsin.deliveries", "other")
    owners = 1

    def __init__(self, logs: Logs, *, settled: int = 2**62) -> None:
        self._logs = logs
        #: By topic and partition; a test may put others in their place.
        self.records = logs.records
        self._settled = Offset(settled)
        self.starts: dict[tuple[str, int], Offset] = {}

    def partitions(self, topic: str) -> int | None:
        return self._logs.counts.get(topic)

    def log(self, topic: str, partition: int) -> DeliveryLog:
        start = self.starts.get((topic, partition), Offset(0))
        records = self.records.get((topic, partition), [])
        return DeliveryLog(
            iter([record for record in records if record.offset >= start]), start, self._settled
        )


def audit(engine: Engine, **changes: Any) -> Report:
    """Verify everything that `engine` wrote, or what a test put in its place."""
    given: dict[str, Any] = {
        "events": engine.events,
        "state": engine.state,
        "deliveries": HeldDeliveries(engine.logs),
        "commands": engine.commands,
        "topic_ids": IDS,
        **changes,
    }
    return verify_partition(PARTITION, **given)


def kinds(report: Report) -> set[str]:
    return set(report.counts)


def renumbered(records: Iterable[Record]) -> list[Record]:
    """Return the records with offsets in their new order."""
    return list(_renumbered(records))


def _renumbered(records: Iterable[Record]) -> Iterator[Record]:
    for offset, record in enumerate(records):
        yield msgspec.structs.replace(record, offset=Offset(offset))


class _Nothing:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_args, **_more: None
