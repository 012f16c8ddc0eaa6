"""When time went by without us nothing fires before the commands' end was read again; after a jump
the broker's clock must agree as well.
"""

from collections.abc import Callable

import pytest
from msgspec import structs

from tests.unit.runtime.engine import Engine, Node
from tocsin.adapters.memory.commands import MemoryCommands
from tocsin.core.events import Armed, Cancelled, Fired
from tocsin.core.values import EpochMs
from tocsin.dataflow import Record
from tocsin.runtime.partition import Phase

HOUR_MS = 3_600_000
STALL_MS = 1_500


class SleepsInPoll(MemoryCommands):
    """What happens while the worker waits for commands, after it has looked for them."""

    sleep: Callable[[], object] | None = None

    def poll(self, timeout_s: float, limit: int) -> list[Record]:
        records = super().poll(timeout_s, limit)
        sleep, self.sleep = self.sleep, None
        if sleep is not None:
            sleep()
        return records


def armed(engine: Engine, *, after: int) -> tuple[Node, SleepsInPoll]:
    node = engine.live("w", commands=SleepsInPoll)
    engine.arm("a", after=after)
    engine.until(lambda: engine.events(Armed))
    assert isinstance(node.commands, SleepsInPoll)
    return node, node.commands


@pytest.mark.parametrize("asleep", [False, True], ids=["between turns", "in poll"])
def test_what_was_cancelled_while_the_process_stood_still_does_not_fire(asleep: bool) -> None:
    engine = Engine()
    node, commands = armed(engine, after=1_000)

    def stand_still() -> None:
        engine.advance(STALL_MS)
        engine.cancel("a")

    if asleep:
        commands.sleep = stand_still
    else:
        stand_still()
    node.turn()
    engine.turn(5)
    assert engine.delivered() == []
    assert engine.events(Cancelled)


@pytest.mark.parametrize("asleep", [False, True], ids=["between turns", "in poll"])
def test_what_was_cancelled_while_the_machine_slept_does_not_fire(asleep: bool) -> None:
    engine = Engine()
    node, commands = armed(engine, after=HOUR_MS)

    def sleep() -> None:  # monotonic clocks stand still meanwhile
        engine.jump(2 * HOUR_MS)
        engine.cancel("a")

    if asleep:
        commands.sleep = sleep
    else:
        sleep()
    node.turn()
    engine.turn(5)
    assert engine.delivered() == []
    assert node.figures.alerts == ["clock_jump"]


def test_a_stall_while_catching_up_asks_for_the_end_anew() -> None:
    engine = Engine()
    armed(engine, after=1_000)[0].leave()
    engine.arm("b", after=HOUR_MS)  # something to catch up with
    node = engine.start("w2", commands=SleepsInPoll)
    engine.until(lambda: Phase.CATCHING_UP in node.phases.values())
    assert isinstance(node.commands, SleepsInPoll)

    def stand_still() -> None:
        engine.advance(STALL_MS)
        for number in range(3_000):  # more than one poll takes
            engine.arm("b", f"n{number}", after=HOUR_MS)
        engine.cancel("a")

    node.commands.sleep = stand_still
    engine.until_live()
    engine.turn(5)
    assert engine.delivered() == []


def test_a_flood_of_commands_after_a_stall_does_not_hold_up_firing() -> None:
    engine = Engine()
    node, _ = armed(engine, after=1_000)
    engine.advance(STALL_MS)
    for _ in range(20):
        for number in range(1_500):  # more than a step takes
            engine.arm("b", f"n{number}", after=HOUR_MS)
        node.turn()
    assert engine.delivered() == ["a r 0"]


def test_after_a_jump_nothing_fires_until_the_brokers_clock_agrees() -> None:
    engine = Engine()
    node, _ = armed(engine, after=HOUR_MS)
    engine.clock.jump(EpochMs(engine.now + 2 * HOUR_MS))
    engine.turn(200)
    assert engine.delivered() == []
    assert node.phases == {0: Phase.LIVE}  # commands are answered all the same
    engine.broker_clock.jump(engine.now)
    engine.until(engine.delivered)
    assert engine.delivered() == ["a r 0"]


def test_a_smaller_jump_is_in_doubt_too_where_the_operator_said_so() -> None:
    engine = Engine()
    engine.installation = structs.replace(engine.installation, jump_ms_max=1_000)
    armed(engine, after=HOUR_MS)
    engine.clock.jump(EpochMs(engine.now + 3_000))
    engine.arm("a", "early", after=-1_000)
    engine.turn(100)
    assert engine.delivered() == []
    engine.broker_clock.jump(engine.now)
    engine.until(engine.delivered)


def test_the_operator_can_confirm_the_clock() -> None:
    engine = Engine()
    node, _ = armed(engine, after=HOUR_MS)
    engine.clock.jump(EpochMs(engine.now + 2 * HOUR_MS))
    engine.turn(10)
    node.status.confirm_clock()
    engine.until(engine.delivered)


def test_a_beat_from_before_the_jump_proves_nothing() -> None:
    engine = Engine()
    node, _ = armed(engine, after=HOUR_MS)
    node.status.doubt_clock()
    node.turn()  # sends a beat, whose report comes after the jump
    engine.clock.jump(EpochMs(engine.now + 2 * HOUR_MS))
    engine.turn(100)
    assert engine.delivered() == []


def test_a_clock_that_is_set_back_neither_fires_again_nor_early() -> None:
    engine = Engine()
    engine.live("w")
    engine.arm("a", "first")
    engine.until(engine.delivered)
    engine.arm("a", "second", after=1_000)
    engine.until(lambda: len(engine.events(Armed)) == 2)
    engine.jump(-HOUR_MS)
    engine.arm("a", "third")
    engine.turn(300)
    assert engine.delivered() == ["a first 0", "a third 0"]
    stamps = [stamp.engine_time for stamp in engine.stamps()]
    assert stamps == sorted(stamps)


def test_never_early() -> None:
    engine = Engine()
    engine.live("w")
    for number in range(50):
        engine.arm("a", f"r{number}", after=37 * number)
    engine.until(lambda: len(engine.events(Fired)) == 50)
    assert all(fired.fired >= fired.due for fired in engine.events(Fired))
