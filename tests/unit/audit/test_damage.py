"""Each kind of damage is found, and named for what it is."""

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from tests.unit.audit.harness import Engine, HeldDeliveries, audit, kinds, renumbered
from tocsin.audit.deliveries import LOOKAHEAD_MAX
from tocsin.audit.findings import Kind
from tocsin.audit.verify import Report
from tocsin.codec.events import Stamp, decode_event, encode_event
from tocsin.codec.keys import PROGRESS, SPEC, STEP_KEY, record_key
from tocsin.codec.state import (
    decode_reminder,
    decode_step,
    encode_progress,
    encode_spec,
    encode_step,
)
from tocsin.core.events import (
    Armed,
    Cancelled,
    Completed,
    Event,
    Expired,
    Fired,
    Kept,
    Moved,
    NothingResumed,
    Paused,
    Resumed,
    Skipped,
    Unchanged,
)
from tocsin.core.values import EpochMs, Offset, Version
from tocsin.dataflow import Record


@pytest.fixture
def engine() -> Engine:
    """Six steps: one-shot and interval armed and fired, one moved, one cancelled, one by hand."""
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "once", "after": 100, "payload_text": "hello"}})
    engine.send("a", {"arm": {"reminder": "tick", "after": 50, "every": 100}})
    engine.send("b", {"arm": {"reminder": "gone", "after": 1_000}})
    engine.send("b", {"arm": {"reminder": "later", "after": 60_000}})
    engine.step()
    engine.clock.advance(60)
    engine.step()
    engine.clock.advance(100)
    engine.step()
    engine.send("b", {"cancel": {"reminder": "gone"}})
    engine.send("b", {"move": {"reminder": "later", "after": 90_000}})
    engine.step()
    engine.clock.advance(350)
    engine.step()
    engine.send("a", {"fire": {"reminder": "tick"}})
    engine.step()
    assert engine.partition.step == 6
    assert audit(engine).clean
    return engine


def at(engine: Engine, wanted: Callable[[Event], bool]) -> int:
    """Return the place of the first event that is `wanted`."""
    return next(i for i, r in enumerate(engine.events) if wanted(decode_event(r.value or b"")[0]))


def fire_of(name: str, occurrence: int = 0) -> Callable[[Event], bool]:
    def wanted(event: Event) -> bool:
        return isinstance(event, Fired) and (event.reminder, event.occurrence) == (name, occurrence)

    return wanted


def rewrite(record: Record, event: Event | None = None, **stamped: int | None) -> Record:
    """Return the record of another event, or with another stamp."""
    was, stamp = decode_event(record.value or b"")
    stamp = Stamp(**{**msgspec.structs.asdict(stamp), **stamped})
    return replace(record, value=encode_event(event or was, stamp))


def fired(record: Record) -> Fired:
    event, _ = decode_event(record.value or b"")
    assert isinstance(event, Fired)
    return event


def changed_fire(engine: Engine, name: str, occurrence: int, **fields: int | None) -> Report:
    """Audit after one fire was told otherwise."""
    i = at(engine, fire_of(name, occurrence))
    event = replace(fired(engine.events[i]), **fields)
    engine.events[i] = rewrite(engine.events[i], event)
    return audit(engine, deliveries=None)


def state_at(engine: Engine, key: bytes) -> int:
    return max(i for i, record in enumerate(engine.state) if record.key == key)


# --- events


@pytest.mark.parametrize(("name", "occurrence"), [("once", 0), ("tick", 0), ("tick", 1)])
def test_a_fire_told_twice_is_a_duplicate(engine: Engine, name: str, occurrence: int) -> None:
    i = at(engine, fire_of(name, occurrence))
    engine.events.insert(i + 1, engine.events[i])
    report = audit(engine, events=renumbered(engine.events))
    assert kinds(report) == {Kind.DUPLICATE_FIRE}
    (finding,) = report.findings
    assert (finding.actor, finding.reminder, finding.offset) == ("a", name, i + 1)


def test_a_fire_and_its_delivery_written_twice_are_both_found(engine: Engine) -> None:
    i = at(engine, fire_of("once"))
    engine.events.insert(i + 1, engine.events[i])
    twice = renumbered([*engine.deliveries(), *engine.deliveries()[-1:]])
    engine.deliveries()[:] = twice
    report = audit(engine, events=renumbered(engine.events))
    assert kinds(report) == {Kind.DUPLICATE_FIRE, Kind.DELIVERY_DUPLICATE}


