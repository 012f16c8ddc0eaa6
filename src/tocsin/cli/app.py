"""The application: global options, and the commands of the modules named in MODULES.

Each of these modules has `register(app: typer.Typer) -> None`, which adds its commands. It is
imported for `tocsin --help`, so at its head it imports only typer and what is as light; the rest
comes within the function that runs. A command finds settings, output and client in
`tocsin.cli.session.session(ctx)`, ends badly by raising `tocsin.cli.exits.Failure`, and gets the
global options behind its name as well (`tocsin ls order/1 --json`) without doing anything for it.
"""

from importlib import import_module
from importlib.util import find_spec

import typer

from tocsin.cli.exits import MEANINGS
from tocsin.cli.root import Root, global_options

#: In the order of `tocsin --help`. One that is not there is passed over.
MODULES = (
    "reminders",
    "looking",
    "tail",
    "history",
    "worker",
    "topics",
    "audit",
    "state",
    "clock",
    "topology",
    "schedule",
    "dev",
    "demo",
    "bench",
)

_EPILOG = "Exit codes: " + " · ".join(f"{code.value} {text}" for code, text in MEANINGS.items())


def build() -> typer.Typer:
    """Return the application with every command."""
    built = typer.Typer(
        name="tocsin",
        cls=Root,
        help="Durable reminders for actors, kept and decided in Kafka.",
        epilog=_EPILOG,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    built.callback()(global_options)
    for name in MODULES:
        path = f"tocsin.cli.{name}"
        if find_spec(path) is not None:
            import_module(path).register(built)
    return built


app = build()
