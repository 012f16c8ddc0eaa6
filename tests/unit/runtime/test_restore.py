"""Rules 4, 5 and 7: a partition fires once its store is at the end of the state topic and the
commands that were in the log are answered; a store that may have missed something is built anew.
"""

import pytest
from msgspec import structs

from tests.unit.runtime.engine import COMMANDS, NAMES, ROUND_MS, SESSION_MS, STATE, Engine, Node
from tocsin.adapters.memory.broker import Draft
from tocsin.app.topology import TOPOLOGY
from tocsin.core.events import Armed, Fired
from tocsin.core.values import Offset
from tocsin.runtime import index as runtime_index
from tocsin.runtime import recovery
from tocsin.runtime.faults import Point
from tocsin.runtime.partition import Phase

RETENTION_MS = 7 * 24 * 3_600_000


def armed(engine: Engine, name: str = "w", *, count: int = 1, after: int = 60_000) -> Node:
    """Return a live worker with some reminders of actor `a`."""
    node = engine.live(name)
    for number in range(count):
        engine.arm("a", f"r{number}", after=after)
    engine.until(lambda: len(engine.events(Armed)) == count)
    return node


# --- The end


def test_nothing_fires_before_a_predecessors_open_transaction_is_decided() -> None:
    engine = Engine()
    node = armed(engine, after=100)
    engine.advance(100)
    node.crash_at(Point.BEFORE_POSITIONS)
    successor = engine.start("w2")
    engine.advance(SESSION_MS)
    engine.turn(20)
    assert successor.phases == {0: Phase.RESTORING}
    engine.broker.finish("w", commit=True)
    engine.until_live()
    engine.turn(10)
    assert engine.delivered() == ["a r0 0"]


def test_topics_that_nobody_ever_wrote_to_are_live_at_once() -> None:
    engine = Engine(4)
    engine.start("w")
    engine.turn(5)
    assert engine.all_live()


def test_aborted_records_at_the_end_of_the_state_topic_are_passed_over() -> None:
    engine = Engine()
    node = armed(engine)
    engine.arm("a", "again", after=60_000)
    node.crash_at(Point.BEFORE_POSITIONS)
    engine.live("w", stores=node.stores)
    engine.until(lambda: len(engine.events(Armed)) == 2)


def test_a_clients_open_transaction_on_the_commands_does_not_stop_firing() -> None:
    engine = Engine()
    armed(engine, after=5_000).leave()
    engine.broker.take_over("client", 900_000)
    engine.broker.write("client", COMMANDS, Draft(b"a", b"{}", (), 0, None))
    engine.live("w2")
    engine.until(engine.delivered)


def test_commands_committed_by_clients_in_transactions_are_answered_before_firing() -> None:
    engine = Engine()
    armed(engine, after=100).leave()
    engine.broker.take_over("client", 900_000)
    cancel = b'{"cancel": {"reminder": "r0"}}'
    engine.broker.write("client", COMMANDS, Draft(b"a", cancel, (), 0, None))
    engine.broker.finish("client", commit=True)
    engine.advance(100)
    engine.live("w2")
    engine.turn(10)
    assert engine.delivered() == []


# --- What is read


@pytest.mark.parametrize("slice_max", [1, 5_000], ids=["slices", "one slice"])
def test_a_key_that_is_written_again_loses_its_old_due(
    slice_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "SLICE_MAX", slice_max)
    engine = Engine()
    armed(engine, after=200)
    engine.command("a", move={"reminder": "r0", "at": engine.now + 8_000})
    engine.arm("a", "gone", after=200)
    engine.cancel("a", "gone")
    engine.turn(2)
    engine.nodes[0].leave()
    node = engine.live("w2")
    assert node.worker.partitions[0].index.head() == engine.now + 8_000 - _passed(engine)
    engine.until(engine.delivered)
    engine.turn(20)
    assert engine.delivered() == ["a r0 0"]
    assert node.figures.alerts == []


def _passed(engine: Engine) -> int:
    moved = engine.events()[1]
    return int(engine.now - (moved.anchor - 8_000))


