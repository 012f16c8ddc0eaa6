from collections.abc import Mapping

from msgspec.structs import replace

from tocsin.app.topology import TOPOLOGY
from tocsin.core.limits import Limits
from tocsin.ports import TopicState
from tocsin.runtime.checks import SIZE, counts, problems
from tocsin.runtime.names import Names

NAMES = Names("tocsin")


def as_created(partitions: int = 4) -> dict[str, TopicState | None]:
    return {
        topic.name: TopicState(f"id-{topic.name}", partitions, {**topic.defaults, **topic.config})
        for topic in TOPOLOGY.topics
    }


def found_with(name: str, **changes: object) -> dict[str, TopicState | None]:
    found = as_created()
    state = found[name]
    assert state is not None
    found[name] = replace(state, **changes)
    return found


def check(
    found: Mapping[str, TopicState | None],
    remembered: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> list[str]:
    return problems(TOPOLOGY, NAMES, found, remembered or {}, limits or Limits())


def test_topics_as_they_are_created_are_fit() -> None:
    assert check(as_created()) == []


def test_topics_that_do_not_exist_are_named_with_the_command_that_makes_them() -> None:
    found = as_created() | {"state": None, "status": None}
    assert check(found) == ["tocsin.state, tocsin.status do not exist: run `tocsin topics create`."]


def test_different_partition_counts_of_what_belongs_together_are_refused() -> None:
    (problem,) = check(found_with("state", partitions=5))
    assert "tocsin.commands has 4, tocsin.events has 4, tocsin.state has 5" in problem


def test_topics_that_are_partitioned_by_key_may_have_any_count() -> None:
    assert check(found_with("deliveries", partitions=60)) == []


def test_a_count_that_changed_since_the_last_start_is_refused() -> None:
    remembered = counts(TOPOLOGY, as_created(4))
    told = check(as_created(8), remembered)
    assert len(told) == 3
    assert "tocsin.commands has 8 partitions, and had 4" in told[0]


def test_another_topic_of_the_same_name_has_no_count_to_compare_with() -> None:
    assert check(as_created(8), {"another-id": 4}) == []


def test_a_state_topic_that_deletes_is_refused_with_the_command_that_mends_it() -> None:
    config = {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
    (problem,) = check(found_with("state", config=config))
    assert "cleanup.policy=delete" in problem
    assert "--alter --topic tocsin.state --add-config cleanup.policy=compact" in problem


def test_compacted_commands_are_refused() -> None:
    config = {"cleanup.policy": "compact,delete", "message.timestamp.type": "LogAppendTime"}
    assert "cleanup.policy=compact,delete" in check(found_with("commands", config=config))[0]


def test_commands_without_append_time_are_refused() -> None:
    config = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}
    assert "message.timestamp.type=CreateTime" in check(found_with("commands", config=config))[0]


def test_what_the_operator_may_change_is_not_compared() -> None:
    config = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "1",
    }
    assert check(found_with("events", config=config)) == []


def test_a_topic_too_small_for_the_largest_reminder_is_refused() -> None:
    state = as_created()["events"]
    assert state is not None
    (problem,) = check(found_with("events", config={**state.config, SIZE: "200000"}))
    assert "tocsin.events has max.message.bytes=200000" in problem
    small = Limits(payload_bytes_max=100_000)
    assert check(found_with("events", config={**state.config, SIZE: "200000"}), limits=small) == []
