"""`tocsin topics`: makes the topics of the map, and says whether they are fit for the engine."""

from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands."""
    topics = typer.Typer(
        help="The topics of the map: make them, check them, see what they are for.",
        no_args_is_help=True,
    )
    topics.command()(create)
    topics.command()(check)
    topics.command()(describe)
    app.add_typer(topics, name="topics")


def create(
    ctx: typer.Context,
    *,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Partitions of each topic; fixed once created.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=-1, help="Replicas; -1 is the broker's default.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="A map of your own.")
    ] = None,
) -> None:
    """Make the topics that are missing; those that are there stay as they are."""
    from tocsin.bootstrap import create_missing_topics

    given = session(ctx)
    settings = _settings(
        given, partitions=partitions, replication_factor=replication_factor, topology=topology
    )
    created = create_missing_topics(settings)
    if given.json:
        for name, new in created.items():
            given.output.emit({"topic": name, "created": new})
    else:
        given.output.table(
            ("topic", ""),
            [(name, "created" if new else "was there") for name, new in created.items()],
        )
    _check(settings)


def check(
    ctx: typer.Context,
    *,
    topology: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="A map of your own.")
    ] = None,
) -> None:
    """Say whether the topics are as the engine needs them; ends with 2 when they are not."""
    given = session(ctx)
    _check(_settings(given, topology=topology))
    if given.json:
        given.output.emit({"ok": True})
    else:
        given.output.say("The topics are as the engine needs them.", "green")


def describe(
    ctx: typer.Context,
    *,
    topology: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="A map of your own.")
    ] = None,
) -> None:
    """Show each topic: what it is for, and how it is at the broker."""
    from tocsin.bootstrap import found_topics, load_topology
    from tocsin.runtime.names import Names

    given = session(ctx)
    settings = _settings(given, topology=topology)
    names = Names(settings.prefix)
    chart = load_topology(settings.topology)
    found = found_topics(settings)
    rows = []
    for topic in chart.topics:
        state = found[topic.name]
        wanted = {**topic.defaults, **topic.config}
        actual = {} if state is None else {name: state.config.get(name) for name in wanted}
        if given.json:
            given.output.emit(
                {
                    "topic": names.topic(topic.name),
                    "doc": topic.doc,
                    "key": topic.key,
                    "value": topic.value,
                    "exists": state is not None,
                    "id": None if state is None else state.id,
                    "partitions": None if state is None else state.partitions,
                    "config": actual,
                }
            )
            continue
        rows.append(
            (
                names.topic(topic.name),
                "missing" if state is None else str(state.partitions),
                "\n".join(f"{name}={value}" for name, value in actual.items()),
                topic.doc,
            )
        )
    if not given.json:
        given.output.table(("topic", "partitions", "settings", "what it is for"), rows)


def _settings(given: Session, **options: object) -> "Settings":
    from tocsin.settings import load_settings

    options |= {"bootstrap_servers": given.bootstrap_servers, "prefix": given.prefix}
    typed = {name: (f"--{name.replace('_', '-')}", value) for name, value in options.items()}
    return load_settings(typed, file=given.config)


def _check(settings: "Settings") -> None:
    from tocsin.bootstrap import topic_problems

    wrong = topic_problems(settings)
    if wrong:
        failure = Failure(Exit.USAGE, "\n".join(wrong))
        failure.document = {"ok": False, "problems": wrong}
        raise failure
