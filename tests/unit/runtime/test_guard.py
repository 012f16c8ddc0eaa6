"""Rule 11: a command or a fire that our own code cannot decide stops nobody else."""

from collections.abc import Sequence

from msgspec import structs

from tests.unit.runtime.engine import DEAD_LETTERS, Engine
from tocsin.app.processors.intake import intake
from tocsin.app.processors.timer import timer
from tocsin.app.topology import TOPOLOGY
from tocsin.core.errors import Reason
from tocsin.core.events import Armed, Fired, Refused, Undeliverable
from tocsin.dataflow import Change, Due, Effect, Incoming, Processor, Topology, Turn, View

POISON = "poison"


class OurBug(Exception):
    """What no test foresaw."""


def _intake(incoming: Incoming, view: View, turn: Turn) -> Sequence[Effect]:
    effects = intake(incoming, view, turn)
    if any(isinstance(e, Change) and e.name == POISON for e in effects):
        raise OurBug
    return effects


def _timer(due: Due, view: View, turn: Turn) -> Sequence[Effect]:
    if due.reminder.spec.reminder == POISON:
        raise OurBug
    return timer(due, view, turn)


def broken(source: str) -> Topology:
    run = {"commands": _intake, "timers": _timer}[source]
    processors: tuple[Processor, ...] = tuple(
        structs.replace(p, run=run) if p.source == source else p for p in TOPOLOGY.processors
    )
    return structs.replace(TOPOLOGY, processors=processors)


def test_a_command_that_crashes_our_code_is_refused_and_kept_and_the_partition_goes_on() -> None:
    engine = Engine(topology=broken("commands"))
    node = engine.live("w")
    engine.arm("a", "before", after=60_000)
    poison = engine.arm("a", POISON)
    engine.arm("a", "after", after=60_000)
    engine.until(lambda: len(engine.answers()) == 3)
    assert [event.spec.reminder for event in engine.events(Armed)] == ["before", "after"]
    (refused,) = engine.events(Refused)
    assert refused.reason is Reason.FAULT
    assert "OurBug" in refused.way_out
    (letter,) = engine.visible(DEAD_LETTERS)
    assert (letter.key, letter.value) == (poison.key, poison.value)
    assert node.figures.alerts == ["fault"]
    index = node.worker.partitions[0].index
    assert [reminder.spec.reminder for reminder in index.reminders("a")] == ["after", "before"]


def test_a_fire_that_crashes_our_code_ends_its_reminder_and_the_partition_goes_on() -> None:
    engine = Engine(topology=broken("timers"))
    node = engine.live("w")
    engine.arm("a", POISON, every="1s", payload_text="kept")
    engine.arm("a", "good")
    engine.until(engine.delivered)
    engine.turn(300)
    assert engine.delivered() == ["a good 0"]
    (undeliverable,) = engine.events(Undeliverable)
    assert undeliverable.error == "fault: OurBug"
    assert len(engine.events(Fired)) == 1
    (letter,) = engine.visible(DEAD_LETTERS)
    assert letter.value == b"kept"
    assert node.figures.alerts == ["fault"]
    assert node.worker.partitions[0].index.reminders("a") == []
