"""The command line: arm, move, cancel, look, and run the engine."""


def main() -> None:
    """Run the command line; ends the process with one of `exits.Exit`."""
    from tocsin.cli.app import app

    app()
