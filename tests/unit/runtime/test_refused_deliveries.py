"""Rule 8: what the broker will never take becomes an event and a dead letter; all else goes on."""

import json

import pytest
from msgspec import structs

from tests.unit.runtime.engine import (
    DEAD_LETTERS,
    DELIVERIES,
    EVENTS,
    Engine,
    Node,
)
from tocsin.core.events import Armed, Fired, Undeliverable
from tocsin.core.limits import Limits
from tocsin.ports import Unknown
from tocsin.runtime.rejections import EngineTopicRefused

TARGET, OTHER = "target", "other"
LIMITS = Limits(targets=frozenset({TARGET, OTHER}))
LARGE = "x" * 2_000


def with_targets(partitions: int = 1, **target: str) -> tuple[Engine, Node]:
    engine = Engine(partitions, limits=LIMITS)
    engine.broker.create_topic(TARGET, 1, {k.replace("_", "."): v for k, v in target.items()})
    engine.broker.create_topic(OTHER, 1)
    return engine, engine.live("w")


def buried(engine: Engine) -> list[str]:
    letters = engine.visible(DEAD_LETTERS)
    told = [json.loads(dict(r.headers)["tocsin"] or b"") for r in letters]
    assert all(dict(r.headers)["tocsin-reason"] == b"undeliverable" for r in letters)
    return sorted(t["reminder"] for t in told)


def test_a_target_that_is_gone_stops_nobody_else() -> None:
    engine, _ = with_targets()
    engine.arm("a", "gone", after=100, to=TARGET)
    engine.arm("a", "other", after=100, to=OTHER)
    engine.arm("a", "default", after=100)
    engine.until(lambda: len(engine.events(Armed)) == 3)
    engine.broker.delete_topic(TARGET)
    engine.until(lambda: len(engine.events()) == 6)
    assert engine.delivered() == ["a default 0"]
    assert engine.delivered(OTHER) == ["a other 0"]
    (undeliverable,) = engine.events(Undeliverable)
    assert undeliverable.target == TARGET
    assert "UNKNOWN_TOPIC" in undeliverable.error
    assert buried(engine) == ["gone"]


def test_a_target_that_nobody_may_write_to_stops_nobody_else() -> None:
    engine, _ = with_targets()
    engine.broker.forbidden.add(TARGET)
    engine.arm("a", "forbidden", to=TARGET)
    engine.arm("a", "default")
    engine.until(lambda: len(engine.events()) == 4)
    assert engine.delivered() == ["a default 0"]
    assert buried(engine) == ["forbidden"]


def test_a_delivery_that_is_too_large_for_its_target_goes_alone() -> None:
    engine, _ = with_targets(max_message_bytes="1000")
    engine.arm("a", "large", to=TARGET, payload_text=LARGE)
    engine.arm("a", "small", to=TARGET)
    engine.until(lambda: len(engine.events()) == 4)
    assert engine.delivered(TARGET) == ["a small 0"]
    assert buried(engine) == ["large"]


def test_a_delivery_that_is_too_large_for_the_default_topic_goes_alone() -> None:
    engine, _ = with_targets()
    engine.broker.topic(DELIVERIES).config["max.message.bytes"] = "1000"
    engine.arm("a", "large", payload_text=LARGE)
    engine.arm("a", "small")
    engine.until(lambda: len(engine.events()) == 4)
    assert engine.delivered() == ["a small 0"]
    assert buried(engine) == ["large"]


def test_another_partitions_reminder_of_the_same_version_is_not_blamed() -> None:
    engine, _ = with_targets(2, max_message_bytes="1000")
    engine.arm(engine.actor(0), "large", to=TARGET, payload_text=LARGE)
    engine.until(lambda: engine.events(Undeliverable))
    engine.arm(engine.actor(1), "small", to=TARGET)
    engine.until(lambda: len(engine.events()) == 4)
    assert engine.delivered(TARGET) == [f"{engine.actor(1)} small 0"]


def test_a_target_that_is_back_is_tried_again() -> None:
    engine, _ = with_targets()
    engine.broker.forbidden.add(TARGET)
    engine.arm("a", "forbidden", to=TARGET)
    engine.until(lambda: engine.events(Undeliverable))
    engine.broker.forbidden.clear()
    engine.arm("a", "later", after=40_000, to=TARGET)
    engine.until(lambda: len(engine.events(Armed)) == 2)
    engine.advance(40_000)
    engine.until(lambda: engine.delivered(TARGET))


