"""topology: the map, as text and as a diagram."""

from collections.abc import Callable
from typing import Annotated

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import session


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(topology)


def topology(
    ctx: typer.Context,
    *,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="A Mermaid flowchart, to paste into a page.")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="The whole page in Markdown: docs/topology.md.")
    ] = False,
) -> None:
    """Show the map: every topic, store and processor, and who feeds whom.

    For example:

      tocsin topology

      tocsin topology --mermaid > map.mmd
    """
    import sys

    from tocsin import diagram
    from tocsin.app.topology import TOPOLOGY

    run = session(ctx)
    if mermaid and page:
        raise Failure(Exit.USAGE, "--mermaid and --page exclude each other", "give one")
    prefix = run.settings.prefix
    if run.json:
        _emit(run.output.emit, prefix)
    elif page:
        sys.stdout.write(diagram.page(TOPOLOGY, prefix))
    elif mermaid:
        sys.stdout.write(diagram.mermaid(TOPOLOGY, prefix))
    else:
        sys.stdout.write(diagram.outline(TOPOLOGY, prefix))


def _emit(emit: Callable[[dict[str, object]], None], prefix: str) -> None:
    from tocsin.app.topology import TOPOLOGY

    for topic in TOPOLOGY.topics:
        emit(
            {
                "topic": f"{prefix}.{topic.name}",
                "key": topic.key,
                "value": topic.value,
                "spread": topic.spread.value,
                "config": dict(topic.config),
                "defaults": dict(topic.defaults),
                "doc": topic.doc,
            }
        )
    for store in TOPOLOGY.stores:
        emit({"store": store.name, "changelog": f"{prefix}.{store.changelog}", "doc": store.doc})
    for box in TOPOLOGY.processors:
        emit(
            {
                "processor": box.name,
                "source": box.source,
                "writes": list(box.writes),
                "doc": box.doc,
            }
        )
