"""The judge of the kill tests: it owes nothing to the accused, and misses none of these."""

import ast
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kill.oracle import Answer, Came, Sent, Verdict, judge

HERE = Path(__file__).parent
MARGIN_MS = 1_000


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import():
                names.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                names.add(node.module or ".")
            case ast.Call(func=ast.Name(id="__import__")):
                names.add("__import__")
            case _:
                pass
    return names


def test_the_oracle_imports_the_standard_library_alone() -> None:
    roots = {name.partition(".")[0] for name in imported(HERE / "oracle.py")}
    assert roots <= sys.stdlib_module_names - {"importlib"}


def test_the_driver_imports_nothing_of_tocsin() -> None:
    names = imported(HERE / "driver.py")
    own = {name for name in names if name.partition(".")[0] == "tests"}
    assert own == {"tests.kill.oracle"}
    assert {name.partition(".")[0] for name in names - own} <= {
        *sys.stdlib_module_names,
        "confluent_kafka",
    }


class Story:
    """A log that an honest engine wrote, all of it in partition 0; append time 1,000 × offset."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.answers: dict[tuple[int, int], list[Answer]] = {}
        self.came: list[Came] = []

    def send(self, command: dict[str, Any], *answers: Answer, actor: str = "a") -> None:
        offset = len(self.sent)
        appended = 1_000 * offset
        self.sent.append(
            Sent(partition=0, offset=offset, appended=appended, actor=actor, command=command)
        )
        self.answers[0, offset] = list(answers)

    def deliver(self, version: int, due: int, **more: Any) -> None:
        fields: dict[str, Any] = {
            "id": f"0:{version}:{more.get('occurrence', 0)}",
            "key": "a",
            "actor": "a",
            "reminder": "pay",
            "kind": "scheduled",
            "due": due,
            "first_due": due,
            "fired": due + 5,
            "version": version,
            "occurrence": 0,
            "missed": 0,
            "period": None,
            "payload": b"",
            **more,
        }
        self.came.append(Came(timestamp=fields["fired"], arrived=fields["fired"] + 3, **fields))

    def judge(self) -> Verdict:
        return judge(
            self.sent,
            self.answers,
            self.came,
            until=50_000,
            margin_ms=MARGIN_MS,
            lateness_ms_max=30_000,
        )


@pytest.fixture
def story() -> Story:
    """One-shot (0), interval (1, 5), cancelled (2, 3), moved (4 to 6), by hand (7)."""
    story = Story()
    story.send({"arm": {"reminder": "pay", "after": 500}}, Answer("armed", "pay", 0))
    story.send({"arm": {"reminder": "tick", "every": 1_000}}, Answer("armed", "tick", 1))
    story.send({"arm": {"reminder": "no", "after": 9_000}}, Answer("armed", "no", 2))
    story.send({"cancel": {"reminder": "no"}}, Answer("cancelled", "no", 2))
    story.send({"arm": {"reminder": "far", "after": 99_000}}, Answer("armed", "far", 4))
    story.send({"cancel": {"reminder": "tick"}}, Answer("cancelled", "tick", 1))
    story.send({"move": {"reminder": "far", "after": 50}}, Answer("moved", "far", 6, 4))
    story.send({"arm": {"reminder": "hand", "after": 99_000}}, Answer("armed", "hand", 7))
    story.send({"fire": {"reminder": "hand"}}, Answer("fired", "hand", 7))
    story.deliver(0, 500)
    tick = {"reminder": "tick", "first_due": 2_000, "period": 1_000}
    story.deliver(1, 2_000, **tick)
    story.deliver(1, 4_000, occurrence=2, missed=1, **tick)
    story.deliver(6, 6_050, reminder="far")
    story.deliver(7, 8_004, reminder="hand", kind="manual", id="0:8:m", occurrence=None)
    hand = story.came[-1]
    story.came[-1] = replace(hand, due=hand.fired, first_due=106_000)
    return story


def laws(story: Story) -> set[str]:
    return {fault.law for fault in story.judge().faults}


def test_an_honest_log_is_not_accused(story: Story) -> None:
    assert story.judge().faults == []


Damage = Callable[[Story], object]


def changed(at: int, **fields: Any) -> Damage:
    def damage(story: Story) -> None:
        story.came[at] = replace(story.came[at], **fields)

    return damage


def answered(at: int, *answers: Answer) -> Damage:
    return lambda story: story.answers.update({(0, at): list(answers)})


@pytest.mark.parametrize(
    ("damage", "law"),
    [
        (lambda story: story.came.append(story.came[0]), "exactly once"),
        (lambda story: story.came.pop(0), "none missing"),
        (lambda story: story.came.pop(1), "occurrences tile"),
        (lambda story: story.came.pop(4), "none missing"),
        (lambda story: story.deliver(2, 11_000, reminder="no"), "none after an earlier cancel"),
        (lambda story: story.deliver(4, 103_000, reminder="far"), "none after an earlier cancel"),
        (lambda story: story.deliver(9, 9_000), "none unexpected"),
        (changed(0, fired=499, timestamp=499), "none early"),
        (changed(0, arrived=400), "none early"),
        (changed(0, timestamp=600), "record as fired"),
        (changed(0, key="b"), "record as fired"),
        (changed(0, due=400), "delivered as armed"),
        (changed(0, payload=b"x"), "delivered as armed"),
        (changed(2, missed=0), "occurrences tile"),
        (changed(1, fired=3_000, timestamp=3_000, arrived=3_000), "newest slot"),
        (
            changed(2, fired=6_900, timestamp=6_900, arrived=6_900, occurrence=4, missed=3,
                    due=6_000, id="0:1:4"),
            "none after an earlier cancel",
        ),
        (answered(3), "each command its answer"),
        (answered(3, Answer("nothing_cancelled", "no")), "each command its answer"),
        (answered(8, Answer("refused", "hand", reason="absent")), "each command its answer"),
    ],
)  # fmt: skip
def test_a_broken_law_is_named(story: Story, damage: Damage, law: str) -> None:
    damage(story)
    assert law in laws(story)


def raced() -> Story:
    """A cancel that was appended half a second after the due."""
    story = Story()
    story.send({"arm": {"reminder": "pay", "after": 500}})
    story.answers[0, 0] = [Answer("armed", "pay", 0)]
    story.send({"cancel": {"reminder": "pay"}})
    return story


def test_in_a_race_the_fire_may_win() -> None:
    story = raced()
    story.answers[0, 1] = [Answer("nothing_cancelled", "pay")]
    story.deliver(0, 500, fired=1_200)
    verdict = story.judge()
    assert verdict.faults == []
    assert verdict.closest_race_ms == 200


def test_in_a_race_the_cancel_may_win() -> None:
    story = raced()
    story.answers[0, 1] = [Answer("cancelled", "pay", 0)]
    assert story.judge().faults == []


def test_both_never_win() -> None:
    story = raced()
    story.answers[0, 1] = [Answer("cancelled", "pay", 0)]
    story.deliver(0, 500, fired=1_200)
    assert laws(story) == {"each command its answer"}


def test_neither_is_a_loss() -> None:
    story = raced()
    story.answers[0, 1] = [Answer("nothing_cancelled", "pay")]
    assert laws(story) == {"each command its answer"}


def test_a_late_engine_has_no_excuse_for_what_was_cancelled_before() -> None:
    story = raced()
    story.answers[0, 1] = [Answer("nothing_cancelled", "pay")]
    story.deliver(0, 500, fired=1_000 + MARGIN_MS + 1)
    assert laws(story) == {"none after an earlier cancel"}
