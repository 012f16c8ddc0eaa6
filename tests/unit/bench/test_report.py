"""The report for people, and the JSON file for programs."""

import json
from pathlib import Path

from tocsin.bench.report import environment, histogram, number, table, title, typical, write_json
from tocsin.bench.results import Checks, Lateness, Report, Result, Run, lateness

GOOD = Checks(expected=3, received=3, duplicates=0, early=0)


def run(fires: float, *late: int, checks: Checks = GOOD) -> Run:
    found = lateness(late, [0] * len(late)) if late else None
    return Run(figures={"fires_per_s": fires}, checks=checks, lateness_ms=found)


def result(*runs: Run) -> Result:
    return Result(workload="burst", parameters={"count": 100_000}, runs=runs)


REPORT = Report(
    begun="2026-11-30T17:00:00+00:00",
    machine={"cpu": "a cpu", "cores": 2},
    versions={"tocsin": "0.1.0"},
    settings={"workers": 1},
    results=[result(run(20_000.4, 5, 6, 7))],
)


def test_a_title_has_the_parameters() -> None:
    assert title(result(run(1))) == "burst (count 100,000)"


def test_several_runs_have_a_median() -> None:
    columns, rows = table(result(run(3), run(1), run(2)))
    assert columns == ["", "run 1", "run 2", "run 3", "median"]
    assert rows[0] == ("fires per s", "3", "1", "2", "2")


def test_one_run_has_none() -> None:
    columns, rows = table(result(run(3)))
    assert columns == ["", "run 1"]
    assert all(len(row) == 2 for row in rows)


def test_percentiles_are_rows() -> None:
    _, rows = table(result(run(3, 5, 6, 7)))
    assert ("receipt − due p50 ms", "6") in rows


def test_a_failed_check_shouts() -> None:
    bad = Checks(expected=3, received=2, duplicates=1, early=0)
    _, rows = table(result(run(3, checks=bad)))
    assert rows[-1] == ("exactly once", "NO: 2 of 3, 1 twice, 0 early")


def test_a_histogram_runs_from_the_first_to_the_last_bin_that_holds_something() -> None:
    lines = histogram(
        Lateness(percentiles={}, histogram=[(1, 0), (5, 1), (10, 0), (20, 100), (None, 0)])
    )
    assert len(lines) == 3
    assert lines[0].split() == ["1", "…", "5", "ms", "1", "█"]
    assert lines[1].split() == ["5", "…", "10", "ms", "0"]
    assert lines[2].endswith("█" * 50)


def test_the_last_bin_has_no_upper_bound() -> None:
    assert histogram(Lateness(percentiles={}, histogram=[(1, 0), (None, 2)]))[0].startswith(
        "    1 ms and more"
    )


def test_the_typical_run_is_the_one_with_the_median_p99() -> None:
    runs = [run(1, 30), run(2, 10), run(3, 20)]
    assert typical(result(*runs)) is runs[2]


def test_figures_have_decimals_only_where_they_matter() -> None:
    assert [number(v) for v in (20_000.4, 0.1234, 3.0)] == ["20,000", "0.12", "3"]


def test_the_environment_is_told_in_words() -> None:
    assert ("cpu", "a cpu") in environment(REPORT)


def test_the_json_file_keeps_its_names(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    write_json(REPORT, file)
    written = json.loads(file.read_text())
    assert list(written) == [
        "schema",
        "begun",
        "machine",
        "versions",
        "settings",
        "results",
    ]
    assert written["schema"] == 1
    ((first,),) = (written["results"],)
    assert list(first) == ["workload", "parameters", "runs"]
    (only,) = first["runs"]
    assert list(only) == ["figures", "checks", "lateness_ms", "fire_lateness_ms"]
    assert only["checks"] == {"expected": 3, "received": 3, "duplicates": 0, "early": 0}
    assert only["lateness_ms"]["percentiles"]["p99"] == 7
    assert sum(count for _, count in only["lateness_ms"]["histogram"]) == 3
