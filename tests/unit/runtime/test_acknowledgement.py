"""Acknowledgement on the loop: ids, headers, dead letters, restores, and the audit of it all."""

from tests.unit.audit.harness import Engine, audit
from tocsin.codec.deliveries import Delivery, read_delivery
from tocsin.runtime import queries

POLICY = {"timeout": 100, "initial": 100, "factor": 1, "attempts": 2}


def delivered(engine: Engine) -> list[Delivery]:
    return [read_delivery(r.headers, r.key, r.value) for r in engine.deliveries()]


def letters(engine: Engine) -> list[dict[str, bytes | None]]:
    records = engine.logs.records.get(("tocsin.dead-letters", 0), [])
    return [dict(record.headers) for record in records]


def armed(**options: object) -> Engine:
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "pay", "ack": POLICY, "payload": 1, **options}})
    engine.settle()
    return engine


def test_each_attempt_has_an_id_of_its_own() -> None:
    engine = armed()
    engine.clock.advance(200)
    engine.settle()
    assert [(one.id, one.attempt) for one in delivered(engine)] == [("0:0:0", 1), ("0:0:0:a2", 2)]
    assert audit(engine).clean


def test_what_was_given_up_lies_in_the_dead_letters_with_the_reason() -> None:
    engine = armed()
    for _ in range(3):
        engine.clock.advance(200)
        engine.settle()
    (letter,) = letters(engine)
    assert letter["tocsin-reason"] == b"unacknowledged"
    assert letter["tocsin-error"] == b"not acknowledged after 2 attempts"
    store = engine.partition.store
    assert store is not None
    (listed,) = queries.reminders_of(store, "a", None, 10)
    assert (listed.failed, listed.attempt, listed.wake) == (True, 2, None)
    assert queries.upcoming(store, 10) == []
    assert audit(engine).clean


def test_an_outstanding_delivery_survives_a_restore() -> None:
    for options in ({}, {"every": 1_000}, {"cron": "* * * * * *"}):
        engine = armed(**options)
        engine.clock.advance(1_000)
        engine.settle()
        before = engine.partition.index.reminders("a")
        assert before[0].acked is not None
        engine.restart()
        assert engine.partition.index.reminders("a") == before
        engine.send("a", {"acknowledge": {"delivery": "0:0:0", "outcome": "done"}})
        engine.settle()
        assert audit(engine).clean


def test_the_reminder_is_found_by_the_version_in_the_id_or_by_its_name() -> None:
    for extra in ({}, {"reminder": "pay"}):
        engine = armed()
        engine.send("a", {"arm": {"reminder": "other", "after": 60_000}})
        engine.send("a", {"acknowledge": {"delivery": "0:0:0", "outcome": "done", **extra}})
        engine.settle()
        assert [one.spec.reminder for one in engine.partition.index.reminders("a")] == ["other"]
        assert audit(engine).clean


def test_nothing_is_left_in_the_state_of_what_was_acknowledged() -> None:
    engine = armed(every=1_000, occurrences=2)
    engine.clock.advance(1_000)
    engine.settle()
    engine.send("a", {"acknowledge": {"delivery": "0:0:0", "outcome": "done"}})
    engine.clock.advance(1_000)
    engine.settle()
    engine.send("a", {"acknowledge": {"delivery": "0:0:1", "outcome": "done"}})
    engine.settle()
    newest = {record.key: record.value for record in engine.state}
    assert [key for key, value in newest.items() if value is not None] == [b"\0\0step"]
    assert audit(engine).clean
