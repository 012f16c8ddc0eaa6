"""Rule 1 on the broker: an aborted step is invisible, a crash costs a replay."""

import signal

import pytest

from tests.integration.loop.stage import Stage
from tocsin.core.events import Armed, Fired
from tocsin.ports import Aborted
from tocsin.runtime.faults import Point

pytestmark = pytest.mark.kafka


def test_an_aborted_step_is_invisible_and_its_reminders_fire_once(stage: Stage) -> None:
    running = stage.live()
    running.gate.fail(Point.BEFORE_COMMIT, Aborted("planned"))
    stage.arm("a", "first")
    stage.until(stage.delivered)
    running.gate.fail(Point.BEFORE_COMMIT, Aborted("planned"))
    stage.last_word()
    assert stage.delivered() == ["a first 0", f"{stage.actor(0)} last-word 0"]
    assert len(stage.events(Armed)) == len(stage.events(Fired)) == 2
    assert running.gate.visits[Point.AFTER_COMMIT] < running.gate.visits[Point.BEFORE_COMMIT]


@pytest.mark.parametrize("point", [Point.BEFORE_COMMIT, Point.AFTER_COMMIT])
def test_a_process_that_dies_around_its_commit_leaves_nothing_undone_and_nothing_twice(
    stage: Stage, point: Point
) -> None:
    with stage.process("w", f"crash:{point}:2") as first:
        stage.arm("a", "armed", after="1s")
        stage.until(lambda: first.poll() is not None)
    assert first.returncode == -signal.SIGKILL
    stage.live("w")
    stage.last_word()
    assert stage.delivered() == ["a armed 0", f"{stage.actor(0)} last-word 0"]
    assert set(stage.answers().values()) == {1}
