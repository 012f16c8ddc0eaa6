"""Whatever an honest engine writes is found clean."""

from typing import Any

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.audit.harness import Engine, HeldDeliveries, audit
from tocsin.adapters.memory.clock import START_MS
from tocsin.core.values import EpochMs, Offset
from tocsin.ports import Aborted
from tocsin.runtime.rejections import REJECTION_MS

ACTORS = st.sampled_from(["a", "a\0b", "order/1"])
NAMES = st.sampled_from(["pay", "pay:1", "remind"])
TIMES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({}),
    st.fixed_dictionaries({"after": st.sampled_from([0, 50, 400, 5_000])}),
    st.fixed_dictionaries({"at": st.sampled_from([START_MS - 5, START_MS + 700])}),
)
PERIODS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({}),
    st.fixed_dictionaries({"every": st.sampled_from([100, 150, 1_000])}),
    st.fixed_dictionaries({"cron": st.sampled_from(["* * * * * *", "*/2 * * * * *"])}),
)
EXTRAS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"to": "other"},
        {"if_absent": True},
        {"if_version": 3},
        {"if_earlier": True},
        {"if_changed": True},
        {"payload": {"x": 1}},
    ]
)
OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "missed": st.sampled_from(["latest", "all", "skip"]),
        "catch_up": st.sampled_from([100, 1_000]),
        "ttl": st.sampled_from([200, 1_000]),
        "until": st.sampled_from([START_MS + 500, START_MS + 5_000]),
        "occurrences": st.sampled_from([1, 3, 10]),
        "jitter": st.sampled_from([0, 40, 150]),
    },
)


@st.composite
def commands(draw: st.DrawFn) -> bytes | dict[str, Any]:
    kind = draw(
        st.sampled_from(
            ["arm", "arm", "arm", "move", "cancel", "fire", "pause", "resume", "destroy", "bad"]
        )
    )
    if kind == "bad":
        return b"\xff no command"
    if kind == "destroy":
        return {"destroy": {}}
    body: dict[str, Any] = {"reminder": draw(NAMES)}
    if kind in ("arm", "move"):
        body |= draw(TIMES) | draw(PERIODS)
    if kind == "arm":
        body |= draw(EXTRAS) | draw(OPTIONS)
    if kind == "cancel" and draw(st.booleans()):
        body = draw(st.sampled_from([{"all": True}, {"operation": "pay"}, {"prefix": "pay:"}]))
    if kind in ("pause", "resume") and draw(st.booleans()):
        body = {"all": True, "note": "so"}
    return {kind: body}


ACTIONS = st.one_of(
    st.tuples(st.just("send"), ACTORS | st.just(b"\xff"), commands()),
    st.tuples(st.just("send"), ACTORS, commands()),
    st.tuples(st.just("advance"), st.sampled_from([1, 60, 120, 600, 3_000]), st.none()),
    st.tuples(st.just("step"), st.none(), st.none()),
    st.tuples(st.just("live"), st.lists(st.sampled_from([60, 250, 900]), max_size=4), st.none()),
    st.tuples(st.just("back"), st.just(500), st.none()),
    st.tuples(st.just("restart"), st.none(), st.none()),
    st.tuples(st.just("skip"), st.none(), st.none()),
    st.tuples(st.just("reject"), st.none(), st.none()),
)
HISTORIES = st.lists(ACTIONS, min_size=8, max_size=60)


def lived(history: list[tuple[str, Any, Any]], engine: Engine) -> Engine:
    for action, subject, command in history:
        match action:
            case "send":
                engine.send(subject, command)
            case "advance":
                engine.clock.advance(subject)
            case "live":
                for passing in subject:
                    engine.clock.advance(passing)
                    engine.step()
            case "back":
                engine.clock.jump(EpochMs(engine.clock.wall_ms() - subject))
            case "restart":
                engine.restart()
            case "skip":
                engine.step()
                engine.command_offset += 2  # an aborted command and its control record
            case "reject":
                gone = Aborted("UNKNOWN_TOPIC_OR_PART", permanent=True, topics=("other",))
                for_300_ms = EpochMs(engine.clock.wall_ms() + 300 - REJECTION_MS)
                engine.stepper._rejections.learn(gone, for_300_ms)
            case _:
                engine.step()
    engine.step()
    return engine


@given(HISTORIES)
@settings(deadline=None, max_examples=200)
def test_the_log_of_an_honest_engine_is_clean(history: list[tuple[str, Any, Any]]) -> None:
    engine = lived(history, Engine())
    report = audit(engine)
    assert report.findings == ()
    assert report.unproved == ()
    assert report.last_step == engine.partition.step


@given(HISTORIES, st.data())
@settings(deadline=None, max_examples=100)
def test_a_log_whose_state_was_compacted_is_clean(
    history: list[tuple[str, Any, Any]], data: st.DataObject
) -> None:
    engine = lived(history, Engine())
    newest = {record.key: record.offset for record in engine.state}
    end = data.draw(st.integers(0, len(engine.state)))
    compacted = [record for record in engine.state[:end] if newest[record.key] == record.offset]
    assert audit(engine, state=compacted + engine.state[end:]).findings == ()


@given(HISTORIES, HISTORIES)
@settings(deadline=None, max_examples=100)
def test_what_comes_after_the_state_was_read_is_left_out(
    history: list[tuple[str, Any, Any]], later: list[tuple[str, Any, Any]]
) -> None:
    engine = lived(history, Engine())
    assume(engine.partition.step)
    state = list(engine.state)
    settled = len(engine.deliveries()) and engine.deliveries()[-1].offset + 1
    others = len(engine.deliveries("other")) and engine.deliveries("other")[-1].offset + 1
    lived(later, engine)
    deliveries = HeldDeliveries(engine.logs, settled=min(settled, others))
    report = audit(engine, state=state, deliveries=deliveries)
    assert report.findings == ()


@given(HISTORIES, st.data())
@settings(deadline=None, max_examples=300)
def test_a_log_that_retention_cut_is_clean_and_says_what_it_cannot_prove(
    history: list[tuple[str, Any, Any]], data: st.DataObject
) -> None:
    engine = lived(history, Engine())
    count = len(engine.events)
    first = data.draw(st.integers(0, count))
    start = engine.events[first].offset if first < count else 10_000
    deliveries = HeldDeliveries(engine.logs)
    for topic in deliveries.targets:
        there = engine.deliveries(topic)
        at = data.draw(st.integers(0, len(there)))
        deliveries.starts[topic, 0] = Offset(there[at].offset if at < len(there) else 10_000)
    report = audit(engine, events=engine.events[first:], events_start=start, deliveries=deliveries)
    assert report.findings == ()
    assert report.cut == (start > 0)
    assert bool(report.unproved) >= report.cut


@given(HISTORIES)
@settings(deadline=None, max_examples=50)
def test_deliveries_in_several_partitions_are_found_as_well(
    history: list[tuple[str, Any, Any]],
) -> None:
    engine = lived(history, Engine(delivery_partitions=3))
    assert audit(engine).findings == ()


def test_a_partition_nobody_wrote_to_is_clean() -> None:
    report = audit(Engine())
    assert (report.clean, report.first_step, report.last_step) == (True, 0, 0)


def test_a_report_is_json() -> None:
    engine = lived([("send", "a", {"arm": {"reminder": "pay"}})], Engine())
    assert b'"live":0' in msgspec.json.encode(audit(engine))
