"""What the broker in memory does by the clock and on request; tests/contract holds the rest."""

from collections.abc import Sequence

import pytest

from tocsin.adapters.memory.broker import MemoryBroker
from tocsin.adapters.memory.clock import ManualClock
from tocsin.adapters.memory.cluster import MemoryCluster
from tocsin.adapters.memory.commands import MemoryCommands
from tocsin.adapters.memory.faults import Faults
from tocsin.adapters.memory.log_reader import MemoryLogReader
from tocsin.adapters.memory.transaction import MemoryTransaction
from tocsin.core.values import Offset
from tocsin.ports import Bounds, Fenced, Unknown

SESSION_MS = 2_000
TIMEOUT_MS = 5_000


class Owner:
    def __init__(self) -> None:
        self.owned: set[int] = set()
        self.lost_ones: list[int] = []

    def assigned(self, partitions: Sequence[int]) -> None:
        self.owned.update(partitions)

    def revoked(self, partitions: Sequence[int]) -> None:
        self.owned.difference_update(partitions)

    def lost(self, partitions: Sequence[int]) -> None:
        self.owned.difference_update(partitions)
        self.lost_ones += partitions


class LostAnswers(Faults):
    """The answer to the first call of a name is lost."""

    def __init__(self, call: str) -> None:
        self._calls = {call}

    def after(self, call: str) -> None:
        if call in self._calls:
            self._calls.remove(call)
            raise Unknown(call)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> MemoryBroker:
    made = MemoryBroker(clock)
    made.create_topic("t", 2)
    return made


def joined(broker: MemoryBroker, **more: str) -> tuple[MemoryCommands, Owner]:
    commands, owner = MemoryCommands(broker, "t", "g", session_ms=SESSION_MS, **more), Owner()
    commands.join(owner)
    for _ in range(3):
        commands.poll(0, 1)
    return commands, owner


def test_who_is_silent_for_a_session_loses_its_partitions_and_hears_so(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    first, owner = joined(broker)
    second, other = joined(broker)
    clock.advance(SESSION_MS + 1)
    for _ in range(3):
        second.poll(0, 1)
    assert other.owned == {0, 1}
    first.poll(0, 1)
    assert (owner.owned, owner.lost_ones) == (set(), [0, 1])


def test_who_was_lost_joins_again(broker: MemoryBroker, clock: ManualClock) -> None:
    first, owner = joined(broker)
    clock.advance(SESSION_MS + 1)
    for _ in range(4):
        first.poll(0, 1)
    assert (owner.lost_ones, owner.owned) == ([0, 1], {0, 1})


def test_a_static_member_keeps_its_partitions_until_its_session_ends(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    first, _ = joined(broker, instance_id="i")
    first.close()
    second, other = joined(broker)
    assert other.owned == set()
    clock.advance(SESSION_MS)
    second.poll(0, 1)
    clock.advance(1)
    for _ in range(3):
        second.poll(0, 1)
    assert other.owned == {0, 1}


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    broker: MemoryBroker, clock: ManualClock
) -> None:
    transaction = MemoryTransaction(broker, "p", "t", "g", timeout_ms=TIMEOUT_MS)
    transaction.open()
    transaction.begin()
    transaction.produce("t", 0, b"k", b"v")
    clock.advance(TIMEOUT_MS + 1)
    stable = MemoryCluster(broker).bounds("t", [0])[0]
    assert stable == Bounds(Offset(0), Offset(2), Offset(2))
    with pytest.raises(Fenced):
        transaction.commit()


def test_a_commit_whose_answer_was_lost_can_be_made_again(clock: ManualClock) -> None:
    broker = MemoryBroker(clock, LostAnswers("transaction.commit"))
    broker.create_topic("t", 1)
    transaction = MemoryTransaction(broker, "p", "t", "g")
    transaction.open()
    transaction.begin()
    transaction.produce("t", 0, b"k", b"v")
    with pytest.raises(Unknown):
        transaction.commit()
    transaction.commit()
    assert MemoryCluster(broker).bounds("t", [0])[0].end == 2


def test_compaction_keeps_the_newest_of_each_key_at_its_offset(broker: MemoryBroker) -> None:
    for key, value in ((b"a", b"1"), (b"b", b"1"), (b"a", b"2"), (b"b", None), (b"c", b"1")):
        broker.append("t", key, value, partition=0)
    broker.compact("t")
    reader = MemoryLogReader(broker)
    reader.seek("t", 0, Offset(0))
    assert [(r.offset, r.key, r.value) for r in reader.read(0, 10)] == [
        (2, b"a", b"2"),
        (4, b"c", b"1"),
    ]


def test_compaction_spares_what_is_not_decided(broker: MemoryBroker) -> None:
    broker.append("t", b"a", b"1", partition=0)
    transaction = MemoryTransaction(broker, "p", "t", "g")
    transaction.open()
    transaction.begin()
    transaction.produce("t", 0, b"a", b"2")
    broker.compact("t")
    transaction.commit()
    reader = MemoryLogReader(broker)
    reader.seek("t", 0, Offset(0))
    assert [r.value for r in reader.read(0, 10)] == [b"1", b"2"]