def test_a_missing_fire_of_an_interval_leaves_a_hole_in_its_tiles(engine: Engine) -> None:
    del engine.events[at(engine, fire_of("tick", 1))]
    report = audit(engine)
    assert kinds(report) == {Kind.TILING, Kind.DELIVERY_EXTRA}


def test_a_missing_fire_of_a_one_shot_leaves_it_armed(engine: Engine) -> None:
    del engine.events[at(engine, fire_of("once"))]
    assert kinds(audit(engine)) == {Kind.STATE_MISSING, Kind.DELIVERY_EXTRA}


def test_a_missing_arming_makes_its_end_one_of_nothing(engine: Engine) -> None:
    i = at(engine, lambda e: isinstance(e, Armed) and e.spec.reminder == "gone")
    del engine.events[i]
    assert kinds(audit(engine)) == {Kind.UNARMED, Kind.UNANSWERED}


def test_a_missing_step_is_a_gap(engine: Engine) -> None:
    engine.events[:] = [r for r in engine.events if decode_event(r.value or b"")[1].step != 3]
    assert Kind.STEP_GAP in kinds(audit(engine))


def test_a_missing_last_step_is_told_by_the_step_record(engine: Engine) -> None:
    engine.events[:] = [r for r in engine.events if decode_event(r.value or b"")[1].step != 6]
    report = audit(engine, commands=None, deliveries=None)
    assert kinds(report) == {Kind.STEP_RECORD}


def test_a_missing_beginning_is_a_gap_unless_retention_took_it(engine: Engine) -> None:
    first = engine.events[4:]
    assert Kind.STEP_GAP in kinds(audit(engine, events=first))
    assert audit(engine, events=first, events_start=first[0].offset).clean


def test_a_step_number_that_jumps_is_a_gap(engine: Engine) -> None:
    engine.events[:] = [
        rewrite(r, step=decode_event(r.value or b"")[1].step + 1)
        if decode_event(r.value or b"")[1].step > 3
        else r
        for r in engine.events
    ]
    assert Kind.STEP_GAP in kinds(audit(engine))


@pytest.mark.parametrize(("name", "occurrence"), [("tick", 1), ("once", 0)])
def test_a_fire_that_came_after_its_neighbour_is_out_of_order(
    engine: Engine, name: str, occurrence: int
) -> None:
    i = at(engine, fire_of(name, occurrence))  # within a step, and between two
    events = engine.events
    events[i], events[i - 1] = events[i - 1], events[i]
    assert Kind.ORDER in kinds(audit(engine, events=renumbered(events)))


def test_deliveries_in_another_order_than_their_events_are_found(engine: Engine) -> None:
    there = engine.deliveries()
    there[0], there[1] = there[1], there[0]
    engine.deliveries()[:] = renumbered(there)
    assert kinds(audit(engine)) == {Kind.ORDER}


def test_records_out_of_offset_order_are_found(engine: Engine) -> None:
    events = engine.events
    events[1], events[2] = events[2], events[1]
    assert Kind.ORDER in kinds(audit(engine))


def test_swapped_answers_are_out_of_order(engine: Engine) -> None:
    events = engine.events
    events[1], events[2] = events[2], events[1]
    report = audit(engine, events=renumbered(events))
    assert kinds(report) >= {Kind.ANSWER}


def test_a_command_answered_twice_is_found(engine: Engine) -> None:
    i = at(engine, lambda e: isinstance(e, Cancelled))
    engine.events[i + 1] = rewrite(
        engine.events[i + 1], command=decode_event(engine.events[i].value or b"")[1].command
    )
    assert Kind.ANSWER in kinds(audit(engine))


def test_a_command_without_an_answer_is_found(engine: Engine) -> None:
    command = engine.commands[0]
    engine.commands.append(replace(command, offset=Offset(99)))
    engine.commands.insert(0, replace(command, offset=Offset(-1)))
    report = audit(engine)
    assert kinds(report) == {Kind.UNANSWERED}
    assert report.findings[0].offset == -1


def test_an_early_fire_is_found(engine: Engine) -> None:
    due = fired(engine.events[at(engine, fire_of("once"))]).due
    assert kinds(changed_fire(engine, "once", 0, fired=due - 1)) == {Kind.EARLY}


