"""`tocsin schedule preview` shows what a schedule means."""

import json

import pytest
from typer.testing import CliRunner

from tocsin.cli.app import app

SPRING = ("--zone", "Europe/Berlin", "--from", "2027-03-26T12:00Z")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["schedule", "preview", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_each_slot_is_an_object_with_its_mark() -> None:
    code, out, _ = run("30 2 * * *", *SPRING, "--count", "3", "--json")
    slots = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [slot["mark"] for slot in slots] == ["normal", "gap", "normal"]
    assert slots[1]["local"].startswith("2027-03-28T03:00")


def test_people_see_which_slot_daylight_saving_moved() -> None:
    _, out, _ = run("30 2 * * *", *SPRING, "--count", "3")
    assert "does not exist" in out


@pytest.mark.parametrize(
    "arguments",
    [("61 * * * *",), ("0 2 * * *", "--zone", "Mars/Base"), ("0 2 * * *", "--gap", "sometimes")],
    ids=["field", "zone", "policy"],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "error" in err
