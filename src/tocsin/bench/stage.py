"""The stage of one workload: topics of its own, workers, a producer, receivers.

Waiting is in slices, so that the end of a worker or receiver is noticed, and bounded: when nothing
has moved for STALL_S_MAX, there is nothing to measure.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from tocsin.adapters.clock import SystemClock
from tocsin.adapters.kafka.bulk import BulkProducer, delete_topics
from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.adapters.kafka.topics import create_topics
from tocsin.app.topology import TOPOLOGY
from tocsin.bench.driver import CHUNK, Command, one_shots, send
from tocsin.bench.errors import BenchError, StalledError
from tocsin.bench.processes import Receiver, Workers, busy_seconds, cpu_seconds
from tocsin.bench.receipts import Receipts
from tocsin.bench.receiver import Task
from tocsin.core.values import EpochMs
from tocsin.ports import Denied, Unreachable
from tocsin.runtime.names import Names
from tocsin.runtime.partition import Phase
from tocsin.runtime.status import PartitionStatus

#: Nothing has moved for so long.
STALL_S_MAX = 30.0
LOOK_S = 0.02
READY_S_MAX = 60.0
STATUS_BATCH = 1_000
TOPICS_S_MAX = 30.0
#: Arms a second that are planned with before any were seen.
ARMS_PLANNED = 4_000
#: Arming may take so many times what its rate has promised.
CAUTION = 2
LEAD_MS = 5_000
#: The stream of a warm-up lasts so long.
WARM_UP_MS = 10_000

#: Shows how far something is, given what and how much there is of it.
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


class Setting(Struct, frozen=True, kw_only=True):
    """What is the same for all workloads of one call."""

    client: Mapping[str, str | int | float | bool]
    workers: int
    partitions: int
    replication_factor: int
    #: Reminders that are armed and fired before anything is measured, so that no JVM is cold.
    warm_up: int
    #: Process of the broker, where it is ours.
    broker: int | None
    #: File of settings that the workers read; None: the one they would read anyway.
    config: str | None
    #: Keep topics, states and logs.
    keep: bool


class Arming(Struct, frozen=True, kw_only=True):
    """How arming went."""

    #: Wall clock before the first command was produced, and when the last event was received.
    begun: int
    ended: int
    count: int

    @property
    def per_second(self) -> float:
        """Commands a second."""
        return self.count * 1_000 / max(self.ended - self.begun, 1)


class Stage:
    """Ready once entered; leaves nothing behind, unless asked to."""

    def __init__(self, setting: Setting, prefix: str, home: Path, progress: Progress) -> None:
        self.setting = setting
        self.names = Names(prefix)
        self.progress = progress
        self.clock = SystemClock()
        self.workers = Workers(
            home,
            {
                "TOCSIN_BOOTSTRAP_SERVERS": str(setting.client["bootstrap.servers"]),
                "TOCSIN_PREFIX": prefix,
                "TOCSIN_LISTEN_PORT": "0",
                "TOCSIN_LOG_FORMAT": "json",
                **({} if setting.config is None else {"TOCSIN_CONFIG": setting.config}),
            },
        )
        self.cluster = KafkaCluster(setting.client)
        self._home = home
        self._topics = [self.names.topic(topic.name) for topic in TOPOLOGY.topics]
        self._producer = BulkProducer(setting.client)
        self._receivers = 0
        self._arms_per_second = float(ARMS_PLANNED)
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        self._home.mkdir(parents=True)
        with self._exit:
            self._create_topics()
            self._exit.enter_context(self.workers)
            self.start_workers()
            self._warm_up()
            self._exit = self._exit.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    # --- workers

    def start_workers(self) -> None:
        """Start the workers and wait until each partition fires, every worker with its share."""
        ends = self.cluster.bounds(self.names.topic("status"), range(self.setting.partitions))
        self.workers.start(self.setting.workers)
        reader = KafkaLogReader(self.setting.client)
        for partition, bounds in ends.items():
            reader.seek(self.names.topic("status"), partition, bounds.end)
        try:
            self._wait_until_live(reader)
        finally:
            reader.close()

    def _wait_until_live(self, reader: KafkaLogReader) -> None:
        owners = min(self.setting.workers, self.setting.partitions)
        latest: dict[int, PartitionStatus] = {}
        with self.progress("Workers get ready", self.setting.partitions) as update:
            for _ in self._slices(READY_S_MAX, "the workers do not get ready", lambda: len(latest)):
                for record in reader.read(LOOK_S, STATUS_BATCH):
                    if record.value:
                        status = msgspec.json.decode(record.value, type=PartitionStatus)
                        latest[status.partition] = status
                live = [s for s in latest.values() if s.phase == Phase.LIVE]
                update(len(live))
                if len(live) == self.setting.partitions and len({s.owner for s in live}) == owners:
                    return

    # --- receiving

    @contextmanager
    def receiver(self, *, events: bool = False) -> Iterator[Receiver]:
        """Return a receiver of deliveries, or of the events that answer Arm, already reading."""
        self._receivers += 1
        task = Task(
            client=self.setting.client,
            topic=self.names.topic("events" if events else "deliveries"),
            partitions=self.setting.partitions,
            events=events,
            file=str(self._home / f"receipts-{self._receivers}"),
        )
        with Receiver(task) as receiver:
            for _ in self._slices(READY_S_MAX, "the receiver does not get ready"):
                if receiver.ready:
                    break
            yield receiver

    def wait_for(
        self, receiver: Receiver, count: int, what: str, stall_s: float = STALL_S_MAX
    ) -> None:
        """Return once the receiver has `count`, or when no more come: the checks tell then."""
        with suppress(StalledError), self.progress(what, count) as update:
            for _ in self._slices(stall_s, f"{what}: no more come", receiver.look):
                update(receiver.count)
                if receiver.count >= count:
                    return

    def sleep_until(self, instant: int) -> None:
        """Return at that time of the wall clock."""
        while (left := instant - self.clock.wall_ms()) > 0:
            self.workers.check()
            time.sleep(min(left / 1_000, LOOK_S))

    # --- arming

    def arm(self, commands: Iterable[Command], count: int, what: str) -> Arming:
        """Arm `count` reminders and return once each was answered; BenchError when one was not."""
        topic = self.names.topic("commands")
        stream = iter(commands)
        with self.receiver(events=True) as receiver:
            with self.progress(what, count) as update:
                chunk = list(islice(stream, CHUNK))
                begun = self.clock.wall_ms()
                while chunk:
                    send(self._producer, topic, chunk)
                    update(receiver.look())
                    chunk = list(islice(stream, CHUNK))
                self._producer.flush()
            self.wait_for(receiver, count, f"{what}: answers")
            receipts = receiver.finish()
        _check_arming(receipts, count)
        arming = Arming(begun=begun, ended=receipts.received[-1], count=count)
        self._arms_per_second = arming.per_second
        return arming

    def send(self, commands: Sequence[Command]) -> None:
        """Have commands in the log; nobody waits for their answers."""
        send(self._producer, self.names.topic("commands"), commands)
        self._producer.flush()

    def after_arming(self, count: int) -> EpochMs:
        """Return an instant by which `count` reminders will be armed."""
        takes_ms = CAUTION * count * 1_000 / self._arms_per_second
        return EpochMs(self.clock.wall_ms() + round(takes_ms) + LEAD_MS)

    def check_armed_before(self, arming: Arming, due: int) -> None:
        """BenchError when arming was not over by `due`."""
        if self.clock.wall_ms() >= due:
            raise BenchError(
                f"arming took {arming.ended - arming.begun} ms, longer than planned with: the "
                "first were due before it was over. Try again on a quieter machine."
            )

    def _warm_up(self) -> None:
        count = self.setting.warm_up
        if not count:
            return
        with self.receiver() as receiver:
            now = self.clock.wall_ms()
            # Half of them at once, half of them in a stream: a JVM warms up to each by itself.
            dues = [
                EpochMs(now + max(0, 2 * i - count) * WARM_UP_MS // count) for i in range(count)
            ]
            self.arm(one_shots("warm-up", dues), count, "Warming up")
            self.wait_for(receiver, count, "Warming up: deliveries")

    # --- figures

    def cpu(self, receiver: Receiver | None = None) -> dict[str, float]:
        """Return the CPU seconds used so far, by who used them; others: whoever else is busy."""
        used = {"workers": cpu_seconds(self.workers.pids), "driver": cpu_seconds([os.getpid()])}
        if self.setting.broker is not None:
            used["broker"] = cpu_seconds([self.setting.broker])
        if receiver is not None:
            used["receiver"] = cpu_seconds([receiver.pid])
        total = busy_seconds()
        if total is not None:
            used["others"] = total - sum(used.values())
        return used

    # --- how

    def _create_topics(self) -> None:
        create_topics(
            self.setting.client,
            TOPOLOGY,
            prefix=self.names.prefix,
            partitions=self.setting.partitions,
            replication_factor=self.setting.replication_factor,
        )
        if not self.setting.keep:
            self._exit.callback(shutil.rmtree, self._home, ignore_errors=True)
            self._exit.callback(delete_topics, self.setting.client, self._topics)
        for topic in self._topics:
            self._wait_for_leaders(topic)

    def _wait_for_leaders(self, topic: str) -> None:
        for _ in self._slices(TOPICS_S_MAX, f"the topic {topic} does not come up"):
            # Denied too: for a moment it may be said not to exist.
            with suppress(Unreachable, Denied):
                self.cluster.bounds(topic, range(self.setting.partitions))
                return

    def _slices(
        self, seconds: float, why: str, moved: Callable[[], int] = lambda: 0
    ) -> Iterator[None]:
        """Yield time and again; StalledError once `moved` has told nothing new for `seconds`."""
        last, since = moved(), self.clock.monotonic_ms()
        while True:
            yield
            self.workers.check()
            time.sleep(LOOK_S)
            now, at = self.clock.monotonic_ms(), moved()
            if at != last:
                last, since = at, now
            if now - since > seconds * 1_000:
                raise StalledError(f"{why} (for {seconds:.0f} s)\n{self.workers.tail(0)}")


def shares(before: Mapping[str, float], after: Mapping[str, float], ms: float) -> dict[str, float]:
    """Return the CPU used between two moments, in percent of one core."""
    return {
        f"{who}_cpu_percent": 100_000 * (used - before[who]) / max(ms, 1)
        for who, used in after.items()
    }


def _check_arming(receipts: Receipts, count: int) -> None:
    if receipts.wrong or receipts.duplicates or len(receipts.received) != count:
        raise BenchError(
            f"of {count} commands {len(receipts.received)} were armed, {receipts.wrong} refused, "
            f"{receipts.duplicates} answered twice"
        )
