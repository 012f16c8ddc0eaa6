"""What must hold of the topics before a worker joins the group. Pure: answers of the brokers in,
sentences out, each naming what is wrong and the way out.
"""

from collections.abc import Iterator, Mapping

from tocsin.core.limits import Limits
from tocsin.dataflow import Spread, Topic, Topology
from tocsin.ports import Cluster, TopicState
from tocsin.runtime.names import Names

#: Topic setting that bounds a record, and the broker's default for it.
SIZE = "max.message.bytes"
SIZE_DEFAULT = 1_048_588
#: What a record holds beside payload and headers, at the most: actor, names, our own fields.
RECORD_OVERHEAD = 16 * 1024
#: Topics that carry what was armed.
_CARRIERS = ("events", "state", "deliveries")


def look(cluster: Cluster, topology: Topology, names: Names) -> dict[str, TopicState | None]:
    """Return what the broker says of each topic of the map, by its name in the map."""
    return {topic.name: cluster.topic(names.topic(topic.name)) for topic in topology.topics}


def problems(
    topology: Topology,
    names: Names,
    found: Mapping[str, TopicState | None],
    remembered: Mapping[str, int],
    limits: Limits,
) -> list[str]:
    """Return what keeps a worker from starting; empty when nothing does.

    `remembered`: topic id -> the number of partitions that a worker here saw it with.
    """
    missing = [names.topic(topic.name) for topic in topology.topics if found[topic.name] is None]
    if missing:
        verb = "do" if len(missing) > 1 else "does"
        return [f"{', '.join(missing)} {verb} not exist: run `tocsin topics create`."]
    there = {name: state for name, state in found.items() if state is not None}
    return [
        *_different_counts(topology, names, there),
        *_changed_counts(topology, names, there, remembered),
        *_wrong_settings(topology, names, there),
        *_too_small(names, there, limits),
    ]


def counts(topology: Topology, found: Mapping[str, TopicState | None]) -> dict[str, int]:
    """Return what to remember for the next start: topic id -> number of partitions."""
    states = (found[topic.name] for topic in _owned(topology))
    return {state.id: state.partitions for state in states if state is not None}


def _owned(topology: Topology) -> list[Topic]:
    return [topic for topic in topology.topics if topic.spread is Spread.OWNED]


def _different_counts(
    topology: Topology, names: Names, found: Mapping[str, TopicState]
) -> Iterator[str]:
    owned = {names.topic(topic.name): found[topic.name].partitions for topic in _owned(topology)}
    if len(set(owned.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in owned.items())
        yield (
            f"partition counts differ: {listed}. Partition p of each belongs together, so they "
            "must be equal. A count cannot be lowered: export, create the topics anew under "
            "another prefix, import."
        )


def _changed_counts(
    topology: Topology,
    names: Names,
    found: Mapping[str, TopicState],
    remembered: Mapping[str, int],
) -> Iterator[str]:
    for topic in _owned(topology):
        state = found[topic.name]
        before = remembered.get(state.id, state.partitions)
        if before != state.partitions:
            yield (
                f"{names.topic(topic.name)} has {state.partitions} partitions, and had {before}: "
                "actors would move away from their reminders. The count is fixed once created; "
                "for more partitions export, create topics under another prefix, import."
            )


def _wrong_settings(
    topology: Topology, names: Names, found: Mapping[str, TopicState]
) -> Iterator[str]:
    for topic in topology.topics:
        for setting, wanted in topic.config.items():
            actual = found[topic.name].config.get(setting)
            if actual != wanted:
                full = names.topic(topic.name)
                yield (
                    f"{full} has {setting}={actual}, and the engine relies on {wanted}: "
                    f"kafka-configs.sh --alter --topic {full} --add-config {setting}={wanted}"
                )


def _too_small(names: Names, found: Mapping[str, TopicState], limits: Limits) -> Iterator[str]:
    largest = limits.payload_bytes_max + limits.headers_bytes_max + RECORD_OVERHEAD
    for name in _CARRIERS:
        room = int(found[name].config.get(SIZE, SIZE_DEFAULT)) if name in found else largest
        if room < largest:
            full = names.topic(name)
            yield (
                f"{full} has {SIZE}={room}, and a reminder may take {largest} bytes: raise it, "
                "or lower limits.payload_bytes_max"
            )
