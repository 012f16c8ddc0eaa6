"""Rules 3 and 8 on the broker: a stale owner and a fenced producer write nothing that is seen."""

import pytest

from tests.integration.loop.stage import Impatient, Running, Stage
from tocsin.core.events import Armed, Fired
from tocsin.runtime.faults import Point

pytestmark = pytest.mark.kafka


def paused_while_it_fires(stage: Stage, point: Point) -> Running:
    """Return a worker that is held at `point` of a transaction in which one reminder fires."""
    stale = stage.live("stale", Impatient)
    stage.arm("a", after="1s")
    stage.until(lambda: stage.events(Armed))
    stale.gate.hold(point)
    stage.until(stale.gate.held.is_set)
    return stale


def test_a_stale_owner_is_fenced_although_it_only_fires(stage: Stage) -> None:
    stale = paused_while_it_fires(stage, Point.AFTER_BEGIN)
    successor = stage.start("successor")
    stage.until(stage.delivered)
    stale.gate.release()
    stage.until(lambda: stale.gate.visits[Point.BEFORE_POSITIONS] >= 2)
    stage.last_word()
    assert stage.delivered() == ["a r 0", f"{stage.actor(0)} last-word 0"]
    assert len(stage.events(Fired)) == 2
    # It goes on well: it has the partition again once the other leaves.
    stage.stop(successor)
    stage.until_live()
    assert stale.failure is None


def test_a_successor_waits_for_what_a_stale_owner_has_already_written(stage: Stage) -> None:
    stale = paused_while_it_fires(stage, Point.BEFORE_POSITIONS)
    stage.start("successor")
    stage.until(stage.delivered)
    stale.gate.release()
    stage.last_word()
    assert stage.delivered() == ["a r 0", f"{stage.actor(0)} last-word 0"]
    assert stale.failure is None


def test_a_producer_that_is_fenced_again_goes_on_under_a_new_identity(stage: Stage) -> None:
    running = stage.live()
    file = stage.directory("w") / "instance-id"
    identity = file.read_text().strip()
    for number in range(2):
        stage.transaction(f"{stage.prefix}-{identity}").close()
        stage.arm("a", f"r{number}")
        stage.until(lambda: len(stage.delivered()) > number)  # noqa: B023  called at once
    stage.last_word()
    assert running.failure is None
    assert file.read_text().strip() != identity
    assert stage.answers() == {0: 1, 1: 1, 2: 1}