def test_a_fire_off_the_grid_is_found(engine: Engine) -> None:
    due = fired(engine.events[at(engine, fire_of("tick", 1))]).due
    report = changed_fire(engine, "tick", 1, due=due - 1, next_due=due + 99)
    assert Kind.GRID in kinds(report)


def test_a_next_due_that_does_not_follow_is_found(engine: Engine) -> None:
    next_due = fired(engine.events[at(engine, fire_of("tick", 0))]).next_due
    assert next_due is not None
    report = changed_fire(engine, "tick", 0, next_due=next_due + 1)
    assert Kind.NEXT_OCCURRENCE in kinds(report)


def test_overlapping_occurrences_are_found(engine: Engine) -> None:
    i = at(engine, lambda e: isinstance(e, Fired) and e.missed > 0)
    event = fired(engine.events[i])
    report = changed_fire(engine, "tick", event.occurrence, missed=event.missed + 1)
    assert kinds(report) >= {Kind.TILING}


def test_a_fire_that_names_another_next_command_is_found(engine: Engine) -> None:
    assert kinds(changed_fire(engine, "tick", 0, next_command=9)) >= {Kind.NEXT_COMMAND}


def test_a_fire_after_its_cancel_is_found(engine: Engine) -> None:
    i = at(engine, lambda e: isinstance(e, Cancelled))
    cancelled, _ = decode_event(engine.events[i].value or b"")
    assert isinstance(cancelled, Cancelled)
    like = at(engine, lambda e: isinstance(e, Fired) and e.missed > 0)
    event = replace(
        fired(engine.events[like]),
        reminder="gone",
        version=cancelled.version,
        occurrence=0,
        missed=0,
        missed_due=None,
        due=EpochMs(fired(engine.events[like]).fired - 1),
        next_occurrence=None,
        next_due=None,
    )
    record = replace(rewrite(engine.events[like], event), key=b"b")
    engine.events.insert(like, record)
    report = audit(engine, events=renumbered(engine.events))
    assert kinds(report) == {Kind.FIRE_AFTER_END}
    assert "was cancelled before" in report.findings[0].text


def test_a_fire_of_a_moved_version_is_found(engine: Engine) -> None:
    i = at(engine, lambda e: isinstance(e, Moved))
    moved, _ = decode_event(engine.events[i].value or b"")
    assert isinstance(moved, Moved)
    like = at(engine, lambda e: isinstance(e, Fired) and e.missed > 0)
    event = replace(fired(engine.events[like]), reminder="later", version=moved.previous.version)
    record = replace(rewrite(engine.events[like], event), key=b"b")
    engine.events.insert(like, record)
    report = audit(engine, events=renumbered(engine.events))
    assert kinds(report) == {Kind.FIRE_AFTER_END}


def test_a_fire_of_what_never_was_is_found(engine: Engine) -> None:
    assert Kind.UNARMED in kinds(changed_fire(engine, "once", 0, version=77))


def test_a_version_that_is_not_its_command_is_found(engine: Engine) -> None:
    event, _ = decode_event(engine.events[0].value or b"")
    assert isinstance(event, Armed)
    event = replace(event, spec=replace(event.spec, version=Version(7)))
    engine.events[0] = rewrite(engine.events[0], event)
    assert Kind.VERSION in kinds(audit(engine))


def test_engine_time_that_goes_back_is_found(engine: Engine) -> None:
    i = at(engine, fire_of("tick", 1))
    _, stamp = decode_event(engine.events[i].value or b"")
    engine.events[i] = rewrite(engine.events[i], engine_time=stamp.engine_time - 1_000)
    assert kinds(audit(engine)) == {Kind.ENGINE_TIME}


def test_bytes_that_are_no_event_are_found(engine: Engine) -> None:
    engine.events[3] = replace(engine.events[3], value=b"\xc3\x01nonsense")
    assert Kind.UNDECODABLE in kinds(audit(engine))


# --- state


def test_an_altered_moving_part_is_found(engine: Engine) -> None:
    spec = engine.state[state_at(engine, record_key("a", SPEC, "tick"))].value
    i = state_at(engine, record_key("a", PROGRESS, "tick"))
    stored = decode_reminder(spec or b"", engine.state[i].value)
    altered = encode_progress(replace(stored, due=EpochMs(stored.due + 100)), 5)
    engine.state[i] = replace(engine.state[i], value=altered)
    report = audit(engine)
    assert kinds(report) == {Kind.STATE_DIFFERS}
    assert report.findings[0].reminder == "tick"


