"""The root command: global options, which every command takes too, and how failures are told."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import Session, session

_PANEL = "Global options"


def global_options(
    ctx: typer.Context,
    *,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            help="Brokers, host:port[,host:port…].", metavar="SERVERS", rich_help_panel=_PANEL
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            help="What the names of the topics begin with.", metavar="TEXT", rich_help_panel=_PANEL
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file of settings.", metavar="FILE", rich_help_panel=_PANEL),
    ] = None,
    json: Annotated[
        bool | None,
        typer.Option(
            "--json",
            help="One JSON object per line on stdout; all else goes to stderr.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    no_color: Annotated[
        bool | None, typer.Option("--no-color", help="Plain text.", rich_help_panel=_PANEL)
    ] = None,
    escaped: Annotated[
        bool | None,
        typer.Option(
            "--escaped",
            help=r"Read escapes such as \n and \u0000 in actors and names, as they are shown.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None:
    """Durable reminders for actors, kept and decided in Kafka."""
    given = {
        "bootstrap_servers": bootstrap_servers,
        "prefix": prefix,
        "config": config,
        "json": json,
        "no_color": no_color,
        "escaped": escaped,
    }
    for name, value in given.items():
        session(ctx).give(name, value)


class Root(TyperGroup):
    """Gives the global options to each command, and ends foreseeable failures without traceback."""

    def __init__(self, **attrs: Any) -> None:  # noqa: ANN401  handed through to typer
        super().__init__(**attrs)
        _spread(self.commands, _behind_the_command())

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  typer's context class has moved before
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader has seen enough (`| head`). What is still buffered has nowhere to go.
            sys.stdout = None
            raise typer.Exit(Exit.OK) from None
        except Exception as error:
            from tocsin.cli.failures import failure_of

            failure = failure_of(error)
            if failure is None:
                raise
            tell(session(ctx), failure)
            raise typer.Exit(failure.code) from error


def tell(of: Session, failure: Failure) -> None:
    """Say on stderr what went wrong and the way out; with --json also as an object on stdout."""
    of.output.error(failure.message, failure.way_out)
    if of.json:
        told = {"message": failure.message, "way_out": failure.way_out}
        of.output.emit({"error": failure.code.name.lower(), **told, **(failure.document or {})})


def _behind_the_command() -> list[Any]:
    """Return the global options as parameters that tell the session, not the command's function."""
    carrier = typer.Typer(add_completion=False)
    carrier.command()(global_options)
    parameters: list[Any] = [
        parameter
        for parameter in typer.main.get_command(carrier).params
        if parameter.name in Session.OPTIONS
    ]
    for parameter in parameters:
        parameter.expose_value = False
        parameter.callback = _remember
    return parameters


def _remember(ctx: Any, parameter: Any, value: object) -> object:  # noqa: ANN401  as above
    session(ctx).give(parameter.name, value)
    return value


def _spread(commands: Mapping[str, Any], parameters: list[Any]) -> None:
    for command in commands.values():
        inner: Mapping[str, Any] | None = getattr(command, "commands", None)
        if inner is not None:
            _spread(inner, parameters)
            continue
        taken = {option for parameter in command.params for option in parameter.opts}
        command.params += [p for p in parameters if not taken.intersection(p.opts)]
