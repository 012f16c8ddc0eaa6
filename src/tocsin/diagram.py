"""The map as text: Mermaid for docs/topology.md, and the page around it. Pure."""

from collections.abc import Iterable, Sequence

from tocsin.dataflow import Spread, Store, Topic, Topology

_STEP = (
    "What a processor writes to its topics in one step is one transaction, together with the"
    " offsets of what it read. A worker owns partition p of all topics marked *owned*."
)
_SETTINGS = (
    "Those the engine relies on are checked at start. The others are what a topic is created with,"
    " and the operator's to change."
)


def mermaid(topology: Topology, prefix: str = "tocsin") -> str:
    """Return the map as a Mermaid flowchart; ends with a line break.

    Topics are drums, processors boxes, stores open boxes; services stand outside.
    """
    names = {topic.name: topic for topic in topology.topics}
    lines = ["flowchart LR"]
    lines.append('  services(["services"])')
    lines += [f'  {_id(topic.name)}[("{prefix}.{topic.name}")]' for topic in topology.topics]
    lines += [f'  {_id(store.name)}[/"{store.name}"\\]' for store in topology.stores]
    lines += [f'  {_id(box.name)}["{box.name}"]' for box in topology.processors]
    lines += [f"  services --> {_id(name)}" for name in _asked(topology)]
    for box in topology.processors:
        lines.append(f"  {_id(box.source)} --> {_id(box.name)}")
        lines += [f"  {_id(box.name)} --> {_id(target)}" for target in box.writes]
    for store in topology.stores:
        assert store.changelog in names, "a store has its changelog among the topics"
        lines.append(f"  {_id(store.changelog)} -. cached in .-> {_id(store.name)}")
    if "deliveries" in names:
        lines.append(f"  {_id('deliveries')} --> services")
    return "\n".join(lines) + "\n"


def page(topology: Topology, prefix: str = "tocsin") -> str:
    """Return docs/topology.md."""
    return "\n".join(
        (
            "# Topology",
            "",
            "<!-- Made from topology.py by `tocsin topology --page`; a test compares. -->",
            "",
            _STEP,
            "",
            "```mermaid",
            mermaid(topology, prefix).rstrip(),
            "```",
            "",
            "## Topics",
            "",
            *_table(
                ("topic", "key", "value", "partitions", "what it is for"),
                (
                    (f"`{prefix}.{t.name}`", t.key, t.value, _spread(t), t.doc)
                    for t in topology.topics
                ),
            ),
            "",
            "## Settings of the topics",
            "",
            _SETTINGS,
            "",
            *_table(
                ("topic", "setting", "value", "relied on"),
                (
                    (f"`{prefix}.{topic.name}`", f"`{name}`", f"`{value}`", relied)
                    for topic in topology.topics
                    for settings, relied in ((topic.config, "yes"), (topic.defaults, "no"))
                    for name, value in settings.items()
                ),
            ),
            "",
            "## Processors",
            "",
            *_table(
                ("processor", "called for each", "writes to", "what it does"),
                (
                    (
                        f"`{box.name}`",
                        _source(topology, box.source),
                        ", ".join(f"`{name}`" for name in box.writes),
                        box.doc,
                    )
                    for box in topology.processors
                ),
            ),
            "",
            "## Stores",
            "",
            *_table(
                ("store", "cache of", "what it holds"),
                ((f"`{s.name}`", f"`{prefix}.{s.changelog}`", s.doc) for s in topology.stores),
            ),
            "",
        )
    )


def outline(topology: Topology, prefix: str = "tocsin") -> str:
    """Return the map as plain text, a line for each thing and who it is tied to."""
    lines: list[str] = []
    for topic in topology.topics:
        lines += [f"topic      {prefix}.{topic.name}", f"           {topic.doc}"]
        lines.append(f"           key: {topic.key}; value: {topic.value}; {_spread(topic)}")
    for store in topology.stores:
        lines += [f"store      {store.name}, cache of {prefix}.{store.changelog}"]
        lines.append(f"           {store.doc}")
    for box in topology.processors:
        lines += [f"processor  {box.name}", f"           {box.doc}"]
        lines.append(f"           for each {_source(topology, box.source)}")
        lines.append(f"           writes to {', '.join(f'{prefix}.{name}' for name in box.writes)}")
    return "\n".join(lines) + "\n"


def _asked(topology: Topology) -> Iterable[str]:
    """Return the topics that services write: read by a box, written by none."""
    written = {name for box in topology.processors for name in box.writes}
    topics = {topic.name for topic in topology.topics}
    return [b.source for b in topology.processors if b.source in topics - written]


def _source(topology: Topology, name: str) -> str:
    stores: dict[str, Store] = {store.name: store for store in topology.stores}
    return f"due entry of {name}" if name in stores else f"record of {name}"


def _spread(topic: Topic) -> str:
    return "owned" if topic.spread is Spread.OWNED else "by key"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]


def _id(name: str) -> str:
    return name.replace("-", "_")
