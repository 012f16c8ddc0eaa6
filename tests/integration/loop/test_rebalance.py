"""Rule 7 on the broker: partitions change hands while reminders fire, and nothing fires twice."""

from collections.abc import Callable

import pytest

from tests.integration.loop.stage import Stage
from tocsin.core.events import Fired

pytestmark = pytest.mark.kafka


def test_reminders_that_fire_while_partitions_change_hands_fire_once(
    new_stage: Callable[[int], Stage],
) -> None:
    stage = new_stage(4)
    first = stage.live("w1")
    actors = [stage.actor(partition) for partition in range(4)]
    for actor in actors:
        stage.arm(actor, every="100ms")
    stage.until(lambda: len(stage.delivered()) > 20)
    second = stage.live("w2")
    stage.until(lambda: second.phases)
    after_join = len(stage.delivered())
    stage.until(lambda: len(stage.delivered()) > after_join + 20)
    stage.stop(first)
    stage.until_live()
    after_leave = len(stage.delivered())
    stage.until(lambda: len(stage.delivered()) > after_leave + 20)
    for actor in actors:
        stage.command(actor, cancel={"reminder": "r"})
    stage.last_word()
    ticks = [d for d in stage.delivered() if "last-word" not in d]
    assert len(ticks) == len(set(ticks))
    fired = [e for e in stage.events(Fired) if e.reminder == "r"]
    assert len(fired) == len(ticks)
    for actor in actors:
        mine = [
            event
            for event, record in zip(
                stage.events(), stage.records(stage.topic("events")), strict=True
            )
            if record.key == actor.encode() and isinstance(event, Fired) and event.reminder == "r"
        ]
        next_slot = 0
        for event in mine:
            assert event.occurrence - event.missed == next_slot
            next_slot = event.occurrence + 1
