"""What is paused stays armed and wakes nobody, also after a restore."""

from tests.unit.audit.harness import Engine, audit
from tocsin.codec.events import decode_event
from tocsin.core.events import Fired
from tocsin.core.reminder import Reminder
from tocsin.runtime import queries


def fired(engine: Engine) -> list[tuple[str, int]]:
    events = [decode_event(record.value or b"")[0] for record in engine.events]
    return [(event.reminder, event.occurrence) for event in events if isinstance(event, Fired)]


def resting() -> Engine:
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "once", "after": 100}})
    engine.send("a", {"arm": {"reminder": "tick", "every": 100}})
    engine.send("a", {"arm": {"reminder": "other", "after": 10_000}})
    engine.send("a", {"pause": {"reminder": "once", "note": "so"}})
    engine.send("a", {"pause": {"reminder": "tick"}})
    engine.settle()
    return engine


def state_of(engine: Engine) -> list[Reminder]:
    return engine.partition.index.reminders("a")


def test_a_pause_survives_a_restore() -> None:
    engine = resting()
    before = state_of(engine)
    engine.restart()
    assert state_of(engine) == before
    engine.clock.advance(1_000)
    engine.settle()
    assert fired(engine) == []


def test_what_is_paused_is_no_head_of_the_index_and_not_upcoming() -> None:
    engine = resting()
    other = engine.clock.wall_ms() + 10_000
    store = engine.partition.store
    assert store is not None
    assert engine.partition.index.head() == other
    assert [one.reminder for one in queries.upcoming(store, 10)] == ["other"]
    assert queries.next_wake(store) == other
    engine.restart()
    assert engine.partition.index.head() == other


def test_a_pause_is_listed_with_its_note() -> None:
    engine = resting()
    store = engine.partition.store
    assert store is not None
    listed = {one.reminder: one for one in queries.reminders_of(store, "a", None, 10)}
    assert listed["once"].note == "so"
    assert listed["once"].paused_since is not None
    assert listed["other"].paused_since is None


def test_what_was_resumed_fires_with_or_without_a_restore() -> None:
    for restore in (False, True):
        engine = resting()
        engine.clock.advance(350)
        engine.send("a", {"resume": {"all": True}})
        engine.step()
        if restore:
            engine.restart()
        engine.settle()
        assert sorted(fired(engine)) == [("once", 0), ("tick", 2)]
        assert audit(engine).clean


def test_what_is_paused_resumed_and_ended_within_one_step_leaves_no_due_entry() -> None:
    for ends in ({"cancel": {"all": True}}, {"destroy": {}}, {"pause": {"all": True}}):
        engine = Engine()
        engine.send("a", {"arm": {"reminder": "once", "after": 100}})
        engine.settle()
        for command in ({"pause": {"all": True}}, {"resume": {"all": True}}, ends):
            engine.send("a", command)
        engine.settle()
        engine.clock.advance(1_000)
        engine.settle()
        assert engine.partition.index.head() is None
        assert fired(engine) == []


def test_what_is_paused_and_resumed_within_one_step_fires_when_it_is_due() -> None:
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "once", "after": 100}})
    engine.settle()
    engine.send("a", {"pause": {"all": True}})
    engine.send("a", {"resume": {"all": True}})
    engine.clock.advance(100)
    engine.settle()
    assert fired(engine) == [("once", 0)]
    assert engine.partition.index.head() is None


def test_nothing_is_left_in_the_state_of_what_was_paused_resumed_and_cancelled() -> None:
    engine = resting()
    engine.send("a", {"resume": {"all": True}})
    engine.step()
    engine.send("a", {"cancel": {"all": True}})
    engine.settle()
    newest = {record.key: record.value for record in engine.state}
    assert [key for key, value in newest.items() if value is not None] == [b"\0\0step"]
    assert audit(engine).clean
