"""Rule 1: Kafka first, the store after; what was not committed has left no trace."""

from tests.unit.runtime.engine import Engine
from tocsin.core.events import Armed, Fired, Moved
from tocsin.ports import Aborted
from tocsin.runtime.faults import Point


def test_an_aborted_step_is_taken_anew_as_if_it_had_never_been() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.failures.fail_before("transaction.commit", Aborted("not now"))
    engine.arm("a", after=60_000)
    engine.until(lambda: engine.events(Armed))
    assert node.figures.transactions == {"aborted": 1, "committed": 1}
    (armed,) = engine.events()
    assert armed.previous is None
    assert [stamp.step for stamp in engine.stamps()] == [1]


def test_a_reminder_whose_fire_was_aborted_is_still_due() -> None:
    engine = Engine()
    engine.live("w")
    engine.arm("a", after=100)
    engine.until(lambda: engine.events(Armed))
    engine.failures.fail_before("transaction.commit", Aborted("not now"))
    engine.until(engine.delivered)
    assert engine.delivered() == ["a r 0"]


def test_of_a_move_and_its_old_due_in_one_step_the_move_wins() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a", after=100)
    engine.until(lambda: engine.events(Armed))
    engine.advance(100)
    engine.command("a", move={"reminder": "r", "at": engine.now + 300})
    node.turn()
    assert engine.events(Moved)
    assert engine.delivered() == []
    engine.until(engine.delivered)
    assert [(fired.due, fired.version) for fired in engine.events(Fired)] == [
        (engine.events(Moved)[0].anchor, 1)
    ]


def test_what_is_armed_for_now_fires_in_the_same_step() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a")
    node.turn()
    assert engine.delivered() == ["a r 0"]
    assert [stamp.step for stamp in engine.stamps()] == [1, 1]


def test_a_crash_between_commit_and_store_costs_a_replay_and_nothing_twice() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a", after=100)
    engine.arm("a", "later", after=4_000)
    engine.until(lambda: len(engine.events(Armed)) == 2)
    node.crash_at(Point.AFTER_COMMIT)
    assert engine.delivered() == ["a r 0"]
    restarted = engine.live("w", stores=node.stores)
    assert 0 < restarted.figures.restored_records <= 3  # the tail: a tombstone, the step
    engine.until(lambda: len(engine.delivered()) > 1)
    assert engine.delivered() == ["a later 0", "a r 0"]
    assert max(engine.answers().values()) == 1


def test_the_store_is_never_ahead_of_the_log() -> None:
    engine = Engine()
    node = engine.live("w")
    store = node.worker.partitions[0].index._store
    before = store.scan(b"", b"\xff", 100)
    engine.arm("a", after=60_000)
    seen: list[object] = []
    node.interruptions.on(Point.BEFORE_COMMIT, lambda: seen.append(store.scan(b"", b"\xff", 100)))
    engine.until(engine.events)
    assert seen == [before]
    assert store.scan(b"", b"\xff", 100) != before


def test_a_crash_before_the_commit_leaves_nothing_and_the_command_is_answered_once() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a")
    node.crash_at(Point.BEFORE_COMMIT)
    assert engine.events() == []
    engine.live("w", stores=node.stores)
    engine.until(engine.delivered)
    assert engine.delivered() == ["a r 0"]
    assert engine.answers() == {0: 1}
