"""Where a command speaks: people on stdout in tables, programs in JSON lines, trouble on stderr."""

import json as json_text
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tocsin.cli.safe import printable

if TYPE_CHECKING:
    from rich.console import Console

#: Columns where nobody looks at a screen: nothing is cut or folded.
_WIDE = 100_000


class Output:
    """The two streams of one run."""

    def __init__(self, *, json: bool, color: bool) -> None:
        self._json = json
        self._color = color

    @cached_property
    def out(self) -> "Console":
        """For people, on stdout; with --json on stderr."""
        return self._console(error=self._json)

    @cached_property
    def err(self) -> "Console":
        """For people, on stderr: trouble and progress."""
        return self._console(error=True)

    def emit(self, document: Mapping[str, object]) -> None:
        """Write one JSON object as a line on stdout, in ASCII, so that no terminal is upset."""
        sys.stdout.write(json_text.dumps(document, separators=(",", ":")) + "\n")
        sys.stdout.flush()

    def say(self, text: str, style: str | None = None) -> None:
        """Write a line for people. What comes from others in it is made safe by `safe` before."""
        self.out.print(printable(text), style=style, soft_wrap=True)

    def note(self, text: str) -> None:
        """Write a line on stderr that explains what goes on."""
        self.err.print(printable(text), style="dim", soft_wrap=True)

    def error(self, message: str, way_out: str | None) -> None:
        """Say what went wrong, and what to do."""
        from rich.text import Text

        # Line by line: messages have line breaks of ours, not of others (those are shown escaped).
        for number, line in enumerate(message.splitlines() or [""]):
            head = Text("error: " if number == 0 else "       ", style="bold red")
            self.err.print(head + Text(printable(line)), soft_wrap=True)
        if way_out:
            self.err.print(Text("       ") + Text(printable(way_out)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Write a table for people. What others wrote in it is made safe by `safe` before."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(Text(_lines(cell)) for cell in row))
        self.out.print(table)

    def pairs(self, rows: Iterable[tuple[str, str]]) -> None:
        """Write what is known of one thing, a line each; as `table`."""
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in rows:
            grid.add_row(name, Text(_lines(value)))
        self.out.print(grid)

    def _console(self, *, error: bool) -> "Console":
        from rich.console import Console

        stream = sys.stderr if error else sys.stdout
        return Console(
            file=stream,
            markup=False,
            highlight=False,
            emoji=False,
            no_color=None if self._color else True,
            width=None if stream.isatty() else _WIDE,
        )


def _lines(cell: str) -> str:
    """Return a cell made printable, line by line: line breaks are ours, as in `Output.error`."""
    return "\n".join(printable(line) for line in cell.split("\n"))
