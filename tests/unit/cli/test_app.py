"""The command line teaches, parses, and fails in words; no broker is asked here."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
from typer.testing import CliRunner

from tocsin.cli.app import app
from tocsin.cli.exits import MEANINGS, Exit

NO_BROKER = "127.0.0.1:1"
OURS = [
    ["arm"],
    ["move"],
    ["cancel"],
    ["pause"],
    ["resume"],
    ["fire"],
    ["destroy"],
    ["ls"],
    ["show"],
    ["upcoming"],
    ["history"],
    ["topology"],
    ["tail", "deliveries"],
    ["tail", "events"],
    ["tail", "dead-letters"],
]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> Iterator[CliRunner]:
    for name in ("TOCSIN_PREFIX", "TOCSIN_BOOTSTRAP_SERVERS", "TOCSIN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(str(tmp_path))
    logs = structlog.get_config()
    yield CliRunner(env={"COLUMNS": "200"})
    # A command sends logs to the stderr of its runner, which is closed by now.
    structlog.configure(**logs)


def test_help_lists_every_exit_code(run: CliRunner) -> None:
    done = run.invoke(app, ["--help"])
    assert done.exit_code == 0
    unwrapped = " ".join(done.output.split())
    for code, meaning in MEANINGS.items():
        assert f"{code.value} {meaning}" in unwrapped


@pytest.mark.parametrize("command", OURS, ids=" ".join)
def test_each_command_teaches_by_example_and_takes_the_global_options(
    run: CliRunner, command: list[str]
) -> None:
    done = run.invoke(app, [*command, "--help"])
    assert done.exit_code == 0
    assert f"tocsin {' '.join(command)}" in done.output.split("For example:")[1]
    for option in ("--bootstrap-servers", "--prefix", "--config", "--json", "--no-color"):
        assert option in done.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--prefix", "other", "topology"],
        ["topology", "--prefix", "other"],
        ["--prefix", "first", "topology", "--prefix", "other"],
    ],
)
def test_a_global_option_counts_on_either_side_and_the_later_one_wins(
    run: CliRunner, arguments: list[str]
) -> None:
    assert "other.commands" in run.invoke(app, arguments).output


def test_json_is_one_object_per_line(run: CliRunner) -> None:
    done = run.invoke(app, ["topology", "--json"])
    names = [next(iter(json.loads(line))) for line in done.output.splitlines()]
    assert {"topic", "store", "processor"} == set(names)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["arm", "order/1", "pay", "--in", "banana"], "banana"),
        (["arm", "order/1", "pay", "--at", "2027-03-01"], "no offset"),
        (["arm", "order/1", "pay", "--timeout", "soon"], "soon"),
        (["arm", "order/1", "pay", "--header", "x"], "NAME=VALUE"),
        (["arm", "order/1", "pay", "--json-payload", "{"], "--json-payload"),
        (["arm", "order/1", "pay", "--json-payload", "NaN"], "NaN"),
        (["arm", "order/1", "pay", "--payload", "a", "--json-payload", "1"], "not both"),
        (["arm", "order/1", "pay", "--payload", "@/nowhere/at-all"], "/nowhere/at-all"),
        (["arm", "", "pay"], "actor"),
        (["arm", "order/1"], "NAME"),
        (["cancel", "order/1"], "--all"),
        (["cancel", "order/1", "--operation", "pay", "--prefix", "pay"], "--prefix"),
        (["pause", "order/1"], "--all"),
        (["resume", "order/1", "pay", "--all"], "--all"),
        (["cancel", "order/1", "pay", "--all"], "--all"),
        (["--escaped", "ls", "a\\x"], "--escaped"),
        (["--escaped", "ls", "\\ud800"], "--escaped"),
        (["tail", "deliveries", "--idle", "soon"], "soon"),
        (["upcoming", "--limit", "0"], "--limit"),
        (["ls", "a", "--prefix", "no blanks"], "--prefix"),
        (["ls", "a", "--config", "nowhere.toml"], "nowhere.toml"),
        (["topology", "--mermaid", "--page"], "exclude"),
    ],
)
def test_a_mistake_is_named_and_ends_with_2(
    run: CliRunner, arguments: list[str], said: str
) -> None:
    done = run.invoke(app, ["--bootstrap-servers", NO_BROKER, *arguments])
    assert done.exit_code == Exit.USAGE, done.output
    assert said in done.output
    assert done.exc_info is None or "Traceback" not in done.output


def test_a_failure_is_told_to_programs_as_an_object(run: CliRunner) -> None:
    done = run.invoke(app, ["arm", "order/1", "pay", "--in", "banana", "--json"])
    document = json.loads(done.stdout)
    assert (document["error"], document["field"]) == ("refused", "after")
    assert document["way_out"]


def test_help_needs_no_kafka_no_settings_and_no_tables() -> None:
    heavy = ("confluent_kafka", "fastavro", "pydantic_settings", "rocksdict", "aiohttp", "faust")
    code = (
        "import sys, tocsin.cli.app; from typer.testing import CliRunner;"
        "CliRunner().invoke(tocsin.cli.app.app, ['--help']);"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
