"""The diagram is the map: docs/topology.md is what the map says today."""

from pathlib import Path

from tocsin.app.topology import TOPOLOGY
from tocsin.diagram import mermaid, outline, page

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "topology.md").read_text("utf-8") == page(TOPOLOGY), (
        "make it again: tocsin topology --page > docs/topology.md"
    )


def test_each_thing_and_each_arrow_of_the_map_is_drawn() -> None:
    drawn = mermaid(TOPOLOGY).splitlines()
    for box in TOPOLOGY.processors:
        for target in box.writes:
            assert f"  {box.name} --> {target.replace('-', '_')}" in drawn
        assert f"  {box.source} --> {box.name}" in drawn
    for topic in TOPOLOGY.topics:
        assert f'("tocsin.{topic.name}")' in mermaid(TOPOLOGY)
        assert f"tocsin.{topic.name}" in outline(TOPOLOGY)
    assert "  services --> commands" in drawn
    assert "  deliveries --> services" in drawn


def test_the_prefix_is_the_installations() -> None:
    assert "other.commands" in mermaid(TOPOLOGY, "other")
    assert "tocsin.commands" not in outline(TOPOLOGY, "other")
