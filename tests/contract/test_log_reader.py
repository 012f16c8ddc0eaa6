"""Laws of the port LogReader, for every adapter."""

from tests.contract.worlds import World
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import LogReader


def read(world: World, reader: LogReader, wanted: int, limit: int = 1000) -> list[Record]:
    records: list[Record] = []

    def enough() -> bool:
        if len(records) < wanted:
            records.extend(reader.read(0.1, min(limit, wanted - len(records))))
        return len(records) >= wanted

    world.until(enough)
    return records


def reaches(world: World, reader: LogReader, topic: str, end: int) -> None:
    def there() -> bool:
        assert reader.read(0.1, 1000) == []
        return reader.position(topic, 0) == end

    if reader.position(topic, 0) != end:
        world.until(there)


def test_reading_begins_at_the_offset_sought(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b", b"c")
    reader = world.reader()
    reader.seek(topic, 0, Offset(1))
    assert reader.position(topic, 0) == 1
    assert [r.value for r in read(world, reader, 2)] == [b"b", b"c"]
    assert reader.position(topic, 0) == 3


def test_a_later_seek_returns_nothing_that_was_fetched_ahead(world: World) -> None:
    topic = world.topic()
    world.write(topic, *(b"%d" % i for i in range(2000)))
    reader = world.reader()
    for at in (0, 1500, 3, 1999, 700):
        reader.seek(topic, 0, Offset(at))
        wanted = min(30, 2000 - at)
        assert [r.offset for r in read(world, reader, wanted, 7)] == list(range(at, at + wanted))


def test_partitions_are_read_side_by_side(world: World) -> None:
    one, two = world.topic(2), world.topic()
    world.write(one, b"a", partition=1)
    world.write(two, b"b")
    reader = world.reader()
    reader.seek(one, 1, Offset(0))
    reader.seek(two, 0, Offset(0))
    assert {(r.topic, r.partition) for r in read(world, reader, 2)} == {(one, 1), (two, 0)}


def test_a_partition_that_was_left_is_read_no_more(world: World) -> None:
    one, two = world.topic(), world.topic()
    world.write(one, b"a")
    world.write(two, b"b")
    reader = world.reader()
    reader.seek(one, 0, Offset(0))
    reader.seek(two, 0, Offset(0))
    reader.leave(one, 0)
    reader.leave(one, 7)
    assert [r.topic for r in read(world, reader, 1)] == [two]
    assert reader.read(0.1, 10) == []


def test_the_position_of_an_empty_partition_is_its_end(world: World) -> None:
    topic = world.topic()
    reader = world.reader()
    reader.seek(topic, 0, Offset(0))
    reaches(world, reader, topic, 0)


def test_the_position_passes_over_control_and_aborted_records(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"1")
    transaction.commit()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"aborted")
    world.written(topic, 3)
    transaction.abort()
    world.settled(topic)
    end = world.cluster().bounds(topic, [0])[0].end
    reader = world.reader()
    reader.seek(topic, 0, Offset(0))
    assert [r.offset for r in read(world, reader, 1)] == [0]
    reaches(world, reader, topic, end)


def test_the_position_of_nothing_but_aborted_records_is_their_end(world: World) -> None:
    topic = world.topic()
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"aborted")
    world.written(topic, 1)
    transaction.abort()
    world.settled(topic)
    end = world.cluster().bounds(topic, [0])[0].end
    reader = world.reader()
    reader.seek(topic, 0, Offset(0))
    reaches(world, reader, topic, end)


def test_the_position_waits_before_an_open_transaction(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a")
    transaction = world.opened()
    transaction.begin()
    transaction.produce(topic, 0, b"key", b"open")
    cluster = world.cluster()
    world.until(lambda: cluster.bounds(topic, [0])[0].end == 2)
    reader = world.reader()
    reader.seek(topic, 0, Offset(0))
    read(world, reader, 1)
    assert [reader.read(0.1, 10) for _ in range(4)] == [[]] * 4
    assert reader.position(topic, 0) == 1
    transaction.commit()
    assert [r.offset for r in read(world, reader, 1)] == [1]


def test_below_the_start_of_the_log_reading_begins_at_its_start(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b", b"c")
    world.delete_before(topic, 2)
    reader = world.reader()
    reader.seek(topic, 0, Offset(1))
    assert [r.offset for r in read(world, reader, 1)] == [2]


def test_a_log_that_was_emptied_ends_where_it_ended(world: World) -> None:
    topic = world.topic()
    world.write(topic, b"a", b"b")
    world.delete_before(topic, 2)
    reader = world.reader()
    reader.seek(topic, 0, Offset(0))
    reaches(world, reader, topic, 2)
