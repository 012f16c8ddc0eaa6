"""A catch-up on the loop: in order, in batches, and commands have their turn in between."""

from tests.unit.audit.harness import Engine, audit
from tocsin.codec.deliveries import read_delivery
from tocsin.core.missed import FIRES_PER_LOOK_MAX


def delivered(engine: Engine) -> list[tuple[str, int | None]]:
    found = [read_delivery(r.headers, r.key, r.value) for r in engine.deliveries()]
    return [(one.reminder, one.occurrence) for one in found]


def behind(slots: int, **options: object) -> Engine:
    """Return an engine that was down while so many slots of `tick` went by."""
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "tick", "every": 100, **options}})
    engine.step()
    engine.clock.advance(100 * slots + 50)
    return engine


def test_each_missed_slot_is_a_delivery_of_its_own_in_order() -> None:
    engine = behind(250, missed="all")
    engine.settle()
    assert delivered(engine) == [("tick", k) for k in range(250)]
    assert audit(engine).clean


def test_a_cancel_gets_in_between_the_batches_of_a_catch_up() -> None:
    engine = behind(250, missed="all")
    engine.step()
    engine.send("a", {"cancel": {"reminder": "tick"}})
    engine.settle()
    assert 0 < len(delivered(engine)) <= FIRES_PER_LOOK_MAX
    assert audit(engine).clean


def test_a_catch_up_goes_on_after_a_restart_where_it_was() -> None:
    engine = behind(250, missed="all")
    engine.step()
    engine.restart()
    engine.settle()
    assert delivered(engine) == [("tick", k) for k in range(250)]


def test_repeated_restarts_do_not_replay_a_pile_of_missed_slots() -> None:
    engine = behind(250)
    for _ in range(5):
        engine.restart()
        engine.settle()
    assert delivered(engine) == [("tick", 249)]


def test_a_step_stays_within_its_decisions_whatever_one_look_brings() -> None:
    engine = Engine()  # 40 decisions a step
    for number in range(5):
        engine.send("a", {"arm": {"reminder": f"tick:{number}", "every": 100, "missed": "all"}})
    engine.settle()
    engine.clock.advance(100 * 30 + 50)
    before = engine.partition.step
    engine.settle()
    assert engine.partition.step - before >= 3
    assert sorted(delivered(engine)) == sorted(
        (f"tick:{number}", k) for number in range(5) for k in range(30)
    )
    assert audit(engine).clean
