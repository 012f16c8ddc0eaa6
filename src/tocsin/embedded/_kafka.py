"""A real Apache Kafka as a context manager."""

import secrets
import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from tocsin.embedded._artifacts import KAFKA_VERSION, kafka_jars
from tocsin.embedded._config import HOST, Node, broker_flags, server_properties, tool_flags
from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._java import find_java
from tocsin.embedded._ports import free_ports
from tocsin.embedded._processes import Supervisor
from tocsin.embedded._readiness import wait_until_ready

START_TIMEOUT_S = 60
#: An orderly stop takes 0.4 s; brokers that lost their controller may never finish one.
STOP_TIMEOUT_S = 15
TOOL_TIMEOUT_S = 60
#: A port that was free can be taken before the broker binds it.
PORT_ATTEMPTS = 3
LOG_TAIL_LINES = 30
POLL_S = 0.02


class EmbeddedKafka:
    """Real brokers in processes of their own, on this machine's loopback address only.

    `with EmbeddedKafka() as kafka: kafka.bootstrap_servers`. No process outlives this one, not even
    when it is killed. Data is temporary unless `data_dir` is given. `stop`, `kill`, `pause` and
    `resume` act on all brokers or on one (numbered from 1), and `start` brings a stopped or killed
    one back on its port and data. Not for concurrent use, except for `run_tool`. Linux and macOS.

    `java`: see find_java. `port`: of the first broker, else a free one. `settings`: more lines for
    server.properties. `fast_start`: for short tests; slows the broker down. `version`: of Kafka,
    else `$TOCSIN_KAFKA_VERSION`, else KAFKA_VERSION.
    """

    def __init__(  # noqa: PLR0913 - all optional, all independent
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
        self._brokers = brokers
        self._data_dir = Path(data_dir).absolute() if data_dir else None
        self._port = port
        self._java_choice = java
        self._heap_mb = heap_mb
        self._fast_start = fast_start
        self._settings = dict(settings or {})
        self._on_progress = on_progress
        self._java: Path | None = None
        self._jars: tuple[Path, ...] = ()
        self._home: Path | None = None
        self._supervisor: Supervisor | None = None
        self._nodes: dict[int, Node] = {}
        self._pids: dict[int, int] = {}

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
        self._require_started()
        return ",".join(f"{HOST}:{node.port}" for node in self._nodes.values())

    @property
    def pids(self) -> dict[int, int]:
        """The process id of each broker that was started and not stopped or killed here."""
        return dict(self._pids)

    @property
    def pid(self) -> int:
        """The process id of the first such broker."""
        if not self._pids:
            raise EmbeddedKafkaError("No broker of the embedded Kafka is running.")
        return next(iter(self._pids.values()))

    @property
    def home(self) -> Path:
        """The directory with the brokers' data, settings and logs."""
        self._require_started()
        assert self._home
        return self._home

    def log_file(self, broker: int = 1) -> Path:
        """Where broker number `broker` logs, over all its starts."""
        self._require_started()
        return self._nodes[broker].log

    def is_running(self, broker: int = 1) -> bool:
        """Whether the broker's process is there; a paused one is."""
        return (
            self._supervisor is not None
            and broker in self._pids
            and self._supervisor.exit_code(str(broker)) is None
        )

    def start(self, broker: int | None = None) -> None:
        """Starts what does not run, and returns when the cluster serves clients.

        Raises EmbeddedKafkaError with the end of the log when a broker does not come up.
        """
        first = not self._nodes
        if first:
            self._prepare()
        try:
            for attempt in range(1, PORT_ATTEMPTS + 1):
                if first:
                    self._choose_ports()
                try:
                    self._start(self._chosen(broker))
                    return
                except _PortTakenError:
                    if not first or attempt == PORT_ATTEMPTS:
                        raise
        except BaseException:
            if first:
                self.close()
            raise

    def stop(self, broker: int | None = None) -> None:
        """Ends brokers in order and keeps their data; one that takes too long is killed."""
        running = [node for node in self._chosen(broker) if self.is_running(node.number)]
        for node in running:
            self._signal(node, signal.SIGTERM)
            self._signal(node, signal.SIGCONT)
        self._wait_until_gone(running, STOP_TIMEOUT_S)
        self.kill(broker)

    def kill(self, broker: int | None = None) -> None:
        """Ends brokers with SIGKILL, as a power cut would, and keeps their data."""
        chosen = self._chosen(broker)
        for node in chosen:
            self._signal(node, signal.SIGKILL)
        self._wait_until_gone(chosen, STOP_TIMEOUT_S)
        for node in chosen:
            self._pids.pop(node.number, None)

    def pause(self, broker: int | None = None) -> None:
        """Freezes brokers with SIGSTOP: connections stay open and nothing is answered."""
        for node in self._chosen(broker):
            self._signal(node, signal.SIGSTOP)

    def resume(self, broker: int | None = None) -> None:
        """Lets paused brokers go on."""
        for node in self._chosen(broker):
            self._signal(node, signal.SIGCONT)

    def close(self) -> None:
        """Ends everything; removes the data unless a `data_dir` was given. May be repeated."""
        if self._supervisor is not None:
            if self._data_dir and self._nodes:
                self.stop()
            self._supervisor.close()
            self._supervisor = None
        self._nodes = {}
        self._pids = {}

    def run_tool(
        self,
        main_class: str,
        args: Iterable[str] = (),
        stdin: str = "",
        *,
        timeout_s: float = TOOL_TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        """The outcome of one of Kafka's own command line tools, for instance
        `org.apache.kafka.tools.ConsoleProducer` or `org.apache.kafka.tools.consumer.ConsoleConsumer`.

        Raises EmbeddedKafkaError with its output when it fails or takes too long.
        """
        self._require_started()
        try:
            return subprocess.run(
                [str(self._java), *tool_flags(), main_class, *args],
                input=stdin,
                capture_output=True,
                check=True,
                encoding="utf-8",
                env=self._environment(),
                timeout=timeout_s,
            )
        except subprocess.CalledProcessError as error:
            raise EmbeddedKafkaError(
                f"{main_class} failed with exit code {error.returncode}: "
                f"{error.stderr or error.stdout}"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise EmbeddedKafkaError(
                f"{main_class} did not end within {timeout_s} s: {error.stderr or error.stdout!r}"
            ) from error
