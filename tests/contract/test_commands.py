"""Laws of the port Commands, for every adapter."""

import pytest

from tests.contract.worlds import Owner, World
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Commands, MembershipLost, OffsetGone


def joined(world: World, topic: str, group: str, partitions: int = 1) -> tuple[Commands, Owner]:
    commands, owner = world.commands(topic, group), Owner()
    commands.join(owner)
    world.until(lambda: commands.poll(0.1, 10) or len(owner.owned) == partitions)
    return commands, owner


def alone(world: World, topic: str) -> Commands:
    """A single member that owns partition 0."""
    return joined(world, topic, world.name("group"))[0]


def offsets(records: list[Record]) -> list[int]:
    return [record.offset for record in records]


def test_nothing_is_read_before_start(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b")
    assert world.quiet(alone(world, topic))


def test_reading_begins_at_the_offset_of_start(world: World) -> None:
    topic = world.topic()
    world.write(topic, *b"abcdef".split())
    world.write(topic, b"b", b"c", b"d")
    commands = alone(world, topic)
    commands.start(0, Offset(2))
    assert offsets(world.polled(commands, 2)) == [2, 3]


def test_the_offset_of_start_wins_over_the_groups(world: World) -> None:
    topic, group = world.topic(), world.name("group")
    world.write(topic, b"a", b"b", b"c")
    commands, _ = joined(world, topic, group)
    token = commands.token()
    assert token is not None
    transaction = world.opened(topic, group)
    transaction.begin()
    transaction.send_positions({0: Offset(2)}, token)
    transaction.commit()
    commands.start(0, Offset(1))
    assert offsets(world.polled(commands, 2)) == [1, 2]


def test_started_at_the_end_only_what_comes_later_is_read(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b")
    commands = alone(world, topic)
    commands.start(0, Offset(2))
    assert world.quiet(commands)
    world.write(topic, b"c")
    assert offsets(world.polled(commands, 1)) == [2]


def test_an_empty_partition_can_be_started(world: World) -> None:
    topic = world.topic()
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    assert world.quiet(commands)
    world.write(topic, b"a")
    assert offsets(world.polled(commands, 1)) == [0]


def test_a_rewind_returns_nothing_that_was_fetched_ahead(world: World) -> None:
    topic = world.topic()
    world.write(topic, *(b"%d" % i for i in range(2000)))
    commands = alone(world, topic)
    for at in (0, 1500, 3, 1999, 700, 0, 1000):
        commands.start(0, Offset(at))
        wanted = min(50, 2000 - at)
        assert offsets(world.polled(commands, wanted, limit=7)) == list(range(at, at + wanted))


def test_a_held_partition_returns_nothing_until_start(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b", b"c")
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    world.polled(commands, 1)
    commands.hold([0])
    assert world.quiet(commands)
    commands.start(0, Offset(1))
    assert offsets(world.polled(commands, 2)) == [1, 2]


def test_holding_what_was_never_started_is_nothing(world: World) -> None:
    topic = world.topic()
    commands = alone(world, topic)
    commands.hold([0, 7])
    assert world.quiet(commands)


def test_poll_returns_no_more_than_its_limit(world: World) -> None:
    topic = world.topic()
    world.write(topic, *(b"%d" % i for i in range(100)))
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    records = world.until(lambda: commands.poll(0.1, 3))
    assert len(records) <= 3


@pytest.mark.parametrize("at", [1, 9])
def test_an_offset_outside_of_the_log_is_said_once(world: World, at: int) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b", b"c", b"d")
    world.delete_before(topic, 3)
    commands = alone(world, topic)
    commands.start(0, Offset(at))
    with pytest.raises(OffsetGone) as gone:
        world.until(lambda: commands.poll(0.1, 10))
    assert gone.value.partition == 0
    assert world.quiet(commands)
    commands.start(0, Offset(3))
    assert offsets(world.polled(commands, 1)) == [3]


def test_what_is_not_committed_is_not_read(world: World) -> None:
    topic = world.topic()
    commands = alone(world, topic)
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"aborted")
    world.written(topic, 1)
    transaction.abort()
    world.settled(topic)
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"open")
    commands.start(0, Offset(0))
    assert world.quiet(commands)
    transaction.commit()
    assert [r.value for r in world.polled(commands, 1)] == [b"open"]


def test_reached_passes_over_what_nobody_sees(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a")
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"aborted")
    world.written(topic, 2)
    transaction.abort()
    world.settled(topic)
    end = world.cluster().bounds(topic, [0])[0].end
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    assert commands.reached(0) == 0
    world.polled(commands, 1)
    world.until(lambda: commands.poll(0.1, 10) or commands.reached(0) == end)


def test_reached_does_not_pass_an_open_transaction(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a")
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"open")
    cluster = world.cluster()
    world.until(lambda: cluster.bounds(topic, [0])[0].end == 2)
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    world.polled(commands, 1)
    assert world.quiet(commands)
    assert commands.reached(0) == 1
    transaction.abort()


def test_a_record_is_returned_as_it_was_written(world: World) -> None:
    topic = world.topic(message_timestamp_type="LogAppendTime")
    transaction = world.opened()
    headers = (("a", b"\0\xff"), ("a", None), ("é", b""))
    transaction.begin()
    transaction.produce(topic, 0, None, None)
    transaction.produce(topic, 0, b"\0key", b"", headers)
    transaction.commit()
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    nothing, full = world.polled(commands, 2)
    assert (nothing.key, nothing.value, nothing.headers) == (None, None, ())
    assert (full.topic, full.partition, full.offset) == (topic, 0, 1)
    assert (full.key, full.value, full.headers) == (b"\0key", b"", headers)
    assert full.appended


def test_a_time_given_by_the_producer_is_not_an_append_time(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a")
    commands = alone(world, topic)
    commands.start(0, Offset(0))
    assert not world.polled(commands, 1)[0].appended


def test_there_is_no_token_before_membership(world: World) -> None:
    topic = world.topic()
    commands = world.commands(topic, world.name("group"))
    assert commands.token() is None
    commands.join(Owner())
    assert commands.token() is None


def test_a_member_has_a_token_of_its_generation(world: World) -> None:
    topic, group = world.topic(2), world.name("group")
    first, owner = joined(world, topic, group, partitions=2)
    before = first.token()
    assert before is not None
    assert before.member
    second, other = world.commands(topic, group), Owner()
    second.join(other)
    world.until(
        lambda: (
            first.poll(0.05, 10)
            or second.poll(0.05, 10)
            or (len(owner.owned) == 1 == len(other.owned))
        )
    )
    after, of_second = first.token(), second.token()
    assert after is not None
    assert of_second is not None
    assert after.generation > before.generation
    assert (after.member, after.member == of_second.member) == (before.member, False)


def test_a_partition_has_one_owner_at_a_time_and_moves_only_if_it_must(world: World) -> None:
    topic, group = world.topic(4), world.name("group")
    first, owner = joined(world, topic, group, partitions=4)
    second, other = world.commands(topic, group), Owner()
    second.join(other)

    def shared() -> bool:
        first.poll(0.05, 10)
        assert not owner.owned & other.owned
        second.poll(0.05, 10)
        assert not owner.owned & other.owned
        return len(owner.owned) == len(other.owned) == 2

    world.until(shared)
    assert owner.owned | other.owned == {0, 1, 2, 3}
    assert [what for what, which in owner.heard if which] == ["assigned", "revoked"]


def test_only_what_moves_is_revoked_and_the_rest_is_read_on(world: World) -> None:
    topic, group = world.topic(2), world.name("group")
    for partition in (0, 1):
        world.write(topic, b"a", partition=partition)
    first, owner = joined(world, topic, group, partitions=2)
    first.start(0, Offset(0))
    first.start(1, Offset(0))
    world.polled(first, 2)
    second, other = world.commands(topic, group), Owner()
    second.join(other)
    world.until(lambda: first.poll(0.05, 10) or second.poll(0.05, 10) or len(other.owned) == 1)
    for partition in (0, 1):
        world.write(topic, b"b", partition=partition)
    [record] = world.polled(first, 1)
    assert {record.partition} == owner.owned
    assert world.quiet(first)


def test_close_hands_over_at_once(world: World) -> None:
    topic, group = world.topic(2), world.name("group")
    first, owner = joined(world, topic, group, partitions=2)
    second, other = world.commands(topic, group), Owner()
    second.join(other)
    world.until(lambda: first.poll(0.05, 10) or second.poll(0.05, 10) or len(other.owned) == 1)
    first.close()
    assert owner.heard[-1][0] == "revoked"
    assert not owner.owned
    world.until(lambda: second.poll(0.05, 10) or len(other.owned) == 2)


def test_who_comes_with_a_taken_instance_id_ends_the_former_member(world: World) -> None:
    topic, group, instance = world.topic(2), world.name("group"), world.name("instance")
    first, owner = world.commands(topic, group, instance_id=instance), Owner()
    first.join(owner)
    world.until(lambda: first.poll(0.05, 10) or len(owner.owned) == 2)
    second, other = world.commands(topic, group, instance_id=instance), Owner()
    second.join(other)
    world.until(lambda: second.poll(0.05, 10) or len(other.owned) == 2)
    with pytest.raises(MembershipLost):
        world.until(lambda: first.poll(0.05, 10))


def test_a_static_member_that_comes_back_gets_its_partitions(world: World) -> None:
    topic, group, instance = world.topic(2), world.name("group"), world.name("instance")
    first, owner = world.commands(topic, group, instance_id=instance), Owner()
    first.join(owner)
    world.until(lambda: first.poll(0.05, 10) or len(owner.owned) == 2)
    first.close()
    again, other = world.commands(topic, group, instance_id=instance), Owner()
    again.join(other)
    world.until(lambda: again.poll(0.05, 10) or len(other.owned) == 2)
    assert again.token() is not None
