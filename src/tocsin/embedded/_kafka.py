"""A real Apache Kafka as a context manager."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tocsin.embedded._artifacts import KAFKA_VERSION, kafka_jars
from tocsin.embedded._brokers import Brokers, PortTakenError, plan_nodes
from tocsin.embedded._config import BrokerOptions, Node
from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._java import find_java
from tocsin.embedded._processes import Supervisor
from tocsin.embedded._tools import Runtime

#: An orderly stop takes 0.4 s; brokers that lost their controllers may never finish one.
STOP_TIMEOUT_S = 15
TOOL_TIMEOUT_S = 60
PORT_ATTEMPTS = 3


class EmbeddedKafka:
    """Real brokers in processes of their own, on this machine's loopback address only.

    `with EmbeddedKafka() as kafka: kafka.bootstrap_servers`. No process outlives this one, not even
    when it is killed. Data is temporary unless `data_dir` is given. `stop`, `kill`, `pause` and
    `resume` act on all brokers or on one (numbered from 1), and `start` brings a stopped or killed
    one back on its port and data. To be used by one thread, but for `run_tool`. Linux and macOS.

    `java`: see find_java. `port`: of the first broker, else a free one. `settings`: lines for
    server.properties that have the last word. `fast_start`: a second sooner, but a slow broker.
    `version`: of Kafka, else `$TOCSIN_KAFKA_VERSION`, else KAFKA_VERSION. `on_progress` is told
    about what takes long.
    """

    def __init__(  # noqa: PLR0913 - all are optional and independent
        self,
        *,
        brokers: int = 1,
        data_dir: Path | str | None = None,
        port: int | None = None,
        java: str | None = None,
        heap_mb: int = 512,
        fast_start: bool = False,
        settings: Mapping[str, str] | None = None,
        version: str | None = None,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        if brokers < 1:
            raise ValueError(f"brokers must be at least 1, not {brokers}")
        self.version = version or os.environ.get("TOCSIN_KAFKA_VERSION") or KAFKA_VERSION
        self._count = brokers
        self._data_dir = Path(data_dir).absolute() if data_dir else None
        self._port = port
        self._java = java
        self._options = BrokerOptions(
            heap_mb=heap_mb, fast_start=fast_start, settings=dict(settings or {})
        )
        self._on_progress = on_progress
        self._runtime: Runtime | None = None
        self._supervisor: Supervisor | None = None
        self._brokers: Brokers | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every broker, running or not, separated by commas."""
        return self._started().servers

    @property
    def pids(self) -> dict[int, int]:
        """The process id of each broker that was started and neither stopped nor killed here."""
        return dict(self._started().pids)

    @property
    def pid(self) -> int:
        """The process id of the first such broker."""
        if not (pids := self.pids):
            raise EmbeddedKafkaError("No broker of the embedded Kafka is running.")
        return min(pids.items())[1]

    @property
    def java(self) -> Path:
        """The `java` that the brokers run on."""
        self._started()
        assert self._runtime
        return self._runtime.java

    @property
    def supervisor_pid(self) -> int:
        """The process that ends the brokers when this one is gone."""
        self._started()
        assert self._supervisor
        return self._supervisor.pid

    def home(self, broker: int = 1) -> Path:
        """The broker's directory: `server.properties`, `kafka.log` and `data`."""
        return self._chosen(broker)[0].home

    def is_running(self, broker: int = 1) -> bool:
        """Whether the broker's process is there; a paused one is."""
        return self._started().is_running(*self._chosen(broker))

    def start(self, broker: int | None = None) -> None:
        """Starts what does not run, and returns when the cluster serves clients.

        The first time all brokers start, and Kafka is downloaded if need be. Raises
        EmbeddedKafkaError, with the end of the log when a broker does not come up.
        """
        if self._brokers:
            self._brokers.start(self._chosen(broker))
            return
        try:
            self._start_first()
        except BaseException:
            self.close()
            raise

    def stop(self, broker: int | None = None) -> None:
        """Ends brokers in order and keeps their data; one that takes too long is killed."""
        brokers, chosen = self._started(), self._chosen(broker)
        brokers.signal(chosen, signal.SIGTERM)
        # A paused process acts on no other signal before this one.
        brokers.signal(chosen, signal.SIGCONT)
        brokers.wait_until_gone(chosen, STOP_TIMEOUT_S)
        brokers.kill(chosen)

    def kill(self, broker: int | None = None) -> None:
        """Ends brokers with SIGKILL and keeps their data."""
        self._started().kill(self._chosen(broker))

    def pause(self, broker: int | None = None) -> None:
        """Freezes brokers with SIGSTOP: connections stay open and nothing is answered."""
        self._started().signal(self._chosen(broker), signal.SIGSTOP)

    def resume(self, broker: int | None = None) -> None:
        """Lets paused brokers go on."""
        self._started().signal(self._chosen(broker), signal.SIGCONT)

    def close(self) -> None:
        """Ends everything; removes the data unless a `data_dir` was given. May be repeated."""
        supervisor, brokers = self._supervisor, self._brokers
        if supervisor is None:
            return
        try:
            if brokers and self._data_dir:
                self.stop()
        finally:
            self._supervisor = self._brokers = None
            supervisor.close()

    def run_tool(
        self,
        main_class: str,
        args: Iterable[str] = (),
        stdin: str = "",
        *,
        timeout_s: float = TOOL_TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        """The outcome of one of Kafka's own command line tools, for instance
        `org.apache.kafka.tools.ConsoleProducer` or `org.apache.kafka.tools.TopicCommand`.

        `--bootstrap-server` is among the caller's `args`. Raises EmbeddedKafkaError with the tool's
        output when it fails or takes too long.
        """
        self._started()
        assert self._runtime
        return self._runtime.run(main_class, args, stdin=stdin, timeout_s=timeout_s)

    def _start_first(self) -> None:
        self._runtime = Runtime(
            java=find_java(self._java), jars=kafka_jars(self.version, on_progress=self._on_progress)
        )
        self._on_progress(f"Starting Apache Kafka {self.version} with {self._runtime.java}")
        home = self._data_dir or Path(tempfile.mkdtemp(prefix="tocsin-kafka-"))
        home.mkdir(parents=True, exist_ok=True)
        self._supervisor = Supervisor(scratch=None if self._data_dir else home)
        for attempt in range(1, PORT_ATTEMPTS + 1):
            nodes = plan_nodes(home, self._count, self._port)
            self._brokers = Brokers(home, nodes, self._runtime, self._supervisor, self._options)
            self._brokers.write_settings()
            try:
                self._brokers.start(nodes)
                return
            except PortTakenError:
                self._brokers.kill(nodes)
                if self._port or attempt == PORT_ATTEMPTS:
                    raise

    def _started(self) -> Brokers:
        if self._brokers is None:
            raise EmbeddedKafkaError("The embedded Kafka is not started.")
        return self._brokers

    def _chosen(self, broker: int | None) -> Sequence[Node]:
        nodes = self._started().nodes
        if broker is None:
            return nodes
        if not 1 <= broker <= len(nodes):
            raise ValueError(f"There is no broker {broker}; they are numbered 1 to {len(nodes)}.")
        return [nodes[broker - 1]]
