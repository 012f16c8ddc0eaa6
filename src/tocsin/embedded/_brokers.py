"""The broker processes of one cluster and their directories."""

import base64
import json
import secrets
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tocsin.embedded._config import HOST, BrokerOptions, Node, broker_flags, server_properties
from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._ports import free_ports, listens
from tocsin.embedded._processes import Supervisor
from tocsin.embedded._readiness import wait_until_ready
from tocsin.embedded._tools import Runtime

#: For each broker: they share the cores while they start.
START_TIMEOUT_S = 60
FORMAT_TIMEOUT_S = 60
#: How long the system may need to end a killed process.
KILL_TIMEOUT_S = 15
LOG_TAIL_LINES = 30
POLL_S = 0.02


class PortTakenError(EmbeddedKafkaError):
    """A port that was free when it was chosen had been taken when the broker bound it."""


def plan_nodes(home: Path, count: int, port: int | None) -> tuple[Node, ...]:
    """Brokers 1 to `count` with directories under `home` and free ports; `port` is the first's."""
    ports = free_ports(2 * count)
    return tuple(
        Node(
            number=number,
            port=port if port and number == 1 else ports.pop(),
            controller_port=ports.pop(),
            home=home / f"broker-{number}",
        )
        for number in range(1, count + 1)
    )


def format_storage(home: Path, nodes: Sequence[Node], runtime: Runtime) -> str:
    """The id of the cluster that the nodes' data directories belong to, made so where they are new.

    Raises EmbeddedKafkaError when `home` holds a cluster of another size.
    """
    identity = home / "cluster.json"
    if not identity.exists():
        # The first byte keeps the text from starting with a dash, as an option would.
        cluster = base64.urlsafe_b64encode(b"\0" + secrets.token_bytes(15)).rstrip(b"=").decode()
        identity.write_text(json.dumps({"cluster": cluster, "brokers": len(nodes)}))
    known = json.loads(identity.read_text())
    if known["brokers"] != len(nodes):
        raise EmbeddedKafkaError(
            f"{home} holds the data of {known['brokers']} broker(s), {len(nodes)} asked for. "
            "Give another data_dir."
        )

    def format_one(node: Node) -> None:
        runtime.run(
            "kafka.tools.StorageTool",
            ["format", "--cluster-id", known["cluster"], "--config", str(node.properties)],
            stdin="",
            timeout_s=FORMAT_TIMEOUT_S,
        )

    new = [node for node in nodes if not (node.data / "meta.properties").exists()]
    with ThreadPoolExecutor() as pool:
        list(pool.map(format_one, new))
    cluster_id: str = known["cluster"]
    return cluster_id


class Brokers:
    """The processes of `nodes`, all of them children of `supervisor`."""

    def __init__(
        self,
        home: Path,
        nodes: tuple[Node, ...],
        runtime: Runtime,
        supervisor: Supervisor,
        options: BrokerOptions,
    ) -> None:
        self.nodes = nodes
        self._home = home
        self.pids: dict[int, int] = {}
        self._runtime = runtime
        self._supervisor = supervisor
        self._options = options
        #: Length of each log at the last start: a failure shows nothing older.
        self._log_start: dict[int, int] = {}

    @property
    def servers(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    def write_settings(self) -> None:
        """Writes every node's server.properties."""
        for node in self.nodes:
            (node.home / "tmp").mkdir(parents=True, exist_ok=True)
            text = server_properties(node, self.nodes, self._options.settings)
            node.properties.write_text(text)

    def is_running(self, node: Node) -> bool:
        return node.number in self.pids and self._supervisor.exit_code(node.name) is None

    def start(self, nodes: Sequence[Node]) -> None:
        """Starts those that do not run; returns when the brokers that are up serve clients."""
        cluster_id = format_storage(self._home, self.nodes, self._runtime)
        for node in nodes:
            if not self.is_running(node):
                self._spawn(node)
        up = [node for node in self.nodes if node.number in self.pids]
        try:
            wait_until_ready(
                [node.port for node in up],
                self.servers,
                cluster_id,
                timeout_s=START_TIMEOUT_S * len(up),
                raise_if_dead=lambda: self._raise_if_dead(up),
            )
        except TimeoutError as error:
            logs = "\n".join(self._log_tail(node) for node in up)
            raise EmbeddedKafkaError(
                f"The embedded Kafka did not become ready: {error}. The end of its log:\n{logs}"
            ) from error

    def signal(self, nodes: Sequence[Node], number: signal.Signals) -> None:
        for node in nodes:
            self._supervisor.signal(node.name, number)

    def kill(self, nodes: Sequence[Node]) -> None:
        """Ends the processes at once and returns when they are gone."""
        self.signal(nodes, signal.SIGKILL)
        if not self.wait_until_gone(nodes, KILL_TIMEOUT_S):
            raise EmbeddedKafkaError(f"A killed broker is still there after {KILL_TIMEOUT_S} s.")
        for node in nodes:
            self.pids.pop(node.number, None)

    def wait_until_gone(self, nodes: Sequence[Node], timeout_s: float) -> bool:
        """Whether all processes ended within the time."""
        deadline = time.monotonic() + timeout_s
        while any(self.is_running(node) for node in nodes):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _spawn(self, node: Node) -> None:
        if listens(node.port):
            raise PortTakenError(f"Port {node.port} is in use by another process.")
        self._log_start[node.number] = node.log.stat().st_size if node.log.exists() else 0
        argv = [
            str(self._runtime.java),
            *broker_flags(node, self._options),
            "kafka.Kafka",
            str(node.properties),
        ]
        environment = self._runtime.environment()
        self.pids[node.number] = self._supervisor.spawn(node.name, argv, environment, node.log)

    def _raise_if_dead(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            code = self._supervisor.exit_code(node.name)
            if code is not None:
                del self.pids[node.number]
                tail = self._log_tail(node)
                taken = "Address already in use" in tail
                raise (PortTakenError if taken else EmbeddedKafkaError)(
                    f"Broker {node.number} of the embedded Kafka ended with exit code {code} "
                    f"while starting. The end of its log:\n{tail}"
                )

    def _log_tail(self, node: Node) -> str:
        with node.log.open("rb") as file:
            file.seek(self._log_start[node.number])
            lines = file.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])
