"""Real workers on a real broker: in threads that can be paused and made to fail at named points,
or in processes that can be killed. Every wait is for a condition, and bounded.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupState, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec import structs

from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.commands import KafkaCommands
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.adapters.kafka.transaction import KafkaTransaction
from tocsin.app.topology import TOPOLOGY
from tocsin.bootstrap import Engine, create_missing_topics
from tocsin.codec.events import decode_event
from tocsin.core.events import Event
from tocsin.core.partitioning import partition_of
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.embedded import EmbeddedKafka
from tocsin.ports import Cluster, Denied, Unreachable
from tocsin.runtime.faults import FAULT_VARIABLE, Faults, Point
from tocsin.runtime.partition import Phase
from tocsin.runtime.world import World
from tocsin.settings import Settings

WAIT_S_MAX = 40.0
SESSION_MS = 2_000
TRANSACTION_MS = 4_000
#: What a worker follows, and a test reads.
READ = ("events", "deliveries", "dead-letters")

T = TypeVar("T")


class Gate(Faults):
    """Counts the visits of each point; once asked to, fails or holds the next one of a point."""

    def __init__(self) -> None:
        self.visits: Counter[Point] = Counter()
        self.held = threading.Event()
        self._go_on = threading.Event()
        self._hold_at: Point | None = None
        self._failures: list[tuple[Point, Exception]] = []

    def hold(self, point: Point) -> None:
        self._hold_at = point

    def release(self) -> None:
        self._go_on.set()

    def fail(self, point: Point, error: Exception) -> None:
        self._failures.append((point, error))

    def at(self, point: Point) -> None:
        self.visits[point] += 1
        if self._failures and self._failures[0][0] is point:
            raise self._failures.pop(0)[1]
        if point is self._hold_at:
            self._hold_at = None
            self.held.set()
            assert self._go_on.wait(WAIT_S_MAX), "nobody let it go on"


class Impatient(Engine):
    """Is no member any more once its loop was held for a session.

    The client library's heartbeats go on while a thread is held; its other limit does not.
    """

    def _world(self, cluster: Cluster) -> World:
        world = super()._world(cluster)
        world.commands.close()
        settings = self._settings
        self._commands = KafkaCommands(
            {**settings.client, "max.poll.interval.ms": settings.session_timeout_ms},
            self._names.topic("commands"),
            self._names.group,
            session_ms=settings.session_timeout_ms,
        )
        return structs.replace(world, commands=self._commands)


class Running:
    """An engine in a thread."""

    def __init__(self, settings: Settings, kind: type[Engine]) -> None:
        self.gate = Gate()
        self.failure: Exception | None = None
        self.engine = kind(settings)
        self.engine._faults = self.gate
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.engine.run()
        except Exception as error:  # noqa: BLE001  the test asks for it
            self.failure = error

    @property
    def phases(self) -> dict[int, Phase]:
        worker = self.engine._worker
        return {} if worker is None else {p.number: p.phase for p in worker.partitions}

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Leave as SIGTERM does."""
        self.gate.release()
        self.engine.stop()
        self._thread.join(WAIT_S_MAX)
        assert self.ended, "the worker did not leave"


