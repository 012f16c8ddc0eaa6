"""Rule 2 on the broker: the step record says where the commands go on."""

import pytest

from tests.integration.loop.stage import Running, Stage
from tocsin.core.events import Armed, CommandsLost
from tocsin.core.values import Offset
from tocsin.runtime.recovery import CannotStart

pytestmark = pytest.mark.kafka


def left_after(stage: Stage, commands: int) -> None:
    """Let a worker answer some commands and leave."""
    running = stage.live()
    for number in range(commands):
        stage.arm("a", f"r{number}", after="1h")
    stage.until(lambda: len(stage.events(Armed)) == commands)
    stage.stop(running)


def refusal(stage: Stage) -> str:
    running: Running = stage.start("w2")
    stage.until(lambda: running.ended)
    stage.running.remove(running)
    assert isinstance(running.failure, CannotStart)
    return str(running.failure)


def test_no_command_is_read_again_when_the_group_is_gone(stage: Stage) -> None:
    left_after(stage, 3)
    stage.delete_group()
    stage.live()
    stage.last_word()
    assert stage.answers() == {0: 1, 1: 1, 2: 1, 3: 1}


def test_commands_that_retention_took_unread_are_told_as_lost_and_the_rest_goes_on(
    stage: Stage,
) -> None:
    left_after(stage, 1)
    for name in ("lost 1", "lost 2", "kept"):
        stage.arm("a", name)
    stage.delete_before(stage.topic("commands"), 3)
    stage.live("w2")
    stage.until(stage.delivered)
    assert stage.delivered() == ["a kept 0"]
    assert stage.events(CommandsLost) == [CommandsLost(first=Offset(1), last=Offset(2))]


def test_commands_made_anew_are_refused_by_name(stage: Stage) -> None:
    left_after(stage, 1)
    stage.recreate("commands")
    message = refusal(stage)
    assert stage.topic("commands") in message
    assert "tocsin topics adopt" in message


def test_a_state_topic_made_anew_is_refused_and_names_the_rebuild(stage: Stage) -> None:
    left_after(stage, 1)
    stage.delete_group()
    stage.recreate("state")
    assert "tocsin state rebuild" in refusal(stage)
