"""Zones come from the tzdata package alone, and no change of offset is missed."""

import struct
from importlib.metadata import version
from importlib.resources import files
from itertools import pairwise

import pytest

from tocsin.core.schedule import zones
from tocsin.core.schedule.zones import local_text, period_at, tz_version
from tocsin.core.time_text import parse_instant
from tocsin.core.values import EpochMs

ALL_ZONES = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()


def changes_of(zone: str) -> list[tuple[int, int, int]]:
    """Return second, offset before and offset from then on, of the explicit part of a TZif file."""
    data = files("tzdata").joinpath("zoneinfo", *zone.split("/")).read_bytes()
    header = struct.Struct(">4sc15x6l")
    _, _, is_ut, is_std, leaps, times, types, chars = header.unpack_from(data)
    old = header.size + times * 5 + types * 6 + chars + leaps * 8 + is_std + is_ut
    _, _, _, _, _, times, types, _ = header.unpack_from(data, old)
    at = old + header.size
    seconds = struct.unpack_from(f">{times}q", data, at)
    indexes = data[at + 8 * times : at + 9 * times]
    offsets = [
        struct.unpack_from(">l", data, at + 9 * times + 6 * kind)[0] for kind in range(types)
    ]
    changes = []
    before = offsets[0]
    for second, index in zip(seconds, indexes, strict=True):
        if offsets[index] != before:
            changes.append((second, before, offsets[index]))
            before = offsets[index]
    return changes


def test_changes_of_a_zone_are_further_apart_than_two_looks() -> None:
    for zone in ALL_ZONES:
        seconds = [second for second, _, _ in changes_of(zone)]
        for earlier, later in pairwise(seconds):
            assert later - earlier > 2 * zones._LOOK_SECONDS, zone


@pytest.mark.parametrize("zone", ["Africa/Cairo", "Africa/Tunis", "Asia/Gaza", "Pacific/Apia"])
def test_each_change_begins_a_period(zone: str) -> None:
    for second, before, offset in changes_of(zone):
        period = period_at(zone, second)
        assert (period.start, period.offset_before, period.offset) == (second, before, offset)


def test_the_version_is_that_of_the_package() -> None:
    year, _, number = version("tzdata").partition(".")
    assert tz_version() == year + chr(ord("a") + int(number) - 1)


@pytest.mark.parametrize(
    ("zone", "instant", "expected"),
    [
        ("UTC", "2027-01-01T00:00Z", "2027-01-01T00:00:00.000+00:00"),
        ("Europe/Berlin", "2027-03-28T01:00Z", "2027-03-28T03:00:00.000+02:00"),
        ("America/St_Johns", "2027-01-01T00:00:00.5Z", "2026-12-31T20:30:00.500-03:30"),
        ("Africa/Monrovia", "1971-01-01T00:00Z", "1970-12-31T23:15:30.000-00:44:30"),
    ],
)
def test_local_text_shows_the_clock_and_its_offset(zone: str, instant: str, expected: str) -> None:
    assert local_text(zone, EpochMs(parse_instant(instant))) == expected