def test_restore_goes_in_slices_between_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "SLICE_MAX", 1)
    engine = Engine()
    armed(engine, count=8).leave()
    node = engine.start("w2")
    engine.turn(4)
    assert node.phases == {0: Phase.RESTORING}
    for _ in range(8):  # far longer than a session, and nobody takes the partition away
        engine.advance(SESSION_MS // 2)
        node.turn()
    engine.until_live()
    assert node.worker.partitions[0].index.checkpoint.armed == 8


def test_a_recurring_reminder_is_restored_at_its_next_slot() -> None:
    engine = Engine()
    engine.live("w")
    engine.arm("a", every="1s")
    engine.until(lambda: len(engine.events(Fired)) == 2)
    engine.nodes[0].leave()
    engine.live("w2")
    engine.until(lambda: len(engine.events(Fired)) == 4)
    assert engine.delivered() == [f"a r {k}" for k in range(4)]


# --- The store


def test_a_store_at_the_end_reads_only_what_is_new() -> None:
    engine = Engine()
    node = armed(engine, count=20)
    node.leave()
    again = engine.live("w", stores=node.stores)
    assert again.figures.restored_records == 0
    assert again.worker.partitions[0].index.checkpoint.armed == 20


def test_a_lost_store_is_built_from_the_state_topic() -> None:
    engine = Engine()
    armed(engine, count=20, after=100).leave()
    engine.live("w2")
    engine.until(lambda: len(engine.delivered()) >= 20)
    engine.turn(10)
    assert len(engine.delivered()) == len(set(engine.delivered())) == 20


def test_an_aged_store_is_built_anew_for_its_tombstones_may_be_gone() -> None:
    engine = Engine()
    absent = armed(engine, after=RETENTION_MS // 2 + 5_000)
    absent.leave()
    present = engine.live("w2")
    engine.cancel("a", "r0")
    engine.until(lambda: len(engine.events()) == 2)
    engine.broker.compact(STATE)
    present.leave()
    engine.advance(RETENTION_MS // 2 + 10_000)
    engine.live("w", stores=absent.stores)
    engine.turn(10)
    assert engine.delivered() == []


def test_a_store_of_another_state_topic_is_built_anew() -> None:
    elsewhere = Engine()
    stranger = armed(elsewhere, after=100)
    stranger.leave()
    engine = Engine()
    engine.broker.delete_topic(STATE)  # the next one has another id
    engine.broker.create_topics(TOPOLOGY, prefix=NAMES.prefix, partitions=1)
    armed(engine, "native", count=5).leave()  # more than the stranger has read
    node = engine.live("w", stores=stranger.stores)
    assert node.worker.partitions[0].index.checkpoint.armed == 5
    engine.advance(100)
    engine.turn(10)
    assert engine.delivered() == []


def test_a_store_that_is_beyond_the_end_is_built_anew() -> None:
    engine = Engine()
    ahead = armed(engine)
    ahead.leave()
    store = ahead.stores.open(0)
    checkpoint = runtime_index.read_checkpoint(store)
    assert checkpoint is not None
    checkpoint = structs.replace(checkpoint, offset=Offset(1_000))
    encoded = runtime_index._encode_checkpoint(checkpoint)
    store.write([(runtime_index.CHECKPOINT, encoded)], [])
    store.close()
    present = engine.live("w2")
    engine.cancel("a", "r0")
    engine.arm("a", "meanwhile", after=60_000)
    engine.until(lambda: len(engine.events(Armed)) == 2)
    engine.broker.compact(STATE)  # and with it went the tombstone
    present.leave()
    node = engine.live("w", stores=ahead.stores)
    reminders = node.worker.partitions[0].index.reminders("a")
    assert [reminder.spec.reminder for reminder in reminders] == ["meanwhile"]


def test_a_store_that_never_came_to_the_end_is_begun_anew() -> None:
    engine = Engine()
    armed(engine, count=3).leave()
    node = engine.start("w2")
    node.crash_at(Point.IN_RESTORE)
    again = engine.live("w2", stores=node.stores)
    assert again.worker.partitions[0].index.checkpoint.armed == 3
    assert again.figures.restored_records == 4  # three reminders and the step


# --- Then the commands, then fire


def test_what_was_cancelled_while_the_engine_was_down_does_not_fire() -> None:
    engine = Engine()
    armed(engine, after=100).leave()
    engine.advance(1_000)
    engine.cancel("a", "r0")
    engine.live("w2")
    engine.turn(20)
    assert engine.delivered() == []


def test_all_that_was_there_is_answered_before_anything_fires() -> None:
    engine = Engine()
    armed(engine, after=100).leave()
    engine.advance(1_000)
    for number in range(5_000):  # more than one poll takes
        engine.arm("b", f"n{number}", after=60_000_000)
    engine.cancel("a", "r0")
    engine.live("w2")
    engine.turn(3)
    assert engine.delivered() == []


def test_a_cancel_that_came_while_a_restore_stood_still_is_answered_before_anything_fires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "SLICE_MAX", 1)
    engine = Engine()
    armed(engine, after=100, count=5).leave()
    engine.advance(1_000)
    node = engine.start("w2")
    engine.turn(4)
    assert node.phases == {0: Phase.RESTORING}
    engine.advance(SESSION_MS - ROUND_MS)  # the loop stood still: what came meanwhile counts
    for number in range(3_000):  # more than one poll takes
        engine.arm("b", f"n{number}", after=60_000_000)
    for number in range(5):
        engine.cancel("a", f"r{number}")
    engine.until_live()
    engine.turn(5)
    assert engine.delivered() == []
