"""The DST table: zones and years as java.time has them, made by tests/java/CronTable.java."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tocsin.core.schedule.cron_text import read_cron
from tocsin.core.schedule.slots import next_slot, passed
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.time_text import parse_instant
from tocsin.core.values import EpochMs

JAVA = Path(__file__).parents[2] / "java"
TABLE = JAVA / "cron_table.tsv"
ROWS = [
    line.split("\t")
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def named(row: list[str]) -> str:
    cron, zone, gap, overlap, exclude, start, *_ = row
    return " ".join((cron, zone, gap, overlap, exclude, start[:10]))


def cron_of(row: list[str]) -> Cron:
    text, zone, gap, overlap, exclude, *_ = row
    return read_cron(
        text,
        zone=zone,
        gap=Gap(gap),
        overlap=Overlap(overlap),
        exclude=exclude.split(",") if exclude else (),
    )


def before(instant: str) -> EpochMs:
    return EpochMs(parse_instant(instant) - 1)


def expected(row: list[str]) -> list[tuple[int, str]]:
    slots = [slot.split(" ") for slot in row[7].split(", ") if slot]
    return [(parse_instant(due), mark) for due, mark in slots]


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_slots_and_marks_are_those_of_java_time(row: list[str]) -> None:
    cron, until = cron_of(row), before(row[6])
    found = []
    slot = next_slot(cron, before(row[5]))
    while slot is not None and slot.due <= until:
        found.append((slot.due, slot.mark.value))
        slot = next_slot(cron, slot.due)
    assert found == expected(row)


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_what_passed_is_counted_as_java_time_does(row: list[str]) -> None:
    slots = expected(row)
    run = passed(cron_of(row), before(row[5]), before(row[6]))
    assert (run.count, run.newest) == (len(slots), slots[-1][0] if slots else None)


def test_the_table_is_what_java_makes_of_it() -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java on the PATH; the stored table is held against our slots all the same")
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False)
    if "jdk.compiler" not in modules.stdout:
        pytest.skip("this java runs no source files (a JRE, or older than 11): a JDK is needed")
    made = subprocess.run(
        [java, str(JAVA / "CronTable.java"), str(TABLE)], capture_output=True, check=True
    )
    assert made.stdout.decode() == TABLE.read_text(encoding="utf-8")
