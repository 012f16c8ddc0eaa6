"""The report as tables and text, for people; the JSON file is results.Report itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tocsin.bench.results import Lateness, Report, Result, Run, median

#: Characters of the longest bar of a histogram.
BAR_MAX = 50
#: From here on a figure is told without decimals.
WHOLE_FROM = 100

#: Columns and rows.
Table = tuple[Sequence[str], list[Sequence[str]]]


def write_json(report: Report, file: Path) -> None:
    """Write the whole report; OSError where it cannot be written."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def environment(report: Report) -> list[tuple[str, str]]:
    """Return what the figures were measured on, a line each."""
    rows: list[tuple[str, str]] = []
    for part in (report.machine, report.versions, report.settings):
        rows += [(name.replace("_", " "), str(value)) for name, value in part.items()]
    return rows


def title(result: Result) -> str:
    """Return what was measured, with its parameters."""
    parameters = ", ".join(f"{name} {value:,}" for name, value in result.parameters.items())
    return f"{result.workload} ({parameters})"


def table(result: Result) -> Table:
    """Return a row for each figure, a column for each run, and the median of several."""
    columns = ["", *(f"run {number}" for number, _ in enumerate(result.runs, 1))]
    if len(result.runs) > 1:
        columns.append("median")
    rows = [_row(name, [run.figures[name] for run in result.runs]) for name in _names(result)]
    rows += _lateness_rows("receipt − due", [run.lateness_ms for run in result.runs])
    rows += _lateness_rows("fire − due", [run.fire_lateness_ms for run in result.runs])
    checked = [_checked(run) for run in result.runs]
    rows.append(("exactly once", *checked, *([""] if len(result.runs) > 1 else [])))
    return columns, rows


def histogram(lateness: Lateness) -> list[str]:
    """Return a line for each bin, from the first that holds something to the last."""
    bins = list(lateness.histogram)
    while bins and not bins[-1][1]:
        bins.pop()
    lower = 0
    lines: list[str] = []
    most = max((count for _, count in bins), default=0)
    for bound, count in bins:
        if lines or count:
            name = f"{lower:>5,} ms and more" if bound is None else f"{lower:>5,} … {bound:>5,} ms"
            # Whatever is there shows.
            bar = "█" * max(round(BAR_MAX * count / most), count > 0)
            lines.append(f"{name:<16} {count:>9,} {bar}".rstrip())
        lower = bound or 0
    return lines


def typical(result: Result) -> Run:
    """Return the run whose p99 is the median: its histogram is shown."""
    ordered = sorted(result.runs, key=_p99)
    return ordered[(len(ordered) - 1) // 2]


def _p99(run: Run) -> float:
    return run.lateness_ms.percentiles["p99"] if run.lateness_ms is not None else 0.0


def _names(result: Result) -> Sequence[str]:
    return list(result.runs[0].figures)


def _lateness_rows(what: str, runs: Sequence[Lateness | None]) -> list[Sequence[str]]:
    known: list[Mapping[str, float]] = [run.percentiles for run in runs if run is not None]
    if not known or len(known) < len(runs):
        return []
    return [_row(f"{what} {name} ms", [run[name] for run in known]) for name in known[0]]


def _row(name: str, values: Sequence[float]) -> Sequence[str]:
    shown = [number(value) for value in values]
    if len(values) > 1:
        shown.append(number(median(values)))
    return (name.replace("_", " "), *shown)


def number(value: float) -> str:
    """Return a figure as people read it."""
    if value == round(value) or abs(value) >= WHOLE_FROM:
        return f"{value:,.0f}"
    return f"{value:,.2f}"


def _checked(run: Run) -> str:
    checks = run.checks
    if checks.passed:
        return f"yes, {checks.received:,}" if checks.expected else "–"
    return (
        f"NO: {checks.received:,} of {checks.expected:,}, {checks.duplicates:,} twice, "
        f"{checks.early:,} early"
    )