def test_a_target_that_is_no_longer_allowed_is_undeliverable() -> None:
    engine, node = with_targets()
    engine.arm("a", after=5_000, to=TARGET)
    engine.until(lambda: engine.events(Armed))
    node.leave()
    engine.live("w2", installation=structs.replace(engine.installation, limits=Limits()))
    engine.until(lambda: engine.events(Undeliverable))
    assert engine.delivered(TARGET) == []
    assert buried(engine) == ["r"]


def test_a_recurring_reminder_goes_on_after_an_undeliverable_slot() -> None:
    engine, _ = with_targets()
    engine.broker.forbidden.add(TARGET)
    engine.arm("a", to=TARGET, every="20s")
    engine.until(lambda: engine.events(Undeliverable))
    engine.broker.forbidden.clear()
    for _ in range(40):
        engine.advance(1_000)
        engine.turn()
    assert engine.delivered(TARGET) == ["a r 2"]


def test_an_engine_topic_that_is_refused_ends_the_worker_by_name() -> None:
    engine, node = with_targets()
    engine.broker.forbidden.add(EVENTS)
    engine.arm("a")
    with pytest.raises(EngineTopicRefused, match=EVENTS):
        node.turn(5)


# --- Producers


def test_a_producer_fenced_once_goes_on_under_its_identity() -> None:
    engine, node = with_targets()
    engine.arm("a", "before", after=60_000)
    engine.until(lambda: engine.events(Armed))
    engine.broker.take_over("w", 10_000)
    engine.arm("a", "after")
    engine.until(engine.delivered)
    assert node.identity == "w"
    assert node.figures.alerts == ["producer_fenced"]
    assert engine.answers() == {0: 1, 1: 1}


def test_a_producer_fenced_twice_goes_on_under_a_new_identity() -> None:
    engine, node = with_targets()
    for name in ("one", "two"):
        engine.broker.take_over("w", 10_000)
        engine.arm("a", name)
        engine.until(lambda due=f"a {name} 0": due in engine.delivered())  # type: ignore[misc]
    assert node.identity == "w-1"


def test_copies_of_a_state_directory_do_not_fence_each_other_for_ever() -> None:
    engine = Engine(2)
    first = engine.live("w")
    second = engine.live("w")
    for number in range(20):
        engine.arm(engine.actor(0), f"r{number}")
        engine.arm(engine.actor(1), f"r{number}")
        engine.turn(10)
    assert len(engine.delivered()) == 40
    assert first.figures.alerts + second.figures.alerts == ["producer_fenced"] * 3
    assert first.identity != second.identity


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_an_unknown_outcome_is_asked_for_until_it_is_known(lost: str) -> None:
    engine, node = with_targets()
    engine.arm("a")
    fail = {"request": engine.failures.fail_before, "answer": engine.failures.fail_after}[lost]
    for _ in range(3):
        fail("transaction.commit", Unknown("no answer"))
    engine.until(engine.delivered)
    engine.turn(10)
    assert engine.delivered() == ["a r 0"]
    assert node.figures.transactions == {"committed": 1}


@pytest.mark.parametrize("committed", [False, True])
def test_a_worker_stopped_over_an_unknown_outcome_finds_out_at_its_next_start(
    committed: bool,
) -> None:
    engine, node = with_targets()
    engine.arm("a")
    unknown = Unknown("no answer")
    fail = engine.failures.fail_after if committed else engine.failures.fail_before
    fail("transaction.commit", unknown)
    node.worker.stop()
    with pytest.raises(Exception, match="no answer"):
        node.turn()
    node.kill()
    engine.live("w", stores=node.stores)
    engine.until(engine.delivered)
    engine.turn(10)
    assert engine.delivered() == ["a r 0"]
    assert engine.answers() == {0: 1}


def test_fires_are_counted_by_what_was_committed() -> None:
    engine, node = with_targets()
    engine.arm("a")
    engine.until(lambda: len(engine.events(Fired)) == 1)
    assert len(node.figures.lateness) == 1
