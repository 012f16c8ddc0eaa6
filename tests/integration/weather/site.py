"""One installation as an operator and a service see it: real workers with their logs, commands by a
plain producer, deliveries by a plain read_committed consumer. What must come is known from the
producer's delivery reports alone.
"""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tocsin.adapters.kafka.topics import create_topics
from tocsin.app.topology import TOPOLOGY

PARTITIONS = 2
#: Short, so that a take-over is not waited for: 10 s each by default.
SESSION_MS = 3_000
TRANSACTION_MS = 5_000
LIVE_S_MAX = 60.0
STOP_S_MAX = 5.0
LOOK_S = 0.05
LOG_LINES = 40
#: Nothing came for so long: nothing is on its way.
QUIET_S = 1.5
SILENT: dict[str, Any] = {"log_level": 0}


def becomes_true(what: str, seen: Callable[[], bool], seconds: float) -> float:
    """Wait until `seen`; return how long that took. AssertionError after `seconds`."""
    started = time.monotonic()
    while not seen():
        assert time.monotonic() < started + seconds, f"not within {seconds} s: {what}"
        time.sleep(LOOK_S)
    return time.monotonic() - started


class Worker:
    """One `tocsin worker`, and what it says."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self._log_start = file.tell()
            self.process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def text(self) -> str:
        """What it has said since it was started."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log lines about `event`."""
        found = []
        for line in self.text().splitlines():
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if isinstance(document, dict) and event in str(document.get("event")):
                found.append(document)
        return found

    def wait_until(self, what: str, seen: Callable[[], bool], seconds: float = LIVE_S_MAX) -> float:
        """Wait until `seen`; AssertionError with its log when it does not come, or it ended."""
        try:
            return becomes_true(what, lambda: seen() or self._raise_if_ended(), seconds)
        except AssertionError as error:
            tail = "\n".join(self.text().splitlines()[-LOG_LINES:])
            raise AssertionError(f"{error}; {self.log.name}:\n{tail}") from None

    def wait_until_ready(self) -> float:
        """Wait until all that it owns fires."""
        return self.wait_until("ready", lambda: self.get("/readyz")[0] == 200)

    def address(self) -> str | None:
        listening = self.lines("listening")
        return str(listening[0]["address"]) if listening else None

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and body of its answer; (0, why) without one."""
        address = self.address()
        if address is None:
            return 0, "it does not listen yet"
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=5)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> tuple[int, float]:
        """Ask it to leave; return its exit code and how long it took."""
        started = time.monotonic()
        self.process.terminate()
        code = self.process.wait(4 * STOP_S_MAX)
        return code, time.monotonic() - started

    def end(self) -> None:
        """See to it that it is gone."""
        if self.process.poll() is None:
            self.thaw()
            self.process.terminate()
            try:
                self.process.wait(2 * STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _raise_if_ended(self) -> bool:
        code = self.process.poll()
        assert code is None, f"it ended with {code}"
        return False


class Site:
    """Topics under a prefix of their own."""

    def __init__(
        self,
        servers: str,
        directory: Path,
        *,
        partitions: int = PARTITIONS,
        prefix: str | None = None,
    ) -> None:
        self.servers = servers
        self.prefix = prefix or f"w{uuid.uuid4().hex[:8]}"
        self.directory = directory
        self.partitions = partitions
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
        self.environment = {
            **kept,
            "TOCSIN_BOOTSTRAP_SERVERS": servers,
            "TOCSIN_PREFIX": self.prefix,
            "TOCSIN_SESSION_TIMEOUT_MS": str(SESSION_MS),
            "TOCSIN_TRANSACTION_TIMEOUT_MS": str(TRANSACTION_MS),
            "TOCSIN_LOG_FORMAT": "json",
        }

    def create_topics(self) -> None:
        create_topics(
            {"bootstrap.servers": self.servers, **SILENT},
            TOPOLOGY,
            prefix=self.prefix,
            partitions=self.partitions,
            replication_factor=1,
        )

    def topic(self, name: str) -> str:
        return f"{self.prefix}.{name}"

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "tocsin.cli", *arguments],
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def start(self, name: str, *options: str, **environment: str) -> Worker:
        """Start a worker with a state directory of its own; see `worker`."""
        own = {"TOCSIN_STATE_DIR": str(self.directory / name)}
        return Worker(
            [sys.executable, "-P", "-m", "tocsin.cli", "worker", *options],
            self.environment | own | environment,
            self.directory / f"{name}.log",
        )

    @contextmanager
    def worker(self, name: str, *options: str, **environment: str) -> Iterator[Worker]:
        """Run a worker meanwhile."""
        worker = self.start(name, *options, **environment)
        try:
            yield worker
        finally:
            worker.end()

    def audit(self) -> None:
        """Have `tocsin audit verify` prove the logs."""
        done = self.run("audit", "verify", "--json")
        assert done.returncode == 0, done.stdout + done.stderr


class Service:
    """A service that knows nothing of tocsin."""

    def __init__(self, site: Site) -> None:
        self._site = site
        #: Id of each delivery that must come.
        self.expected: set[str] = set()
        self.failures: list[str] = []
        #: Ids in the order in which a reader saw them that has been there from the start.
        self.came: list[str] = []
        self._last_came = time.monotonic()
        self._intervals: list[tuple[str, str]] = []
        self._follower = self._reader("deliveries")
        self._producer = Producer(
            {
                "bootstrap.servers": site.servers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 0,
                **SILENT,
            }
        )

    def send(self, actor: str, command: Mapping[str, Any], *, fires: bool = False) -> None:
        """Send a command; `fires`: one delivery must come of it."""

        def told(error: Any, message: Message) -> None:
            if error is not None:
                self.failures.append(str(error))
            elif fires:
                self.expected.add(f"{message.partition()}:{message.offset()}:0")

        topic = self._site.topic("commands")
        self._producer.produce(topic, json.dumps(command), actor, on_delivery=told)
        self._producer.poll(0)

    def arm(self, actor: str, name: str, seconds: float) -> None:
        """Arm a one-shot that must come."""
        after = round(seconds * 1000)
        self.send(actor, {"arm": {"reminder": name, "after": after, "payload": name}}, fires=True)

    def arm_every(self, seconds: float, upto: float, kind: str = "order") -> None:
        """Arm one-shots, each due `seconds` after the other, for the next `upto` seconds."""
        for number in range(int(upto / seconds)):
            self.arm(f"{kind}/{number}", "pay", (number + 1) * seconds)

    def repeat(self, actor: str, name: str, every: float) -> None:
        """Arm an interval; it is cancelled before it comes to judgement."""
        every_ms = round(every * 1000)
        self.send(actor, {"arm": {"reminder": name, "after": 0, "every": every_ms}})
        self._intervals.append((actor, name))

    def flush(self, seconds: float = 30.0) -> None:
        """Return once the broker has everything."""
        assert self._producer.flush(seconds) == 0, "commands were not taken"
        assert not self.failures

    def read(self, name: str) -> list[Message]:
        """Every committed record of a topic, read by a new reader from its beginning."""
        left = set(range(self._site.partitions))
        found = []
        consumer = self._reader(name)
        try:
            until = time.monotonic() + 30
            while left and time.monotonic() < until:
                for message in consumer.consume(1_000, 0.2):
                    if message.error() is None:
                        found.append(message)
                    else:
                        left.discard(message.partition())
        finally:
            consumer.close()
        assert not left, f"{name} could not be read to its end"
        return found

    def missing(self) -> set[str]:
        """What must come and has not yet."""
        for message in self._follower.consume(1_000, LOOK_S):
            if message.error() is None:
                self.came.append(metadata_of(message)["id"])
                self._last_came = time.monotonic()
        return self.expected.difference(self.came)

    def wait_for_all(self, worker: Worker, seconds: float) -> float:
        """Wait until all that must come has come."""
        self.flush()
        took = worker.wait_until("all deliveries", lambda: not self.missing(), seconds)
        for actor, name in self._intervals:
            self.send(actor, {"cancel": {"reminder": name}})
        self.flush()
        # The end of a busy topic runs away from a reader.
        worker.wait_until("quiet", self._is_quiet, seconds)
        return took

    def _is_quiet(self) -> bool:
        self.missing()
        return time.monotonic() - self._last_came > QUIET_S

    def _reader(self, name: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._site.servers,
                "group.id": f"reader-{uuid.uuid4()}",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **SILENT,
            }
        )
        topic = self._site.topic(name)
        consumer.assign([TopicPartition(topic, p, 0) for p in range(self._site.partitions)])
        return consumer

    def judge(self) -> None:
        """Nothing lost, twice, early, in excess or undeliverable; and the audit agrees."""
        self._follower.close()
        came = [metadata_of(message) for message in self.read("deliveries")]
        ids = Counter(delivery["id"] for delivery in came)
        assert {i: count for i, count in ids.items() if count != 1} == {}
        assert self.expected - ids.keys() == set()
        assert {d["id"] for d in came if d.get("period") is None} == self.expected
        assert [d for d in came if d["fired"] < d["due"]] == []
        assert [message.value() for message in self.read("dead-letters")] == []
        self._site.audit()


def metadata_of(message: Message) -> dict[str, Any]:
    headers = dict(message.headers() or [])
    document = headers["tocsin"]
    assert document is not None
    found: dict[str, Any] = json.loads(document)
    return found


@contextmanager
def site_on(servers: str, directory: Path, *, partitions: int = PARTITIONS) -> Iterator[Site]:
    """Topics on a broker, ready for workers."""
    site = Site(servers, directory, partitions=partitions)
    site.create_topics()
    yield site