def test_an_altered_payload_in_the_state_is_found(engine: Engine) -> None:
    i = state_at(engine, record_key("b", SPEC, "later"))
    stored = decode_reminder(engine.state[i].value or b"", None)
    altered = replace(stored, spec=replace(stored.spec, payload=b"other"))
    engine.state[i] = replace(engine.state[i], value=encode_spec(altered, 4))
    assert kinds(audit(engine)) == {Kind.STATE_DIFFERS}


def test_a_due_key_that_is_not_that_of_the_due_is_found(engine: Engine) -> None:
    i = state_at(engine, record_key("b", SPEC, "later"))
    value = engine.state[i].value or b""
    engine.state[i] = replace(engine.state[i], value=value[:17] + b"\x01" + value[18:])
    assert kinds(audit(engine)) == {Kind.STATE_DIFFERS}


def test_a_state_record_of_another_step_is_found(engine: Engine) -> None:
    i = state_at(engine, record_key("b", SPEC, "later"))
    stored = decode_reminder(engine.state[i].value or b"", None)
    engine.state[i] = replace(engine.state[i], value=encode_spec(stored, 3))
    assert kinds(audit(engine)) == {Kind.STATE_STEP}


def test_a_reminder_that_the_state_lacks_is_found(engine: Engine) -> None:
    state = [r for r in engine.state if r.key != record_key("b", SPEC, "later")]
    assert kinds(audit(engine, state=state)) == {Kind.STATE_MISSING}


def test_a_tombstone_that_was_never_written_is_found(engine: Engine) -> None:
    del engine.state[state_at(engine, record_key("b", SPEC, "gone"))]
    assert kinds(audit(engine)) == {Kind.STATE_EXTRA}


def test_a_moving_part_without_a_reminder_is_found(engine: Engine) -> None:
    i = state_at(engine, record_key("a", PROGRESS, "tick"))
    stray = replace(engine.state[i], key=record_key("z", PROGRESS, "tick"))
    assert kinds(audit(engine, state=[*engine.state, stray])) == {Kind.STATE_EXTRA}


def test_a_state_without_a_step_record_is_found(engine: Engine) -> None:
    state = [r for r in engine.state if r.key != STEP_KEY]
    assert kinds(audit(engine, state=state)) == {Kind.STEP_RECORD}


def test_a_step_record_that_names_another_command_is_found(engine: Engine) -> None:
    i = state_at(engine, STEP_KEY)
    step = decode_step(engine.state[i].value or b"")
    altered = encode_step(replace(step, next_command=Offset(2)))
    engine.state[i] = replace(engine.state[i], value=altered)
    assert kinds(audit(engine)) == {Kind.STEP_RECORD}


def test_a_recreated_topic_is_found(engine: Engine) -> None:
    report = audit(engine, topic_ids=("commands-id", "another", "state-id"))
    assert kinds(report) == {Kind.STEP_RECORD}


# --- deliveries


def test_a_missing_delivery_is_found(engine: Engine) -> None:
    del engine.deliveries()[1]
    report = audit(engine)
    assert kinds(report) == {Kind.DELIVERY_MISSING}
    assert report.findings[0].actor == "a"


def test_a_delivery_written_twice_is_found(engine: Engine) -> None:
    there = engine.deliveries()
    there.insert(2, there[0])
    engine.deliveries()[:] = renumbered(there)
    assert kinds(audit(engine)) == {Kind.DELIVERY_DUPLICATE}


def test_a_delivery_that_nobody_decided_is_found(engine: Engine) -> None:
    first = engine.deliveries()[0]
    headers = tuple((n, (v or b"").replace(b'"id":"0:', b'"id":"0:9')) for n, v in first.headers)
    engine.deliveries().insert(1, replace(first, headers=headers))
    assert kinds(audit(engine)) == {Kind.DELIVERY_EXTRA}


def test_a_stray_record_among_the_deliveries_is_found(engine: Engine) -> None:
    first = engine.deliveries()[0]
    engine.deliveries().insert(1, replace(first, headers=()))
    assert kinds(audit(engine)) == {Kind.DELIVERY_EXTRA}


@pytest.mark.parametrize(
    "damage", [{"value": b"other"}, {"timestamp": EpochMs(1)}, {"headers": "altered"}]
)
def test_an_altered_delivery_is_found(engine: Engine, damage: dict[str, object]) -> None:
    first = engine.deliveries()[0]
    if "headers" in damage:
        damage = {"headers": (("x", b"y"), *first.headers)}
    engine.deliveries()[0] = replace(first, **damage)
    assert kinds(audit(engine)) == {Kind.DELIVERY_DIFFERS}


