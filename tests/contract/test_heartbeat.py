"""Laws of the port Heartbeat, for every adapter."""

from tests.contract.worlds import World
from tocsin.ports import Heartbeat, Report


def told(world: World, heartbeat: Heartbeat, reports: list[Report]) -> None:
    def polled() -> bool:
        heartbeat.poll()
        return bool(reports)

    world.until(polled)


def test_a_beat_is_written_and_reported_by_poll_with_its_append_time(world: World) -> None:
    topic = world.topic(message_timestamp_type="LogAppendTime")
    heartbeat = world.heartbeat(topic)
    reports: list[Report] = []
    heartbeat.beat(b"0", b"alive", reports.append)
    assert reports == []
    told(world, heartbeat, reports)
    [record] = world.read(topic)
    assert (record.key, record.value) == (b"0", b"alive")
    assert [(r.offset, r.appended, r.error) for r in reports] == [(0, record.timestamp, None)]


def test_a_beat_to_nowhere_is_reported_as_such(world: World) -> None:
    heartbeat = world.heartbeat(world.name("missing"))
    reports: list[Report] = []
    heartbeat.beat(b"0", None, reports.append)
    told(world, heartbeat, reports)
    assert reports[0].error


def test_close_waits_for_the_last_beat(world: World) -> None:
    topic = world.topic()
    heartbeat = world.heartbeat(topic)
    reports: list[Report] = []
    heartbeat.beat(b"0", None, reports.append)
    heartbeat.close()
    assert len(reports) == 1
