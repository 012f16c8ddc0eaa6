"""What the embedded broker is told: server.properties and JVM flags. Pure text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
REPLICATION_FACTOR_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One broker that is also a controller of the cluster."""

    number: int
    port: int
    controller_port: int
    home: Path

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "kafka.log"

    @property
    def properties(self) -> Path:
        return self.home / "server.properties"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerOptions:
    """What a user may choose about each broker."""

    heap_mb: int
    #: Does without the optimising compiler: a second sooner, slower ever after.
    fast_start: bool
    #: Lines for server.properties that have the last word.
    settings: Mapping[str, str]


def server_properties(node: Node, nodes: Sequence[Node], extra: Mapping[str, str]) -> str:
    """The text of `node`'s server.properties; `extra` has the last word."""
    replicas = str(min(len(nodes), REPLICATION_FACTOR_MAX))
    voters = ",".join(f"{other.number}@{HOST}:{other.controller_port}" for other in nodes)
    settings = {
        "process.roles": "broker,controller",
        "node.id": node.name,
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{node.port},CONTROLLER://{HOST}:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(node.data),
        "auto.create.topics.enable": "false",
        "num.partitions": "4",
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "4",
        # A first member need not wait for others, and tests of take-over use short sessions.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        # Bounds how long a dead worker's open transaction holds back read_committed readers.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # A killed broker is neither let in again nor replaced as a leader before its session
        # ends: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # 128 MiB by default: a quarter of our heap, taken at start.
        "log.cleaner.dedupe.buffer.size": str(32 * 1024 * 1024),
    }
    return "".join(f"{key}={_escaped(value)}\n" for key, value in (settings | dict(extra)).items())


def broker_flags(node: Node, options: BrokerOptions) -> list[str]:
    """JVM flags of a broker. What a killed JVM leaves behind is in the node's home."""
    return [
        f"-Xmx{options.heap_mb}m",
        *_COMMON,
        *(["-XX:TieredStopAtLevel=1"] if options.fast_start else []),
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={node.home / 'jvm_error.log'}",
        f"-Djava.io.tmpdir={node.home / 'tmp'}",
        *_log_level("info"),
        # Hundreds of lines that repeat server.properties and the defaults.
        "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
    ]


def tool_flags() -> list[str]:
    """JVM flags of a command line tool, which is over before optimising pays."""
    return [
        "-Xmx256m",
        *_COMMON,
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        *_log_level("warn"),
    ]


_COMMON = (
    "-Xshare:auto",
    # Its files in the system's temporary directory outlive a killed JVM.
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
)


def _log_level(level: str) -> list[str]:
    prefix = "-Dorg.slf4j.simpleLogger."
    return [
        f"{prefix}defaultLogLevel={level}",
        f"{prefix}showDateTime=true",
        f"{prefix}dateTimeFormat=HH:mm:ss.SSS",
    ]


def _escaped(value: str) -> str:
    """As java.util.Properties reads it back."""
    return value.replace("\\", "\\\\").replace("\n", "\\n")
