"""`tocsin topics`, and what a worker demands of topics, on the real broker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions

from tocsin.app.topology import TOPOLOGY
from tocsin.bootstrap import (
    build_worker,
    create_missing_topics,
    found_topics,
    topic_problems,
)
from tocsin.embedded import EmbeddedKafka
from tocsin.ports import TopicState
from tocsin.runtime.recovery import CannotStart
from tocsin.settings import Settings, SettingsError, load_settings

pytestmark = pytest.mark.kafka

VISIBLE_S_MAX = 10.0


@pytest.fixture
def settings(embedded_kafka: EmbeddedKafka, tmp_path: Path) -> Settings:
    return made(embedded_kafka, tmp_path)


@pytest.fixture
def admin(embedded_kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": embedded_kafka.bootstrap_servers})


def made(kafka: EmbeddedKafka, directory: Path, **more: object) -> Settings:
    given: dict[str, object] = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "prefix": f"topics-{uuid4()}",
        "partitions": 2,
        "state_dir": directory / "state",
        **more,
    }
    return load_settings({name: (f"--{name}", value) for name, value in given.items()})


def until(seen: Callable[[], bool]) -> None:
    """Wait until the brokers tell what they were told: their metadata follows after a moment."""
    until = time.monotonic() + VISIBLE_S_MAX
    while not seen():
        assert time.monotonic() < until
        time.sleep(0.05)


def alter(settings: Settings, admin: AdminClient, name: str, setting: str, value: str) -> None:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(
        ConfigResource.Type.TOPIC, f"{settings.prefix}.{name}", incremental_configs=[entry]
    )
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(10)
    until(lambda: state_of(settings, name).config[setting] == value)


def add_partitions(settings: Settings, admin: AdminClient, count: int, *names: str) -> None:
    asked = [NewPartitions(f"{settings.prefix}.{name}", count) for name in names]
    for future in admin.create_partitions(asked).values():
        future.result(10)
    until(lambda: all(state_of(settings, name).partitions == count for name in names))


def state_of(settings: Settings, name: str) -> TopicState:
    state = found_topics(settings)[name]
    assert state is not None
    return state


def refusal(settings: Settings) -> str:
    engine = build_worker(settings)
    try:
        with pytest.raises(CannotStart) as caught:
            engine.check_topics()
    finally:
        engine.close()
    return str(caught.value)


def test_topics_are_created_with_what_the_engine_relies_on(settings: Settings) -> None:
    created = create_missing_topics(settings)
    assert all(created.values())
    assert topic_problems(settings) == []
    for topic in TOPOLOGY.topics:
        state = state_of(settings, topic.name)
        assert state.partitions == 2
        wanted = {**topic.defaults, **topic.config}
        assert {name: state.config[name] for name in wanted} == wanted


def test_creating_again_changes_nothing(settings: Settings) -> None:
    create_missing_topics(settings)
    before = found_topics(settings)
    assert not any(create_missing_topics(settings).values())
    assert found_topics(settings) == before


def test_what_is_missing_gets_as_many_partitions_as_what_is_there(
    embedded_kafka: EmbeddedKafka, settings: Settings, admin: AdminClient, tmp_path: Path
) -> None:
    create_missing_topics(settings)
    lost = f"{settings.prefix}.deliveries"
    admin.delete_topics([lost])[lost].result(10)
    until(lambda: found_topics(settings)["deliveries"] is None)
    default = made(embedded_kafka, tmp_path, prefix=settings.prefix, partitions=None)
    assert create_missing_topics(default)[lost]
    assert state_of(default, "deliveries").partitions == 2


def test_another_count_than_what_is_there_is_refused(
    embedded_kafka: EmbeddedKafka, settings: Settings, tmp_path: Path
) -> None:
    create_missing_topics(settings)
    other = made(embedded_kafka, tmp_path, prefix=settings.prefix, partitions=3)
    with pytest.raises(SettingsError, match="is there with 2"):
        create_missing_topics(other)


def test_a_worker_without_topics_is_refused_with_the_command_that_makes_them(
    settings: Settings,
) -> None:
    assert "run `tocsin topics create`" in refusal(settings)


def test_a_worker_is_refused_when_counts_differ(settings: Settings, admin: AdminClient) -> None:
    create_missing_topics(settings)
    add_partitions(settings, admin, 3, "state")
    assert "partition counts differ" in refusal(settings)


def test_a_worker_is_refused_when_the_count_changed_since_it_was_here(
    settings: Settings, admin: AdminClient
) -> None:
    create_missing_topics(settings)
    engine = build_worker(settings)
    engine.check_topics()
    engine.close()
    add_partitions(settings, admin, 3, "commands", "events", "state")
    assert "has 3 partitions, and had 2" in refusal(settings)


def test_a_worker_is_refused_when_the_state_topic_deletes(
    settings: Settings, admin: AdminClient
) -> None:
    create_missing_topics(settings)
    alter(settings, admin, "state", "cleanup.policy", "delete")
    assert "cleanup.policy=delete" in refusal(settings)


def test_a_worker_is_refused_when_commands_have_no_append_time(
    settings: Settings, admin: AdminClient
) -> None:
    create_missing_topics(settings)
    alter(settings, admin, "commands", "message.timestamp.type", "CreateTime")
    assert "message.timestamp.type=CreateTime" in refusal(settings)


# --- The command line --------------------------------------------------------------------------


def tocsin(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "tocsin.cli", *arguments],
        env={
            **os.environ,
            "TOCSIN_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
            "TOCSIN_PREFIX": settings.prefix,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_line_creates_checks_and_describes(settings: Settings) -> None:
    assert tocsin(settings, "topics", "check", "--json").returncode == 2
    assert tocsin(settings, "topics", "create", "--partitions", "2", "--json").returncode == 0
    assert tocsin(settings, "topics", "check", "--json").stdout == '{"ok":true}\n'
    described = tocsin(settings, "topics", "describe", "--json").stdout
    assert f'"topic":"{settings.prefix}.commands"' in described


def test_a_worker_without_topics_ends_with_3(settings: Settings) -> None:
    ended = tocsin(settings, "worker", "--state-dir", str(settings.state_directory))
    assert (ended.returncode, "tocsin topics create" in ended.stderr) == (3, True)


def test_a_second_worker_on_the_same_state_directory_ends_with_4(settings: Settings) -> None:
    engine = build_worker(settings)
    try:
        ended = tocsin(settings, "worker", "--state-dir", str(settings.state_directory))
    finally:
        engine.close()
    assert (ended.returncode, "in use by another process" in ended.stderr) == (4, True)


def test_settings_of_the_client_that_do_not_exist_end_with_2(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_KAFKA", '{"no.such.thing": 1}')
    ended = tocsin(settings, "worker", "--state-dir", str(settings.state_directory))
    assert (ended.returncode, "no.such.thing" in ended.stderr) == (2, True)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_that_is_asked_to_stop_ends_with_0_within_five_seconds(
    settings: Settings, processes: int
) -> None:
    create_missing_topics(settings)
    environment = {
        **os.environ,
        "TOCSIN_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "TOCSIN_PREFIX": settings.prefix,
        "TOCSIN_STATE_DIR": str(settings.state_directory),
    }
    with subprocess.Popen(
        [*(sys.executable, "-P", "-m", "tocsin.cli"), "worker", "--processes", str(processes)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if '"live"' in line:
                break
        process.send_signal(signal.SIGTERM)
        process.stderr.close()
        assert process.wait(5) == 0
