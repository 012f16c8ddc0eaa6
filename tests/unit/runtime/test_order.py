"""Section 4: commands before what is due, and neither holds up the other."""

from tests.unit.runtime.engine import Engine
from tocsin.core.events import Armed, Cancelled, Fired
from tocsin.core.values import Offset
from tocsin.runtime.world import Bounds

HOUR_MS = 3_600_000


def test_a_cancel_that_waits_is_taken_before_the_fire() -> None:
    engine = Engine()
    node = engine.live("w")
    engine.arm("a", after=100)
    engine.until(lambda: engine.events(Armed))
    engine.advance(100)
    engine.cancel("a")
    node.turn()
    engine.turn(5)
    assert engine.events(Cancelled)
    assert engine.delivered() == []


def test_a_burst_is_cut_in_batches_so_that_a_cancel_gets_in_between() -> None:
    engine = Engine(bounds=Bounds(decisions_max=4))
    node = engine.live("w")
    for number in range(6):
        engine.arm("a", f"r{number}", after=500 + number)
    engine.until(lambda: len(engine.events(Armed)) == 6)
    engine.advance(600)
    node.turn()
    assert len(engine.delivered()) == 4
    engine.cancel("a", "r5")
    engine.turn(5)
    assert engine.delivered() == [f"a r{number} 0" for number in range(5)]


def test_a_flood_of_commands_on_every_partition_does_not_hold_up_firing() -> None:
    engine = Engine(4, bounds=Bounds(commands_max=4, decisions_max=8))
    node = engine.live("w")
    actors = [engine.actor(partition) for partition in range(4)]
    for actor in actors:
        engine.arm(actor, after=100)
    engine.until(lambda: len(engine.events(Armed)) == 4)
    engine.advance(100)
    for round_number in range(8):
        for actor in actors:
            for number in range(8):
                engine.arm(actor, f"n{round_number}-{number}", after=HOUR_MS)
        node.turn()
    assert len(engine.delivered()) == 4


def test_a_flood_of_fires_does_not_hold_up_commands() -> None:
    engine = Engine(bounds=Bounds(decisions_max=4))
    node = engine.live("w")
    for number in range(100):
        engine.arm("a", f"r{number}", after=2_000)
    engine.until(lambda: len(engine.events(Armed)) == 100)
    engine.until(engine.delivered)
    engine.arm("b", after=HOUR_MS)
    node.turn()
    assert len(engine.events(Armed)) == 101


def test_a_fire_says_which_command_came_next() -> None:
    engine = Engine()
    engine.live("w")
    engine.arm("a", after=100)
    engine.cancel("a", "another")
    engine.until(engine.delivered)
    assert [fired.next_command for fired in engine.events(Fired)] == [Offset(2)]


def test_due_reminders_fire_by_due_then_by_arming() -> None:
    engine = Engine()
    engine.live("w")
    at = engine.now + 500
    for name in ("third", "fourth"):
        engine.command("a", arm={"reminder": name, "at": at})
    for name in ("first", "second"):
        engine.command("a", arm={"reminder": name, "at": at - 100})
    engine.until(lambda: len(engine.events(Armed)) == 4)
    engine.advance(600)
    engine.until(lambda: len(engine.events(Fired)) == 4)
    order = [fired.reminder for fired in engine.events(Fired)]
    assert order == ["first", "second", "third", "fourth"]