def test_deliveries_that_retention_took_are_not_missed(engine: Engine) -> None:
    held = HeldDeliveries(engine.logs)
    held.starts["tocsin.deliveries", 0] = engine.deliveries()[2].offset
    report = audit(engine, deliveries=held)
    assert report.clean
    assert report.unproved
    assert report.deliveries == len(engine.deliveries()) - 2


@pytest.fixture(scope="module")
def many() -> Engine:
    """More fires than an audit holds in memory."""
    engine = Engine()
    for i in range(2 * LOOKAHEAD_MAX + 500):
        engine.send(f"actor/{i}", {"arm": {"reminder": "pay"}})
    engine.settle()
    return engine


@pytest.mark.parametrize("first", [0, 700])
def test_more_missing_deliveries_than_are_held_ahead_are_counted(many: Engine, first: int) -> None:
    held = HeldDeliveries(many.logs)
    there = many.deliveries()
    lost = LOOKAHEAD_MAX + 200
    held.records = {(held.default, 0): [*there[:first], *there[first + lost :]]}
    report = audit(many, deliveries=held)
    assert report.counts == {"delivery_missing": lost}
    assert report.deliveries == report.fires - lost


def test_more_strange_deliveries_than_are_held_ahead_are_counted(many: Engine) -> None:
    held = HeldDeliveries(many.logs)
    there = many.deliveries()
    strange = [
        replace(
            record,
            headers=tuple(
                (n, (v or b"").replace(b'"id":"0:', b'"id":"0:90000')) for n, v in record.headers
            ),
        )
        for record in there[: LOOKAHEAD_MAX + 200]
    ]
    held.records = {(held.default, 0): renumbered([*strange, *there])}
    report = audit(many, deliveries=held)
    assert report.counts == {"delivery_extra": len(strange)}
    assert report.deliveries == report.fires


# --- the report


def test_findings_beyond_the_bound_are_counted(engine: Engine) -> None:
    engine.deliveries().clear()
    report = audit(engine, findings_max=2)
    assert len(report.findings) == 2
    assert report.counts == {"delivery_missing": report.fires}


# --- pauses and conditions


@pytest.fixture
def rested() -> Engine:
    """An interval paused and resumed, and fired since; a condition that did not hold."""
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "tick", "after": 50, "every": 100}})
    engine.send("a", {"pause": {"reminder": "tick"}})
    engine.step()
    engine.clock.advance(500)
    engine.send("a", {"resume": {"reminder": "tick"}})
    engine.send("a", {"arm": {"reminder": "tick", "after": 5_000, "if_earlier": True}})
    engine.settle()
    assert audit(engine).clean
    return engine


def without(engine: Engine, kind: type[Event]) -> Report:
    """Audit without the first event of this kind."""
    i = at(engine, lambda event: isinstance(event, kind))
    return audit(engine, events=engine.events[:i] + engine.events[i + 1 :])


def instead(engine: Engine, kind: type[Event], event: Event) -> Report:
    """Audit with `event` in the place of the first of this kind."""
    i = at(engine, lambda event: isinstance(event, kind))
    changed = rewrite(engine.events[i], event)
    return audit(engine, events=[*engine.events[:i], changed, *engine.events[i + 1 :]])


def test_a_fire_of_what_is_paused_is_found(rested: Engine) -> None:
    assert Kind.FIRE_PAUSED in kinds(without(rested, Resumed))


def test_a_resume_of_what_is_awake_is_found(rested: Engine) -> None:
    assert Kind.CONTRADICTION in kinds(without(rested, Paused))


def test_a_resume_that_found_nothing_though_something_is_paused_is_found(rested: Engine) -> None:
    for name in ("tick", None):
        report = instead(rested, Resumed, NothingResumed(reminder=name))
        assert Kind.CONTRADICTION in kinds(report)


def test_a_condition_held_against_something_else_is_found(rested: Engine) -> None:
    kept = Kept(
        reminder="tick",
        version=Version(0),
        occurrence=9,
        due=EpochMs(0),
        reason=Unchanged.NOT_EARLIER,
    )
    assert Kind.CONTRADICTION in kinds(instead(rested, Kept, kept))


