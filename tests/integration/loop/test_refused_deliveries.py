"""Rule 8 on the broker: what it will never take becomes an event and a dead letter."""

import pytest
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from tests.integration.loop.stage import WAIT_S_MAX, Stage
from tocsin.core.events import Armed, Undeliverable

pytestmark = pytest.mark.kafka

LARGE = "x" * 20_000
SMALL_LIMIT = "10000"


def test_a_target_deleted_under_a_due_reminder_stops_nobody_else(stage: Stage) -> None:
    target = f"{stage.prefix}-target"
    stage.create_topic(target)
    stage.live(limits={"targets": frozenset({target})})
    due = stage.now() + 4_000
    stage.arm("a", "before", to=target)
    stage.arm("a", "gone", at=due, to=target)
    stage.arm("a", "default", at=due)
    stage.until(lambda: len(stage.events(Armed)) == 3)
    stage.delete_topic(target)
    stage.until(lambda: stage.events(Undeliverable))
    stage.last_word()
    assert "a default 0" in stage.delivered()
    assert stage.letters() == ["gone"]
    assert [event.target for event in stage.events(Undeliverable)] == [target]


@pytest.mark.parametrize("default", [False, True], ids=["own target", "default topic"])
def test_a_delivery_that_is_too_large_goes_alone(stage: Stage, default: bool) -> None:
    target = stage.topic("deliveries") if default else f"{stage.prefix}-target"
    if not default:
        stage.create_topic(target)
        stage.follow(target)
    stage.live(limits={"targets": frozenset({target})})
    limit = ConfigEntry(
        "max.message.bytes", SMALL_LIMIT, incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.TOPIC, target, incremental_configs=[limit])
    stage.admin.incremental_alter_configs([resource])[resource].result(WAIT_S_MAX)
    stage.until(lambda: stage.cluster.settings(target)["max.message.bytes"] == SMALL_LIMIT)
    due = stage.now() + 1_000
    to = {} if default else {"to": target}
    for name, payload in (("small 1", "x"), ("large", LARGE), ("small 2", "x")):
        stage.arm("a", name, at=due, payload_text=payload, **to)
    stage.until(lambda: stage.events(Undeliverable))
    stage.last_word()
    stage.until(lambda: len(stage.delivered(target)) >= 2)
    delivered = [d for d in stage.delivered(target) if "last-word" not in d]
    assert delivered == ["a small 1 0", "a small 2 0"]
    assert stage.letters() == ["large"]
