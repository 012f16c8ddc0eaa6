"""Rules 4, 5 and 7 on the broker: what has to be read before anything fires."""

import shutil

import pytest

from tests.integration.loop.stage import Stage
from tocsin.codec.keys import SPEC, record_key
from tocsin.core.events import Armed
from tocsin.ports import Aborted
from tocsin.runtime.faults import Point
from tocsin.runtime.partition import Phase

pytestmark = pytest.mark.kafka


def test_restore_waits_for_what_is_written_and_not_yet_decided(stage: Stage) -> None:
    first = stage.live()
    stage.arm("a", after="1s")
    stage.until(lambda: stage.events(Armed))
    stage.stop(first)
    predecessor = stage.transaction("predecessor")
    predecessor.begin()
    predecessor.produce(stage.topic("state"), 0, record_key("a", SPEC, "r"), None)
    end = stage.cluster.bounds(stage.topic("state"), [0])[0].stable_end
    stage.until(lambda: stage.cluster.bounds(stage.topic("state"), [0])[0].end > end)
    second = stage.start()
    stage.until(
        lambda: second.gate.visits[Point.IN_RESTORE] > 100 or Phase.LIVE in second.phases.values()
    )
    assert second.phases == {0: Phase.RESTORING}
    predecessor.commit()
    stage.until_live()
    stage.last_word()
    assert stage.delivered() == [f"{stage.actor(0)} last-word 0"]
    predecessor.close()


def test_a_clients_open_transaction_on_the_commands_does_not_stop_firing(stage: Stage) -> None:
    first = stage.live()
    stage.arm("a", after="2s")
    stage.until(lambda: stage.events(Armed))
    stage.stop(first)
    client = stage.transaction("client")
    client.begin()
    topic = stage.topic("commands")
    client.produce(topic, 0, b"a", b"{}")
    stage.until(lambda: stage.cluster.bounds(topic, [0])[0].end > 1)
    stage.live()
    stage.until(stage.delivered)
    client.abort()
    client.close()


def test_a_lost_store_is_rebuilt_past_aborted_records_beside_an_idle_partition(
    new_stage: object,
) -> None:
    assert callable(new_stage)
    stage: Stage = new_stage(2)
    first = stage.live()
    actor = stage.actor(0)
    for number in range(20):
        stage.arm(actor, f"r{number}", at=stage.now() + 3_000)
    stage.until(lambda: len(stage.events(Armed)) == 20)
    aborter = stage.transaction("aborter")
    aborter.begin()
    aborter.produce(stage.topic("state"), 0, record_key(actor, SPEC, "r0"), None)
    end = stage.cluster.bounds(stage.topic("state"), [0])[0].end
    stage.until(lambda: stage.cluster.bounds(stage.topic("state"), [0])[0].end > end)
    aborter.abort()
    aborter.close()
    stage.stop(first)
    shutil.rmtree(stage.directory("w") / "stores")
    stage.live()
    stage.until(lambda: len(stage.delivered()) >= 20)
    stage.last_word()
    delivered = [d for d in stage.delivered() if "last-word" not in d]
    assert delivered == sorted(f"{actor} r{number} 0" for number in range(20))


def test_what_was_cancelled_while_the_engine_was_down_does_not_fire(stage: Stage) -> None:
    first = stage.live()
    stage.arm("a", after="1s")
    stage.until(lambda: stage.events(Armed))
    stage.stop(first)
    due = stage.now() + 1_000
    stage.until(lambda: stage.now() > due)
    for number in range(3_000):  # more than one poll takes
        stage.queue("b", arm={"reminder": f"n{number}", "after": "1h"})
    stage.command("a", cancel={"reminder": "r"})
    stage.live()
    stage.last_word()
    assert stage.delivered() == [f"{stage.actor(0)} last-word 0"]


def test_a_commit_that_is_aborted_while_restoring_is_passed_over(stage: Stage) -> None:
    running = stage.live()
    running.gate.fail(Point.BEFORE_COMMIT, Aborted("planned"))
    stage.arm("a", after="1h")
    stage.until(lambda: stage.events(Armed))
    stage.stop(running)
    stage.live("w2")
    stage.last_word()
    assert stage.answers() == {0: 1, 1: 1}
