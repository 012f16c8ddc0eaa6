"""Rule 2: the step record says where the commands go on; what does not fit it is refused."""

from collections.abc import Callable

import pytest
from msgspec import structs

from tests.unit.runtime.engine import COMMANDS, EVENTS, NAMES, STATE, Engine, Node
from tocsin.adapters.memory.transaction import TIMEOUT_MS
from tocsin.app.topology import TOPOLOGY
from tocsin.core.events import Armed, CommandsLost
from tocsin.core.values import Offset
from tocsin.runtime.faults import Point
from tocsin.runtime.recovery import CannotStart


def answered(engine: Engine, commands: int = 3) -> Node:
    """Return a worker that has answered some commands, and has left in order."""
    node = engine.live("w")
    for number in range(commands):
        engine.arm("a", f"r{number}", after=60_000)
    engine.until(lambda: len(engine.events(Armed)) == commands)
    node.leave()
    return node


def recreate(engine: Engine, topic: str) -> None:
    engine.broker.delete_topic(topic)
    engine.broker.create_topics(TOPOLOGY, prefix=NAMES.prefix, partitions=engine.partitions)


def refusal(engine: Engine) -> str:
    with pytest.raises(CannotStart) as refused:
        engine.live("w2")
    return str(refused.value)


# --- The group's offsets are not needed


@pytest.mark.parametrize(
    "lose",
    [
        lambda engine: engine.broker.forget_offsets(NAMES.group),
        lambda engine: engine.broker.group(NAMES.group, 0).offsets.update(
            {(COMMANDS, 0): Offset(0)}
        ),
    ],
    ids=["deleted", "reset"],
)
def test_no_command_is_read_again_when_the_groups_offsets_are(
    lose: Callable[[Engine], None],
) -> None:
    engine = Engine()
    answered(engine)
    lose(engine)
    engine.live("w2")
    engine.arm("a", "new", after=60_000)
    engine.until(lambda: len(engine.answers()) == 4)
    assert engine.answers() == {0: 1, 1: 1, 2: 1, 3: 1}


# --- The state topic is gone


def test_without_a_step_record_but_with_events_the_worker_names_the_rebuild() -> None:
    engine = Engine()
    answered(engine)
    engine.broker.forget_offsets(NAMES.group)
    recreate(engine, STATE)
    assert "tocsin state rebuild" in refusal(engine)


def test_without_a_step_record_but_with_a_committed_offset_the_worker_names_the_rebuild() -> None:
    engine = Engine()
    answered(engine)
    recreate(engine, STATE)
    recreate(engine, EVENTS)
    assert "tocsin state rebuild" in refusal(engine)


def test_a_step_that_was_aborted_is_no_sign_of_a_lost_state_topic() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a")
    node.crash_at(Point.BEFORE_POSITIONS)
    engine.advance(TIMEOUT_MS + 1)
    engine.live("w2")
    engine.until(engine.delivered)
    assert engine.answers() == {0: 1}


# --- Another topic under the name


@pytest.mark.parametrize("topic", [COMMANDS, EVENTS])
def test_a_topic_made_anew_is_refused_by_name(topic: str) -> None:
    engine = Engine()
    answered(engine)
    recreate(engine, topic)
    message = refusal(engine)
    assert topic in message
    assert "tocsin topics adopt" in message


def test_a_state_topic_made_anew_is_refused_although_the_store_remembers() -> None:
    engine = Engine()
    node = answered(engine)
    recreate(engine, STATE)
    with pytest.raises(CannotStart, match="tocsin state rebuild"):
        engine.live("w", stores=node.stores)


def test_a_next_command_beyond_the_end_is_refused() -> None:
    engine = Engine()
    answered(engine)
    del engine.broker.log(COMMANDS, 0)._entries[1:]
    engine.broker.forget_offsets(NAMES.group)
    assert "lost its end" in refusal(engine)


# --- Commands that nobody answered


def test_a_committed_offset_beyond_the_step_is_refused() -> None:
    engine = Engine()
    answered(engine)
    engine.arm("a", "unanswered")
    engine.broker.group(NAMES.group, 0).offsets[COMMANDS, 0] = Offset(4)
    assert "accept_lost_commands" in refusal(engine)


def test_commands_that_the_operator_gave_up_are_told_as_lost_and_passed_over() -> None:
    engine = Engine()
    answered(engine)
    engine.arm("a", "unanswered")
    engine.broker.group(NAMES.group, 0).offsets[COMMANDS, 0] = Offset(4)
    installation = structs.replace(engine.installation, accept_lost_commands=True)
    node = engine.live("w2", installation=installation)
    engine.arm("a", "new")
    engine.until(engine.delivered)
    assert engine.events(CommandsLost) == [CommandsLost(first=Offset(3), last=Offset(3))]
    assert engine.delivered() == ["a new 0"]
    assert node.figures.alerts == ["commands_lost"]


def test_an_offset_beyond_the_end_of_the_commands_cannot_be_accepted() -> None:
    engine = Engine()
    answered(engine)
    engine.broker.group(NAMES.group, 0).offsets[COMMANDS, 0] = Offset(400)
    installation = structs.replace(engine.installation, accept_lost_commands=True)
    with pytest.raises(CannotStart, match="400"):
        engine.live("w2", installation=installation)


def test_commands_that_retention_took_unread_are_told_as_lost_and_the_rest_goes_on() -> None:
    engine = Engine()
    answered(engine)
    engine.arm("a", "lost 1")
    engine.arm("a", "lost 2")
    engine.arm("a", "kept")
    engine.broker.delete_before(COMMANDS, 0, 5)
    node = engine.live("w2")
    engine.until(engine.delivered)
    assert engine.events(CommandsLost) == [CommandsLost(first=Offset(3), last=Offset(4))]
    assert engine.delivered() == ["a kept 0"]
    assert node.figures.alerts == ["commands_lost"]


def test_commands_that_retention_took_from_a_running_worker_are_told_as_lost() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a", "first", after=60_000)
    engine.until(lambda: engine.events(Armed))
    engine.arm("a", "lost")
    engine.arm("a", "kept")
    engine.broker.delete_before(COMMANDS, 0, 2)
    engine.until(engine.delivered)
    assert engine.events(CommandsLost) == [CommandsLost(first=Offset(1), last=Offset(1))]
    assert engine.delivered() == ["a kept 0"]
    assert node.figures.alerts == ["commands_lost"]


def test_a_first_start_begins_where_the_log_begins() -> None:
    engine = Engine()
    engine.arm("a", "before")
    engine.arm("a", "after")
    engine.broker.delete_before(COMMANDS, 0, 1)
    engine.live("w")
    engine.until(engine.delivered)
    assert engine.delivered() == ["a after 0"]
    assert engine.events(CommandsLost) == []