def test_a_state_that_forgot_a_pause_is_found() -> None:
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "once", "after": 60_000}})
    engine.step()
    awake = next(r for r in engine.state if r.key == record_key("a", SPEC, "once"))
    engine.send("a", {"pause": {"reminder": "once"}})
    engine.step()
    assert audit(engine).clean
    forgetful = renumbered([*engine.state, awake])
    assert Kind.STATE_DIFFERS in kinds(audit(engine, state=forgetful))


# --- slots that do not go out


@pytest.fixture
def late() -> Engine:
    """A schedule that skips, one whose slots expire and which completes, one with jitter."""
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "skips", "every": 100, "missed": "skip"}})
    engine.send("a", {"arm": {"reminder": "ends", "every": 100, "ttl": 50, "occurrences": 4}})
    engine.send("a", {"arm": {"reminder": "shakes", "every": 1_000, "jitter": 900}})
    engine.step()
    engine.clock.advance(390)
    engine.settle()
    engine.clock.advance(3_000)
    engine.settle()
    assert audit(engine).clean
    return engine


def first_of(engine: Engine, kind: type[Event]) -> Event:
    i = at(engine, lambda event: isinstance(event, kind))
    return decode_event(engine.events[i].value or b"")[0]


@pytest.mark.parametrize("kind", [Skipped, Expired])
def test_slots_that_are_in_no_event_are_found(late: Engine, kind: type[Event]) -> None:
    assert Kind.TILING in kinds(without(late, kind))


@pytest.mark.parametrize("kind", [Skipped, Expired])
@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"first": 1}, Kind.TILING),
        ({"last": -1}, Kind.TILING),
        ({"first_due": EpochMs(5)}, Kind.TILING),
        ({"last_due": EpochMs(5)}, Kind.GRID),
        ({"next_occurrence": 77}, Kind.NEXT_OCCURRENCE),
        ({"next_wake": EpochMs(5)}, Kind.GRID),
        ({"version": Version(0)}, Kind.TILING),
    ],
)
def test_slots_that_are_told_wrong_are_found(
    late: Engine, kind: type[Event], fields: dict[str, int], found: Kind
) -> None:
    event = first_of(late, kind)
    if kind is Skipped and "version" in fields:
        fields = {"version": Version(1)}
    assert found in kinds(instead(late, kind, replace(event, **fields)))


def test_a_schedule_that_completed_though_it_goes_on_is_found(late: Engine) -> None:
    event = first_of(late, Completed)
    assert isinstance(event, Completed)
    wrong = replace(event, reminder="skips", version=Version(0))
    assert Kind.CONTRADICTION in kinds(instead(late, Completed, wrong))


def test_a_jittered_fire_before_it_woke_is_found(late: Engine) -> None:
    i = at(late, lambda event: isinstance(event, Armed) and event.spec.reminder == "shakes")
    armed, _ = decode_event(late.events[i].value or b"")
    assert isinstance(armed, Armed)
    changed = rewrite(late.events[i], replace(armed, wake=EpochMs(armed.spec.anchor + 10**7)))
    report = audit(late, events=[*late.events[:i], changed, *late.events[i + 1 :]])
    assert Kind.EARLY in kinds(report)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"due": EpochMs(5)}, Kind.GRID),
        ({"next_due": EpochMs(5)}, Kind.NEXT_OCCURRENCE),
        ({"next_due": None, "next_occurrence": None}, Kind.NEXT_OCCURRENCE),
    ],
)
def test_a_fire_off_its_calendar_is_found(fields: dict[str, int | None], found: Kind) -> None:
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "tick", "cron": "* * * * * *"}})
    engine.step()
    for _ in range(3):
        engine.clock.advance(1_000)
        engine.settle()
    assert audit(engine).clean
    assert found in kinds(changed_fire(engine, "tick", 1, **fields))


def test_a_slot_that_an_older_tz_database_computed_is_taken_as_told() -> None:
    engine = Engine()
    engine.send("a", {"arm": {"reminder": "tick", "cron": "* * * * * *", "occurrences": 1}})
    engine.step()
    engine.clock.advance(1_500)
    engine.settle()
    i = at(engine, fire_of("tick"))
    old = replace(fired(engine.events[i]), tz="1999a")
    changed = [*engine.events[:i], rewrite(engine.events[i], old), *engine.events[i + 1 :]]
    assert audit(engine, events=changed).clean
