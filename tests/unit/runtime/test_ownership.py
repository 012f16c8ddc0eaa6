"""Rule 3: who no longer owns a partition writes nothing that anybody sees."""

from tests.unit.runtime.engine import SESSION_MS, Engine
from tocsin.adapters.memory.commands import MemoryCommands
from tocsin.core.events import Armed, Fired
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Token
from tocsin.runtime.faults import Point
from tocsin.runtime.partition import Phase


class NoMember(MemoryCommands):
    """Owns partitions and can prove nothing, as between two memberships."""

    def token(self) -> Token | None:
        return None


class LostOnTheWay(MemoryCommands):
    """Once, a poll loses the partition, and gets it back, with its records already in hand."""

    lose = False

    def poll(self, timeout_s: float, limit: int) -> list[Record]:
        records = super().poll(timeout_s, limit)
        if self.lose and records:
            self.lose = False
            assert self._ownership is not None
            self.hold([0])
            self._ownership.lost([0])
            self._ownership.assigned([0])
        return records


class Refetching(MemoryCommands):
    """After a rebalance that changes nothing it shows no commands for some polls, as the client
    does while it fetches anew what it had fetched ahead.
    """

    polls_to_come = 0

    def rebalance(self) -> None:
        assert self._ownership is not None
        self._ownership.assigned([])
        self.polls_to_come = 5

    def poll(self, timeout_s: float, limit: int) -> list[Record]:
        if self.polls_to_come:
            self.polls_to_come -= 1
            return []
        return super().poll(timeout_s, limit)


def test_a_stale_owner_that_only_fires_is_fenced_and_nothing_of_it_is_visible() -> None:
    engine = Engine()
    stale = engine.live("w1")
    engine.arm("a", after=100)
    engine.until(lambda: engine.events(Armed))

    def another_takes_over() -> None:
        engine.nodes.remove(stale)
        engine.advance(SESSION_MS + 1)
        engine.live("w2")
        engine.until(engine.delivered)

    stale.interruptions.on(Point.AFTER_BEGIN, another_takes_over)
    engine.advance(100)
    stale.turn()
    engine.nodes.insert(0, stale)
    engine.until_live()
    assert engine.delivered() == ["a r 0"]
    assert len(engine.events(Fired)) == 1
    assert stale.figures.transactions["aborted"] == 1


def test_a_worker_that_was_fenced_goes_on_well() -> None:
    engine = Engine(2)
    stale = engine.live("w1")
    actors = [engine.actor(0), engine.actor(1)]

    def another_takes_over() -> None:
        engine.nodes.remove(stale)
        engine.advance(SESSION_MS + 1)
        engine.live("w2")

    stale.interruptions.on(Point.AFTER_BEGIN, another_takes_over)
    engine.arm(actors[0], "one")
    stale.turn()
    engine.nodes.insert(0, stale)
    engine.until(lambda: engine.all_live() and stale.phases)
    for actor in actors:
        engine.arm(actor, "two")
    engine.until(lambda: len(engine.delivered()) >= 3)
    engine.turn(10)
    assert engine.delivered() == sorted(
        [f"{actors[0]} one 0", f"{actors[0]} two 0", f"{actors[1]} two 0"]
    )
    assert stale.figures.transactions["committed"] > 0


def test_a_transaction_of_fires_alone_commits_the_position_too() -> None:
    engine = Engine()
    engine.live("w")
    engine.arm("a", after=100)
    engine.until(lambda: engine.events(Armed))
    engine.broker.forget_offsets("t")
    engine.until(engine.delivered)
    assert engine.broker.group("t", 0).offsets == {("t.commands", 0): Offset(1)}


def test_without_proof_of_membership_there_is_no_transaction() -> None:
    engine = Engine()
    engine.arm("a")
    node = engine.start("w", commands=NoMember)
    engine.turn(50)
    assert node.phases == {0: Phase.CATCHING_UP}
    assert node.figures.transactions == {}
    assert engine.broker.log("t.events", 0).end == 0


def test_commands_read_for_an_ownership_that_ended_are_dropped_and_read_again() -> None:
    engine = Engine()
    node = engine.live("w", commands=LostOnTheWay)
    assert isinstance(node.commands, LostOnTheWay)
    node.commands.lose = True
    engine.arm("a")
    node.turn()
    assert engine.events() == []
    engine.until(engine.delivered)
    engine.turn(10)
    assert engine.answers() == {0: 1}
    assert engine.delivered() == ["a r 0"]


def test_what_was_cancelled_before_a_rebalance_does_not_fire_in_what_stays() -> None:
    engine = Engine()
    node = engine.live("w", commands=Refetching)
    assert isinstance(node.commands, Refetching)
    engine.arm("a", after=100)
    engine.until(lambda: engine.events(Armed))
    engine.cancel("a")
    node.commands.rebalance()
    engine.advance(100)
    engine.turn(20)
    assert engine.answers() == {0: 1, 1: 1}
    assert engine.delivered() == []
    assert node.phases == {0: Phase.LIVE}


def test_nothing_fires_twice_however_the_partitions_move() -> None:
    engine = Engine(4)
    first = engine.live("w1")
    actors = [engine.actor(partition) for partition in range(4)]
    for actor in actors:
        engine.arm(actor, every="100ms")
    engine.turn(50)
    second = engine.live("w2")
    engine.turn(50)
    third = engine.live("w3")
    engine.turn(30)
    second.leave()
    engine.until_live()
    engine.turn(30)
    third.kill()
    engine.until_live()
    engine.turn(30)
    assert first.phases == dict.fromkeys(range(4), Phase.LIVE)
    fired = [f"{e.version}" for e in engine.events(Fired)]
    delivered = engine.delivered()
    assert len(delivered) == len(fired) == len(set(delivered))
    for actor in actors:
        slots = [int(d.split()[2]) for d in delivered if d.startswith(f"{actor} ")]
        missed = sum(
            event.missed
            for event, record in zip(engine.events(), engine.visible("t.events"), strict=True)
            if record.key == actor.encode() and isinstance(event, Fired)
        )
        assert len(slots) + missed == max(slots) + 1