class Stage:
    """One installation: topics under a prefix of their own, and its workers."""

    def __init__(self, kafka: EmbeddedKafka, prefix: str, directory: Path, partitions: int) -> None:
        self.kafka = kafka
        self.prefix = prefix
        self.partitions = partitions
        self.client = {"bootstrap.servers": kafka.bootstrap_servers}
        self.admin = AdminClient({**self.client, "log_level": 0})
        self.cluster = KafkaCluster(self.client)
        self.running: list[Running] = []
        self._directory = directory
        self._producer = Producer({**self.client, "partitioner": "murmur2_random", "linger.ms": 0})
        self._reader = KafkaLogReader(self.client)
        self._read: dict[str, list[Record]] = {}
        create_missing_topics(self.settings("any"))
        for topic in TOPOLOGY.topics:
            self._served(self.topic(topic.name), partitions)
        for name in READ:
            self.follow(self.topic(name))

    def topic(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def settings(self, name: str, **options: Any) -> Settings:
        values: dict[str, Any] = {
            "bootstrap_servers": self.kafka.bootstrap_servers,
            "prefix": self.prefix,
            "partitions": self.partitions,
            "replication_factor": 1,
            "state_dir": self.directory(name),
            "session_timeout_ms": SESSION_MS,
            "transaction_timeout_ms": TRANSACTION_MS,
        }
        return Settings(**(values | options))

    def directory(self, name: str) -> Path:
        """Where the worker of that name keeps its stores."""
        return self._directory / self.prefix / name

    # --- workers

    def start(self, name: str = "w", kind: type[Engine] = Engine, **options: Any) -> Running:
        running = Running(self.settings(name, **options), kind)
        self.running.append(running)
        return running

    def live(self, name: str = "w", kind: type[Engine] = Engine, **options: Any) -> Running:
        """Start a worker and wait until every partition fires somewhere."""
        running = self.start(name, kind, **options)
        self.until_live()
        return running

    def until_live(self) -> None:
        self.until(self._all_live)

    def _all_live(self) -> bool:
        live = [n for r in self.running for n, p in r.phases.items() if p is Phase.LIVE]
        return sorted(live) == list(range(self.partitions))

    def stop(self, running: Running) -> None:
        running.stop()
        self.running.remove(running)

    def process(self, name: str, fault: str = "") -> subprocess.Popen[bytes]:
        """Start `tocsin worker` in a process that ends with this one."""
        settings = self.settings(name)
        fields = ("bootstrap_servers", "prefix", "state_dir", "session_timeout_ms")
        variables = {f"TOCSIN_{f.upper()}": str(getattr(settings, f)) for f in fields}
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tocsin.cli", "worker", "--until-stdin-closes"],
            env=os.environ | variables | {FAULT_VARIABLE: fault},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    # --- what clients and operators do

    def command(self, actor: str, **command: Any) -> int:
        """Write a command as JSON; return its offset."""
        told: list[Any] = []
        self.queue(actor, lambda *report: told.append(report), **command)
        assert self._producer.flush(WAIT_S_MAX) == 0
        error, message = told[0]
        assert error is None, error
        return int(message.offset())

    def queue(
        self, actor: str, report: Callable[..., None] = lambda *_: None, **command: Any
    ) -> None:
        """Write a command with the next one that is waited for."""
        value = json.dumps(command).encode()
        topic = self.topic("commands")
        self._producer.produce(topic, value, actor.encode(), on_delivery=report)

    def arm(self, actor: str, name: str = "r", **options: Any) -> int:
        return self.command(actor, arm={"reminder": name, **options})

    def actor(self, partition: int) -> str:
        """Return an actor whose home is `partition`."""
        names = (f"a/{i}" for i in range(10_000))
        return next(n for n in names if partition_of(n.encode(), self.partitions) == partition)

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def transaction(self, identity: str) -> KafkaTransaction:
        """Return an open producer of somebody's."""
        made = KafkaTransaction(self.client, identity, self.topic("commands"), timeout_ms=30_000)
        made.open()
        return made

    def create_topic(self, name: str, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(name, 1, 1, config=settings)
        self.admin.create_topics([new])[name].result(WAIT_S_MAX)
        self._served(name, 1)

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(WAIT_S_MAX)
        self.until(lambda: self.cluster.topic(name) is None)

    def recreate(self, name: str) -> None:
        """Delete a topic of the map and create it anew."""
        self.delete_topic(self.topic(name))
        create_missing_topics(self.settings("any"))
        self._served(self.topic(name), self.partitions)

    def delete_before(self, topic: str, offset: int) -> None:
        at = TopicPartition(topic, 0, offset)
        self.admin.delete_records([at])[at].result(WAIT_S_MAX)

    def delete_group(self) -> None:
        def empty() -> bool:
            described = self.admin.describe_consumer_groups([self.prefix])[self.prefix].result()
            return bool(described.state == ConsumerGroupState.EMPTY)

        self.until(empty)
        self.admin.delete_consumer_groups([self.prefix])[self.prefix].result(WAIT_S_MAX)

    # --- what read_committed readers see

    def follow(self, topic: str) -> None:
        """Read `topic` from its beginning."""
        state = self.cluster.topic(topic)
        assert state is not None
        self._read[topic] = []
        for partition in range(state.partitions):
            self._reader.seek(topic, partition, Offset(0))

    def records(self, topic: str) -> list[Record]:
        """Return what was seen of `topic` so far."""
        for record in self._reader.read(0.02, 10_000):
            self._read[record.topic].append(record)
        return self._read[topic]

    def delivered(self, topic: str | None = None) -> list[str]:
        """Return `actor reminder occurrence` of every delivery, sorted."""
        records = self.records(topic or self.topic("deliveries"))
        told = [json.loads(dict(record.headers)["tocsin"] or b"") for record in records]
        return sorted(f"{t['actor']} {t['reminder']} {t['occurrence']}" for t in told)

    def events(self, kind: type[Event] | None = None) -> list[Any]:
        decoded = [decode_event(r.value or b"")[0] for r in self.records(self.topic("events"))]
        return [event for event in decoded if kind is None or type(event) is kind]

    def answers(self) -> Counter[int | None]:
        """Return how often each command offset was answered (with one partition)."""
        decoded = [decode_event(r.value or b"")[1] for r in self.records(self.topic("events"))]
        return Counter(stamp.command for stamp in decoded if stamp.answer)

    def letters(self) -> list[str]:
        """Return the reminders whose deliveries were buried."""
        records = self.records(self.topic("dead-letters"))
        return sorted(json.loads(dict(r.headers)["tocsin"] or b"")["reminder"] for r in records)

    def last_word(self) -> None:
        """Wait until each partition has fired something armed now: all before it is seen then."""
        actors = [self.actor(partition) for partition in range(self.partitions)]
        for actor in actors:
            self.arm(actor, "last-word")
        self.until(lambda: {f"{a} last-word 0" for a in actors} <= set(self.delivered()))

    def until(self, holds: Callable[[], T]) -> T:
        """Return the first truthy result of `holds`."""
        end = time.monotonic() + WAIT_S_MAX
        while time.monotonic() < end:
            if result := holds():
                return result
            for running in self.running:
                if running.failure is not None:
                    raise running.failure
            threading.Event().wait(0.01)
        raise AssertionError(f"not within {WAIT_S_MAX} s")

    def close(self) -> None:
        for running in self.running:
            running.stop()
        self._reader.close()
        self.cluster.close()

    def _served(self, topic: str, partitions: int) -> None:
        """Wait until a topic made just now has leaders."""

        def served() -> bool:
            try:
                return bool(self.cluster.bounds(topic, range(partitions)))
            except (Denied, Unreachable):
                return False

        self.until(served)
