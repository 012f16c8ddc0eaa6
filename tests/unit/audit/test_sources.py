"""What is read from a live system belongs together, whatever goes on meanwhile."""

from collections.abc import Callable, Sequence

import pytest

from tests.unit.audit.harness import Engine, kinds
from tocsin.adapters.memory.broker import MemoryBroker
from tocsin.adapters.memory.cluster import MemoryCluster
from tocsin.adapters.memory.log_reader import MemoryLogReader
from tocsin.app.topology import TOPOLOGY
from tocsin.audit.findings import Kind
from tocsin.audit.sources import LiveAudit, Topics
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Bounds, Denied, LogReader, Unreachable

TOPICS = Topics.of("tocsin", ["other"])


class Live:
    """An engine whose commits appear in a broker."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.broker = MemoryBroker(self.engine.clock)
        self.broker.create_topics(TOPOLOGY, prefix="tocsin", partitions=1)
        self.broker.create_topic("other", 1)
        commands, events, state = (
            self.broker.topic(f"tocsin.{name}").id for name in ("commands", "events", "state")
        )
        self.engine.partition.topic_ids = (commands, events, state)
        self._published: dict[str, int] = {}

    def work(self) -> None:
        """Arm something, let it fire, and show it to readers."""
        engine = self.engine
        engine.send("a", {"arm": {"reminder": "once", "after": 10}})
        engine.send("b", {"arm": {"reminder": "tick", "every": 200, "to": "other"}})
        engine.step()
        engine.clock.advance(500)
        engine.step()
        self.publish()

    def publish(self, keep: Callable[[Record], bool] = lambda _record: True) -> None:
        logs = {**self.engine.logs.records, ("tocsin.commands", 0): self.engine.commands}
        for (topic, _), records in logs.items():
            for record in records[self._published.get(topic, 0) :]:
                if keep(record):
                    self.broker.append(
                        topic,
                        record.key,
                        record.value,
                        headers=record.headers,
                        timestamp=record.timestamp,
                        partition=0,
                    )
            self._published[topic] = len(records)

    def audit(self, open_reader: Callable[[], LogReader] | None = None) -> LiveAudit:
        reader = open_reader or (lambda: MemoryLogReader(self.broker))
        return LiveAudit(MemoryCluster(self.broker), reader, TOPICS)


@pytest.fixture
def live() -> Live:
    live = Live()
    live.work()
    return live


def test_an_honest_system_is_clean(live: Live) -> None:
    report = live.audit().verify(0)
    assert (report.findings, report.unproved) == ((), ())
    assert report.deliveries == report.fires == 2


@pytest.mark.parametrize("topic", ["tocsin.state", "tocsin.events", "tocsin.deliveries", "other"])
def test_a_system_that_works_on_while_it_is_read_is_clean(live: Live, topic: str) -> None:
    class Working(MemoryLogReader):
        def read(self, timeout_s: float, limit: int) -> list[Record]:
            records = super().read(timeout_s, limit)
            if any(record.topic == topic for record in records) and not worked:
                worked.append(topic)
                live.work()
            return records

    worked: list[str] = []
    report = live.audit(lambda: Working(live.broker)).verify(0)
    assert worked
    assert report.findings == ()


def test_a_system_that_begins_to_work_while_it_is_read_is_clean() -> None:
    live = Live()

    class Beginning(MemoryCluster):
        def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
            found = super().bounds(topic, [0])
            if topic == TOPICS.state and not live.engine.partition.step:
                live.work()
            return found

    audit = LiveAudit(Beginning(live.broker), lambda: MemoryLogReader(live.broker), TOPICS)
    assert audit.verify(0).findings == ()


def test_records_behind_an_open_transaction_are_waited_for_and_then_given_up(live: Live) -> None:
    live.broker.append(TOPICS.events, b"z", b"", partition=0, writer="zombie")
    live.work()
    with pytest.raises(Unreachable, match="a transaction stays open"):
        live.audit().verify(0)
    live.broker.log(TOPICS.events, 0).finish("zombie", commit=False)
    assert live.audit().verify(0).clean


def test_a_delivery_that_never_came_is_missed(live: Live) -> None:
    live.engine.send("c", {"arm": {"reminder": "pay"}})
    live.engine.step()
    live.publish(lambda record: record.topic != TOPICS.deliveries)
    assert kinds(live.audit().verify(0)) == {Kind.DELIVERY_MISSING}


def test_a_compacted_state_is_clean(live: Live) -> None:
    live.work()
    live.broker.compact(TOPICS.state)
    assert live.audit().verify(0).findings == ()


def test_a_cut_log_of_events_says_from_which_step_it_proves(live: Live) -> None:
    live.work()
    live.broker.delete_before(TOPICS.events, 0, Offset(2))
    report = live.audit().verify(0)
    assert report.clean
    assert report.unproved[0] == "retention cut the events: proved from step 3 on"


def test_progress_goes_up_to_the_end(live: Live) -> None:
    told: list[tuple[int, int]] = []
    live.audit().verify(0, on_progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 0


def test_a_topic_that_does_not_exist_is_named(live: Live) -> None:
    live.broker.delete_topic(TOPICS.state)
    with pytest.raises(Denied, match=r"tocsin\.state does not exist"):
        live.audit()
