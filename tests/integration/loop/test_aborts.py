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
    stage.arm("a", after="1s")
    stage.until(lambda: stage.events(Armed))
    running.gate.fail(Point.BEFORE_COMMIT, Aborted("planned"))
    stage.until(stage.delivered)
    stage.last_word()
    assert stage.delivered() == ["a r 0", f"{stage.actor(0)} last-word 0"]
    assert [armed.previous for armed in stage.events(Armed)] == [None, None]
    assert len(stage.events(Fired)) == 2
    visits = running.gate.visits
    assert visits[Point.BEFORE_COMMIT] == visits[Point.AFTER_COMMIT] + 2


@pytest.mark.parametrize(
    ("point", "visit"),
    [(Point.BEFORE_COMMIT, 1), (Point.BEFORE_COMMIT, 2), (Point.AFTER_COMMIT, 2)],
    ids=["before its first commit", "before", "after"],
)
def test_a_process_that_dies_around_its_commit_leaves_nothing_undone_and_nothing_twice(
    stage: Stage, point: Point, visit: int
) -> None:
    with stage.process("w", f"crash:{point}:{visit}") as first:
        stage.arm("a", "armed", after="1s")
        stage.until(lambda: first.poll() is not None)
    assert first.returncode == -signal.SIGKILL
    stage.live("w")
    stage.last_word()
    assert stage.delivered() == ["a armed 0", f"{stage.actor(0)} last-word 0"]
    assert set(stage.answers().values()) == {1}
