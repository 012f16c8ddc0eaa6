"""The composition root: from settings to a running worker. Nothing is decided here that the
runtime could decide; what is here waits for a broker, checks the topics, and wires adapters.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from threading import Event

import structlog

from tocsin import __version__
from tocsin.adapters.clock import SystemClock
from tocsin.adapters.http.endpoint import Endpoint
from tocsin.adapters.http.subject import Progress, Subject
from tocsin.adapters.kafka.client_check import refused_settings
from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.commands import KafkaCommands
from tocsin.adapters.kafka.heartbeat import KafkaHeartbeat
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.adapters.kafka.topics import create_topics
from tocsin.adapters.kafka.transaction import KafkaTransaction
from tocsin.adapters.prometheus import PrometheusMeter
from tocsin.adapters.remembered_counts import RememberedCounts
from tocsin.adapters.rocksdb.state_dir import StateDirectory
from tocsin.adapters.rocksdb.stores import RocksStores
from tocsin.dataflow import Spread, Topology
from tocsin.ports import Cluster, TopicState, Transaction, TransactionFailed, Unreachable
from tocsin.runtime.checks import counts, look, problems
from tocsin.runtime.faults import FAULT_VARIABLE, faults_from
from tocsin.runtime.names import Names
from tocsin.runtime.recovery import CannotStart
from tocsin.runtime.status import StatusBoard
from tocsin.runtime.worker import Worker
from tocsin.runtime.world import Bounds, Installation, World
from tocsin.settings import Settings, SettingsError

log = structlog.get_logger(__name__)

#: Pause before a broker that did not answer is asked again; the question itself takes 5 s.
ASK_AGAIN_S = 1.0
#: Pause before a worker whose clients gave up is made anew; doubled each time.
ANEW_S = 1.0
ANEW_S_MAX = 30.0
#: A worker that ran for so long before it gave up begins with the shortest pause again.
RAN_WELL_MS = 60_000
#: What the runtime knows by name.
_TOPICS = ("commands", "events", "state", "deliveries", "dead-letters", "status")
_SOURCES = ("commands", "timers")


class Engine:
    """One worker and all that it needs. It holds the state directory from construction to `run`'s
    end: StoreUnusable when another process does.
    """

    def __init__(self, settings: Settings) -> None:
        """Nothing is asked of a broker yet. SettingsError, StoreUnusable, CannotListen."""
        _check_client(settings)
        self._settings = settings
        self._installation = installation(settings)
        self._names = self._installation.names
        self._clock = SystemClock()
        self._meter = PrometheusMeter(self._clock)
        self._faults = faults_from(os.environ.get(FAULT_VARIABLE))
        self._stop = Event()
        self._closed = False
        self._waiting_for: str | None = "the topics"
        self._last_look = self._clock.monotonic_ms()
        self._partition_count: int | None = None
        self._worker: Worker | None = None
        self._status: StatusBoard | None = None
        self._state = StateDirectory(settings.state_directory)
        try:
            self._stores = RocksStores(self._state.stores)
            self._remembered = RememberedCounts(self._state.path)
            self._endpoint = Endpoint(
                self._subject(),
                host=settings.listen_host,
                port=settings.listen_port,
                token=settings.token.get_secret_value() if settings.token else None,
                advertised=settings.advertised_address,
            )
        except BaseException:
            self._state.close()
            raise
        self._meter.watch(lambda: () if self._worker is None else self._worker.partitions)

    @property
    def address(self) -> str:
        """Base URL of the read-only endpoint."""
        return self._endpoint.address

    def stop(self) -> None:
        """Ask `run` to end; any thread may."""
        self._stop.set()
        worker = self._worker
        if worker is not None:
            worker.stop()

    def run(self) -> None:
        """Work until asked to stop; whatever the brokers do, wait and go on.

        CannotStart, EngineTopicRefused, MembershipLost, StoreUnusable: an operator has to act.
        """
        pause = ANEW_S
        try:
            while not self._stop.is_set():
                started = self._clock.monotonic_ms()
                try:
                    self._run_once()
                except (TransactionFailed, Unreachable) as trouble:
                    if self._clock.monotonic_ms() - started >= RAN_WELL_MS:
                        pause = ANEW_S
                    log.warning("starting anew", reason=str(trouble), pause_s=pause)
                    self._meter.alert("made_anew")
                    self._wait("a new start", pause)
                    pause = min(2 * pause, ANEW_S_MAX)
        finally:
            self.close()

    def check_topics(self) -> None:
        """Wait for a broker, and check what it says of the topics; CannotStart."""
        cluster = KafkaCluster(self._settings.client)
        try:
            self._found_topics(cluster)
        finally:
            cluster.close()

    def close(self) -> None:
        """Let go of the state directory, and answer no more; after `run` this is done."""
        if not self._closed:
            self._closed = True
            self._endpoint.close()
            self._state.close()

    # --- parts of a run

    def _run_once(self) -> None:
        cluster = KafkaCluster(self._settings.client)
        try:
            if self._found_topics(cluster):
                self._work(cluster)
        finally:
            cluster.close()

    def _found_topics(self, cluster: Cluster) -> bool:
        """Wait for a broker, then check the topics; False when asked to stop meanwhile."""
        topology = self._installation.topology
        while not self._stop.is_set():
            try:
                found = look(cluster, topology, self._names)
            except Unreachable as unreachable:
                servers = self._settings.bootstrap_servers
                log.warning("waiting for a broker", servers=servers, reason=str(unreachable))
                self._wait(f"a broker at {servers}", ASK_AGAIN_S)
                continue
            wrong = problems(
                topology,
                self._names,
                found,
                self._remembered.read(),
                self._installation.limits,
            )
            if wrong:
                raise CannotStart("\n".join(wrong))
            self._remembered.add(counts(topology, found))
            commands = found["commands"]
            assert commands is not None, "its absence is a problem"
            self._partition_count = commands.partitions
            return True
        return False

    def _work(self, cluster: Cluster) -> None:
        world = self._world(cluster)
        self._status = StatusBoard(
            world,
            owner=self._owner,
            address=self._endpoint.address,
            jump_ms_max=self._installation.jump_ms_max,
        )
        self._worker = Worker(world, self._installation, self._status)
        self._waiting_for = None
        if self._stop.is_set():  # it may have been set before there was a worker to tell
            self._worker.stop()
        try:
            self._worker.run()
        finally:
            self._last_look, self._waiting_for = self._clock.monotonic_ms(), "a new start"
            self._worker = self._status = None
            world.reader.close()

    def _world(self, cluster: Cluster) -> World:
        settings, client = self._settings, self._settings.client
        commands = self._names.topic("commands")
        return World(
            commands=KafkaCommands(
                client,
                commands,
                self._names.group,
                session_ms=settings.session_timeout_ms,
                instance_id=settings.group_instance_id,
            ),
            cluster=cluster,
            reader=KafkaLogReader(client),
            stores=self._stores,
            heartbeat=KafkaHeartbeat(client, self._names.topic("status")),
            clock=self._clock,
            meter=self._meter,
            faults=self._faults,
            transaction=self._transaction,
        )

    def _transaction(self, renew: bool) -> Transaction:  # noqa: FBT001  as World has it
        if renew:
            self._state.renew_instance_id()
        return KafkaTransaction(
            self._settings.client,
            f"{self._names.prefix}-{self._state.instance_id}",
            self._names.topic("commands"),
            timeout_ms=self._settings.transaction_timeout_ms,
        )

    def _wait(self, what: str, seconds: float) -> None:
        self._waiting_for = what
        self._last_look = self._clock.monotonic_ms()
        self._stop.wait(seconds)

    # --- what the endpoint sees

    def _owner(self) -> str:
        return self._state.instance_id

    def _subject(self) -> Subject:
        return Subject(
            version=__version__,
            owner=self._owner,
            partitions=lambda: () if self._worker is None else self._worker.partitions,
            partition_count=lambda: self._partition_count,
            progress=self._progress,
            monotonic_ms=self._clock.monotonic_ms,
            metrics=self._meter.render,
        )

    def _progress(self) -> Progress:
        worker, status = self._worker, self._status
        if worker is None or status is None:
            return Progress(
                waiting_for=self._waiting_for,
                last_turn=self._last_look,
                transaction_begun=None,
                member=False,
            )
        begun = worker.transaction_begun
        return Progress(
            waiting_for=None,
            last_turn=status.last_turn,
            # An earlier one is of a turn that has ended.
            transaction_begun=begun if begun is not None and begun >= status.last_turn else None,
            member=worker.is_member,
        )


def build_worker(settings: Settings) -> Engine:
    """Return the worker that `settings` describe, ready to run."""
    return Engine(settings)


def installation(settings: Settings) -> Installation:
    """Return what is the same for every worker of this installation."""
    return Installation(
        topology=load_topology(settings.topology),
        names=Names(settings.prefix),
        limits=settings.engine_limits,
        bounds=Bounds(**settings.step.model_dump()),
        accept_lost_commands=settings.accept_lost_commands,
        transaction_ms_max=settings.transaction_timeout_ms,
        jump_ms_max=settings.jump_ms_max,
    )


def load_topology(path: str) -> Topology:
    """Return the map that `module:NAME` is; SettingsError when there is none.

    The current directory is looked at last, so that nothing in it takes the place of a library.
    """
    module, _, name = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(
            f"topology = {path!r}: {error}; name a Topology as module:NAME"
        ) from None
    if not isinstance(found, Topology):
        raise SettingsError(f"topology = {path!r}: it is a {type(found).__name__}, no Topology")
    absent = set(_TOPICS) - {topic.name for topic in found.topics}
    unread = set(_SOURCES) - {processor.source for processor in found.processors}
    if absent or unread:
        raise SettingsError(
            f"topology = {path!r}: the engine needs the topics {', '.join(_TOPICS)} and a "
            f"processor for each of {', '.join(_SOURCES)}; "
            f"missing: {', '.join(sorted(absent | unread))}"
        )
    return found


# --- Topics, for `tocsin topics` ---------------------------------------------------------------


def create_missing_topics(settings: Settings) -> dict[str, bool]:
    """Create the topics of the map that are missing; full name -> whether it was created now.

    What is missing gets as many partitions as what is there. SettingsError when another number was
    asked for.
    """
    topology, names = load_topology(settings.topology), Names(settings.prefix)
    owned = {topic.name for topic in topology.topics if topic.spread is Spread.OWNED}
    partitions = settings.partitions
    for name, state in found_topics(settings).items():
        if name not in owned or state is None:
            continue
        if settings.origin("partitions") != "default" and state.partitions != settings.partitions:
            raise SettingsError(
                f"partitions = {settings.partitions} (from {settings.origin('partitions')}): "
                f"{names.topic(name)} is there with {state.partitions}, and the count is fixed "
                f"once created; ask for {state.partitions}, or choose another prefix"
            )
        partitions = state.partitions
    return dict(
        create_topics(
            settings.client,
            topology,
            prefix=settings.prefix,
            partitions=partitions,
            replication_factor=settings.replication_factor,
        )
    )


def found_topics(settings: Settings) -> dict[str, TopicState | None]:
    """Return the topics of the map as they are at the broker, by their name in the map."""
    _check_client(settings)
    cluster = KafkaCluster(settings.client)
    try:
        return look(cluster, load_topology(settings.topology), Names(settings.prefix))
    finally:
        cluster.close()


def topic_problems(settings: Settings) -> list[str]:
    """Return what would keep a worker from starting; empty when nothing does."""
    chart = installation(settings)
    found = found_topics(settings)
    return problems(chart.topology, chart.names, found, {}, chart.limits)


def _check_client(settings: Settings) -> None:
    refused = refused_settings(settings.client)
    if refused is not None:
        raise SettingsError(f"kafka: {refused}")
