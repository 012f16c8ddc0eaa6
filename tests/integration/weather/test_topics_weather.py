"""Topics that are not as the engine needs them: a worker does not start, and says what to do."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.integration.weather.site import SILENT, Service, Site, becomes_true, site_on
from tocsin.embedded import EmbeddedKafka

pytestmark = pytest.mark.kafka

VISIBLE_S_MAX = 10.0
Damage = Callable[[AdminClient, Site], None]


@pytest.fixture
def site(embedded_kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Site]:
    with site_on(embedded_kafka.bootstrap_servers, tmp_path) as made:
        yield made


@pytest.fixture
def admin(embedded_kafka: EmbeddedKafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": embedded_kafka.bootstrap_servers, **SILENT})


def delete(admin: AdminClient, *topics: str) -> None:
    for future in admin.delete_topics(list(topics), operation_timeout=10).values():
        future.result(10)
    becomes_true(
        "deleted",
        lambda: not set(topics) & admin.list_topics(timeout=5).topics.keys(),
        VISIBLE_S_MAX,
    )


def no_status(admin: AdminClient, site: Site) -> None:
    delete(admin, site.topic("status"))


def more_state(admin: AdminClient, site: Site) -> None:
    grow(admin, site, "state")


def grow(admin: AdminClient, site: Site, *names: str) -> None:
    asked = [NewPartitions(site.topic(name), site.partitions + 1) for name in names]
    for future in admin.create_partitions(asked).values():
        future.result(10)

    def grown() -> bool:
        topics = admin.list_topics(timeout=5).topics
        return all(len(topics[t.topic].partitions) > site.partitions for t in asked)

    becomes_true("grown", grown, VISIBLE_S_MAX)


def setting(name: str, key: str, value: str) -> Damage:
    def alter(admin: AdminClient, site: Site) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        kind = ConfigResource.Type.TOPIC
        resource = ConfigResource(kind, site.topic(name), incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(10)

    return alter


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        pytest.param(no_status, "run `tocsin topics create`", id="missing"),
        pytest.param(more_state, "partition counts differ", id="counts differ"),
        pytest.param(
            setting("state", "cleanup.policy", "delete"),
            "cleanup.policy=delete, and the engine relies on compact",
            id="state is not compacted",
        ),
        pytest.param(
            setting("commands", "message.timestamp.type", "CreateTime"),
            "message.timestamp.type=CreateTime, and the engine relies on LogAppendTime",
            id="commands have no append time",
        ),
    ],
)
def test_a_worker_refuses_and_topics_check_says_the_same(
    admin: AdminClient, site: Site, damage: Damage, told: str
) -> None:
    damage(admin, site)
    checked = site.run("topics", "check", "--no-color")
    refused = site.run("worker", "--state-dir", str(site.directory / "state"), "--no-color")
    assert (checked.returncode, refused.returncode) == (2, 3)
    assert told in checked.stderr
    assert told in refused.stderr
    assert site.prefix in refused.stderr
    assert "Traceback" not in refused.stderr


def test_counts_that_changed_since_are_refused_with_3(admin: AdminClient, site: Site) -> None:
    with site.worker("a") as worker:
        worker.wait_until_ready()
    grow(admin, site, "commands", "events", "state")
    refused = site.run("worker", "--state-dir", str(site.directory / "a"))
    assert refused.returncode == 3
    assert "has 3 partitions, and had 2" in refused.stderr


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("commands", "tocsin topics adopt"),
        ("state", "tocsin state rebuild"),
    ],
)
def test_a_topic_that_was_recreated_is_refused_with_3(
    admin: AdminClient, site: Site, name: str, way_out: str
) -> None:
    with site.worker("a") as worker:
        worker.wait_until_ready()
        service = Service(site)
        service.arm_every(0.01, 0.1)  # something in each partition
        service.wait_for_all(worker, 20)
    full = site.topic(name)
    delete(admin, full)
    kept = {"commands": "delete", "events": "delete", "state": "compact"}[name]
    again = NewTopic(
        full,
        site.partitions,
        1,
        config={"message.timestamp.type": "LogAppendTime", "cleanup.policy": kept},
    )
    admin.create_topics([again], operation_timeout=10)[full].result(10)
    refused = site.run("worker", "--state-dir", str(site.directory / "a"))
    assert refused.returncode == 3
    assert f"{full} was recreated" in refused.stderr
    assert way_out in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_replication_factor_that_the_cluster_cannot_give_is_told(
    embedded_kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    site = Site(embedded_kafka.bootstrap_servers, tmp_path)
    asked = site.run("topics", "create", TOCSIN_REPLICATION_FACTOR="2")
    assert asked.returncode == 2
    assert "replication factor" in asked.stderr.lower()
    assert "Traceback" not in asked.stderr
    assert site.run("topics", "create", "--replication-factor", "1").returncode == 0
