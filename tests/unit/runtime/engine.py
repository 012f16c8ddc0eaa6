"""Workers on a broker in memory: time moves only when told, and a crash is an exception."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tocsin.adapters.memory.broker import MemoryBroker
from tocsin.adapters.memory.clock import ManualClock
from tocsin.adapters.memory.cluster import MemoryCluster
from tocsin.adapters.memory.commands import MemoryCommands
from tocsin.adapters.memory.faults import Faults as BrokerFaults
from tocsin.adapters.memory.heartbeat import MemoryHeartbeat
from tocsin.adapters.memory.log_reader import MemoryLogReader
from tocsin.adapters.memory.stores import MemoryStores
from tocsin.adapters.memory.transaction import MemoryTransaction
from tocsin.app.topology import TOPOLOGY
from tocsin.codec.events import Stamp, decode_event
from tocsin.core.events import Event
from tocsin.core.limits import Limits
from tocsin.core.partitioning import partition_of
from tocsin.core.values import EpochMs
from tocsin.dataflow import Record, Topology
from tocsin.ports import Meter, Transaction, WorldError
from tocsin.runtime.faults import Faults, Point
from tocsin.runtime.names import Names
from tocsin.runtime.partition import Phase
from tocsin.runtime.status import StatusBoard
from tocsin.runtime.worker import Worker
from tocsin.runtime.world import Bounds, Installation, World

NAMES = Names("t")
COMMANDS, EVENTS, STATE = (NAMES.topic(name) for name in ("commands", "events", "state"))
DELIVERIES, DEAD_LETTERS = NAMES.topic("deliveries"), NAMES.topic("dead-letters")
SESSION_MS = 2_000
#: What passes between two rounds of turns.
ROUND_MS = 10
ROUNDS_MAX = 1_000


class Crash(BaseException):
    """The process ends here, and nothing of it is called any more."""


class Interruptions(Faults):
    """What happens at the named points of one worker: each thing once, in turn."""

    def __init__(self) -> None:
        self._actions: list[tuple[Point, Callable[[], object]]] = []

    def on(self, point: Point, action: Callable[[], object]) -> None:
        self._actions.append((point, action))

    def crash(self, point: Point) -> None:
        def end() -> None:
            raise Crash

        self.on(point, end)

    def at(self, point: Point) -> None:
        if self._actions and self._actions[0][0] is point:
            self._actions.pop(0)[1]()


class Failures(BrokerFaults):
    """Calls of ports that fail, each once."""

    def __init__(self) -> None:
        self._before: list[tuple[str, WorldError]] = []
        self._after: list[tuple[str, WorldError]] = []

    def fail_before(self, call: str, error: WorldError) -> None:
        self._before.append((call, error))

    def fail_after(self, call: str, error: WorldError) -> None:
        self._after.append((call, error))

    def before(self, call: str) -> None:
        self._raise(self._before, call)

    def after(self, call: str) -> None:
        self._raise(self._after, call)

    @staticmethod
    def _raise(failures: list[tuple[str, WorldError]], call: str) -> None:
        if failures and failures[0][0] == call:
            raise failures.pop(0)[1]


class Figures(Meter):
    """The figures of one worker, kept."""

    def __init__(self) -> None:
        self.alerts: list[str] = []
        self.transactions: Counter[str] = Counter()
        self.restored_records = 0
        self.lateness: list[int] = []

    def fired(self, partition: int, lateness_ms: Sequence[int]) -> None:
        self.lateness += lateness_ms

    def answered(self, result: str) -> None:
        pass

    def refused(self, reason: str) -> None:
        pass

    def undeliverable(self, target: str) -> None:
        pass

    def transaction(self, outcome: str, seconds: float) -> None:
        self.transactions[outcome] += 1

    def restored(self, partition: int, records: int) -> None:
        self.restored_records += records

    def skew(self, milliseconds: int) -> None:
        pass

    def alert(self, what: str) -> None:
        self.alerts.append(what)


class Node:
    """A worker process on a machine: its disk outlives it, and so does its transactional id."""

    def __init__(
        self,
        engine: "Engine",
        name: str,
        *,
        stores: MemoryStores | None = None,
        commands: type[MemoryCommands] = MemoryCommands,
        installation: Installation | None = None,
    ) -> None:
        self.engine = engine
        self.name = name
        self.identity = name
        self.stores = stores or MemoryStores()
        self.interruptions = Interruptions()
        self.figures = Figures()
        self._renewed = 0
        broker = engine.broker
        self.commands = commands(broker, COMMANDS, NAMES.group, session_ms=SESSION_MS)
        self._world = World(
            commands=self.commands,
            cluster=MemoryCluster(broker),
            reader=MemoryLogReader(broker),
            stores=self.stores,
            heartbeat=MemoryHeartbeat(broker, NAMES.topic("status")),
            clock=engine.clock,
            meter=self.figures,
            faults=self.interruptions,
            transaction=self._transaction,
        )
        chart = installation or engine.installation
        self.status = StatusBoard(
            self._world,
            owner=lambda: self.identity,
            address=None,
            jump_ms_max=chart.jump_ms_max,
        )
        self.worker = Worker(self._world, chart, self.status)
        self.commands.join(self.worker)

    def _transaction(self, renew: bool) -> Transaction:
        if renew:
            self._renewed += 1
            self.identity = f"{self.name}-{self._renewed}"
        return MemoryTransaction(self.engine.broker, self.identity, COMMANDS, NAMES.group)

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.worker.turn()

    def crash_at(self, point: Point) -> None:
        """Take turns until the process ends at `point`."""
        self.interruptions.crash(point)
        for _ in range(ROUNDS_MAX):
            try:
                self.turn()
            except Crash:
                self.kill()
                return
            self.engine.advance(ROUND_MS)
        raise AssertionError(f"never came to {point}")

    def kill(self) -> None:
        """End the process; the group hears nothing of it."""
        self.stores.crash()
        self.engine.nodes.remove(self)

    def leave(self) -> None:
        """End the process as SIGTERM does."""
        self.worker.stop()
        self.worker.run()
        self.engine.nodes.remove(self)

    @property
    def phases(self) -> dict[int, Phase]:
        return {partition.number: partition.phase for partition in self.worker.partitions}


class Engine:
    """One installation: a broker, and the workers that were started and have not ended."""

    def __init__(
        self,
        partitions: int = 1,
        *,
        limits: Limits | None = None,
        bounds: Bounds | None = None,
        topology: Topology = TOPOLOGY,
    ) -> None:
        self.partitions = partitions
        #: The workers' clock, and the broker's.
        self.clock, self.broker_clock = ManualClock(), ManualClock()
        self.failures = Failures()
        self.broker = MemoryBroker(self.broker_clock, self.failures)
        self.broker.create_topics(TOPOLOGY, prefix=NAMES.prefix, partitions=partitions)
        self.installation = Installation(
            topology=topology, names=NAMES, limits=limits or Limits(), bounds=bounds or Bounds()
        )
        self.nodes: list[Node] = []

    @property
    def now(self) -> EpochMs:
        return self.clock.wall_ms()

    def advance(self, by_ms: int) -> None:
        """Let time pass, for workers and broker alike; nobody takes a turn."""
        self.clock.advance(by_ms)
        self.broker_clock.advance(by_ms)

    def jump(self, by_ms: int) -> None:
        """Let everybody's wall clock jump."""
        self.clock.jump(EpochMs(self.clock.wall_ms() + by_ms))
        self.broker_clock.jump(EpochMs(self.broker_clock.wall_ms() + by_ms))

    def start(
        self,
        name: str,
        *,
        stores: MemoryStores | None = None,
        commands: type[MemoryCommands] = MemoryCommands,
        installation: Installation | None = None,
    ) -> Node:
        node = Node(self, name, stores=stores, commands=commands, installation=installation)
        self.nodes.append(node)
        return node

    def live(
        self,
        name: str,
        *,
        stores: MemoryStores | None = None,
        commands: type[MemoryCommands] = MemoryCommands,
        installation: Installation | None = None,
    ) -> Node:
        """Start a worker and wait until every partition fires somewhere."""
        node = self.start(name, stores=stores, commands=commands, installation=installation)
        self.until_live()
        return node

    def until_live(self) -> None:
        self.until(self.all_live)

    def all_live(self) -> bool:
        live = [n for node in self.nodes for n, p in node.phases.items() if p is Phase.LIVE]
        return sorted(live) == list(range(self.partitions))

    def until(self, holds: Callable[[], object]) -> None:
        """Let every worker take turns until it holds."""
        for _ in range(ROUNDS_MAX):
            self.turn()
            if holds():
                return
        raise AssertionError(f"not within {ROUNDS_MAX} rounds")

    def turn(self, times: int = 1) -> None:
        """One turn of every worker, then a little time."""
        for _ in range(times):
            for node in list(self.nodes):
                node.turn()
            self.advance(ROUND_MS)

    # --- what a client does

    def command(self, actor: str, **command: Any) -> Record:
        """Write a command as JSON."""
        return self.broker.append(COMMANDS, actor.encode(), json.dumps(command).encode())

    def arm(self, actor: str, name: str = "r", *, after: int = 0, **options: Any) -> Record:
        """Arm a reminder that is due `after` milliseconds from now."""
        fields = {"reminder": name, "at": self.now + after, **options}
        return self.command(actor, arm=fields)

    def cancel(self, actor: str, name: str = "r") -> Record:
        return self.command(actor, cancel={"reminder": name})

    def actor(self, partition: int, number: int = 0) -> str:
        """Return an actor whose home is `partition`."""
        names = (f"a/{i}" for i in range(10_000))
        at_home = [n for n in names if partition_of(n.encode(), self.partitions) == partition]
        return at_home[number]

    # --- what a reader sees

    def visible(self, topic: str) -> list[Record]:
        """Return what a read_committed reader of all partitions sees."""
        count = len(self.broker.topic(topic).logs)
        logs = [self.broker.log(topic, p) for p in range(count)]
        return [record for log in logs for record in log.read(log.start, 1_000_000)[0]]

    def delivered(self, topic: str = DELIVERIES) -> list[str]:
        """Return `actor reminder occurrence` of every delivery, sorted."""
        told = [json.loads(dict(r.headers)["tocsin"] or b"") for r in self.visible(topic)]
        return sorted(f"{t['actor']} {t['reminder']} {t['occurrence']}" for t in told)

    def events(self, kind: type[Event] | None = None) -> list[Any]:
        decoded = [event for event, _ in self._decoded()]
        return [event for event in decoded if kind is None or type(event) is kind]

    def stamps(self) -> list[Stamp]:
        return [stamp for _, stamp in self._decoded()]

    def answers(self) -> Counter[int]:
        """Return how often each command offset was answered (with one partition)."""
        return Counter(s.command for s in self.stamps() if s.answer and s.command is not None)

    def _decoded(self) -> list[tuple[Event, Stamp]]:
        return [decode_event(record.value or b"") for record in self.visible(EVENTS)]
