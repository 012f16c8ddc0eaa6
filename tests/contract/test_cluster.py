"""Laws of the port Cluster, and of the creation of topics, for every adapter."""

import pytest

from tests.contract.test_transaction import member
from tests.contract.worlds import World
from tocsin.core.values import Offset
from tocsin.dataflow import Spread, Topic, Topology
from tocsin.ports import Bounds, Denied, Unreachable

MAP = Topology(
    topics=(
        Topic(
            name="state",
            key="",
            value="",
            doc="",
            spread=Spread.OWNED,
            config={"cleanup.policy": "compact"},
            defaults={"delete.retention.ms": "1234"},
        ),
        Topic(name="events", key="", value="", doc="", spread=Spread.OWNED),
    ),
    stores=(),
    processors=(),
)


def test_a_topic_has_partitions_and_settings(world: World) -> None:
    name = world.topic(3, cleanup_policy="compact")
    topic = world.cluster().topic(name)
    assert topic is not None
    assert topic.partitions == 3
    assert topic.config["cleanup.policy"] == "compact"
    assert int(topic.config["max.message.bytes"]) > 1000


def test_a_topic_that_is_not_there_is_none(world: World) -> None:
    assert world.cluster().topic(world.name("missing")) is None


def test_a_topic_made_anew_has_another_id(world: World) -> None:
    name, cluster = world.topic(), world.cluster()
    former = cluster.topic(name)
    world.delete_topic(name)
    world.create_topic(name, 1)
    later = cluster.topic(name)
    assert former is not None
    assert later is not None
    assert former.id != later.id


def test_bounds_tell_start_stable_end_and_end(world: World) -> None:
    topic = world.topic(2)
    world.write(topic, b"a", b"b", b"c")
    world.delete_before(topic, 1)
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"open")
    cluster = world.cluster()
    world.until(lambda: cluster.bounds(topic, [0])[0].end == 4)
    expected = {
        0: Bounds(Offset(1), Offset(3), Offset(4)),
        1: Bounds(Offset(0), Offset(0), Offset(0)),
    }
    assert cluster.bounds(topic, [0, 1]) == expected
    transaction.commit()
    world.until(lambda: cluster.bounds(topic, [0])[0] == Bounds(Offset(1), Offset(5), Offset(5)))


def test_bounds_of_a_missing_topic_are_denied(world: World) -> None:
    with pytest.raises(Denied):
        world.cluster().bounds(world.name("missing"), [0])


def test_a_group_without_an_offset_has_none(world: World) -> None:
    assert world.cluster().committed(world.name("group"), world.topic(), [0]) == {0: None}


def test_an_offset_is_left_out_while_a_transaction_on_it_is_pending(world: World) -> None:
    topic, group = world.topic(), world.name("group")
    _, token = member(world, topic, group)
    transaction = world.opened(topic, group)
    transaction.begin()
    transaction.send_positions({0: Offset(1)}, token)
    transaction.commit()
    transaction.begin()
    transaction.send_positions({0: Offset(2)}, token)
    assert world.cluster().committed(group, topic, [0]) == {}
    transaction.commit()
    world.until(lambda: world.cluster().committed(group, topic, [0]) == {0: 2})


def test_without_an_answer_it_is_unreachable(world: World) -> None:
    topic, cluster = world.topic(), world.cluster()
    cluster.topic(topic)
    with world.silence(), pytest.raises(Unreachable):
        cluster.topic(topic)
    assert cluster.topic(topic) is not None


def test_the_topics_of_a_map_are_created_once(world: World) -> None:
    prefix, cluster = world.name("prefix"), world.cluster()
    state, events = f"{prefix}.state", f"{prefix}.events"
    assert world.create_map(MAP, prefix, 3) == {state: True, events: True}
    topic = world.until(lambda: cluster.topic(state))
    assert topic is not None
    assert topic.partitions == 3
    assert topic.config["cleanup.policy"] == "compact"
    assert topic.config["delete.retention.ms"] == "1234"
    assert world.create_map(MAP, prefix, 5) == {state: False, events: False}
