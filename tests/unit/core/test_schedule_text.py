"""Schedules as people of other systems write them, and how they are previewed."""

import pytest

from tocsin.core.errors import Refusal
from tocsin.core.schedule.cron_text import read_cron
from tocsin.core.schedule.preview import PREVIEW_SLOTS_MAX, PreviewSlot, preview
from tocsin.core.schedule.schedule_text import parse_interval, parse_schedule
from tocsin.core.schedule.values import Interval, Mark, Overlap, Schedule
from tocsin.core.time_text import HOUR_MS, parse_instant
from tocsin.core.values import DurationMs, EpochMs


def interval(ms: int, occurrences: int | None = None) -> Schedule:
    return Schedule(timing=Interval(every=DurationMs(ms)), occurrences=occurrences)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h30m", interval(5_400_000)),
        ("1h 30m", interval(5_400_000)),
        ("PT10S", interval(10_000)),
        ("10000", interval(10_000)),
        ("@every 1h30m", interval(5_400_000)),
        ("@Every  1h30m", interval(5_400_000)),
        ("R5/PT10S", interval(10_000, 5)),
        ("R1/PT10S", interval(10_000, 1)),
        ("R/PT10S", interval(10_000)),
        ("1w 1d 1h 1m 1s", interval(694_861_000)),
        ("0 2 * * *", Schedule(timing=read_cron("0 2 * * *"))),
        ("@daily", Schedule(timing=read_cron("@daily"))),
    ],
)
def test_a_schedule_is_read_as_what_it_means(text: str, expected: Schedule) -> None:
    assert parse_schedule(text) == expected


def test_an_interval_may_be_a_number_of_milliseconds() -> None:
    assert parse_interval(250) == interval(250)


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("R0/PT10S", "every", "it repeats 1 to"),
        ("R" + "9" * 200 + "/PT10S", "every", "it repeats 1 to"),
        ("R5/2027-01-01T00:00Z/PT10S", "every", "give it as at, and here R5/PT10S"),
        ("R5/P1M", "every", "years and months have no exact length"),
        ("@every", "cron", "give it as every"),
        ("@every soon", "every", "or @every 1h30m"),
        ("0s", "every", "a period is longer than nothing"),
        ("-5m", "every", "it is negative"),
        ("often", "every", "R5/PT10S for five times"),
        ("every day at two please", "cron", "minute is 'EVERY'"),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_way_out(text: str, field: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_schedule(text)
    assert caught.value.field == field
    assert said in caught.value.way_out


def test_a_preview_marks_what_daylight_saving_did() -> None:
    berlin = parse_schedule("30 2 * * *", zone="Europe/Berlin", overlap=Overlap.BOTH)
    spring = preview(berlin, EpochMs(parse_instant("2027-03-27T12:00Z")), 2)
    autumn = preview(berlin, EpochMs(parse_instant("2027-10-30T12:00Z")), 3)
    assert [(slot.occurrence, slot.local[:19], slot.local[23:], slot.mark) for slot in spring] == [
        (0, "2027-03-28T03:00:00", "+02:00", Mark.GAP),
        (1, "2027-03-29T02:30:00", "+02:00", Mark.NORMAL),
    ]
    assert [(slot.occurrence, slot.local[:19], slot.local[23:], slot.mark) for slot in autumn] == [
        (0, "2027-10-31T02:30:00", "+02:00", Mark.OVERLAP),
        (1, "2027-10-31T02:30:00", "+01:00", Mark.OVERLAP),
        (2, "2027-11-01T02:30:00", "+01:00", Mark.NORMAL),
    ]


def test_a_preview_of_an_interval_is_its_grid_in_utc() -> None:
    assert preview(interval(HOUR_MS), EpochMs(0), 2) == (
        PreviewSlot(0, EpochMs(HOUR_MS), "1970-01-01T01:00:00.000+00:00", Mark.NORMAL),
        PreviewSlot(1, EpochMs(2 * HOUR_MS), "1970-01-01T02:00:00.000+00:00", Mark.NORMAL),
    )


def test_a_preview_ends_with_the_occurrences() -> None:
    assert len(preview(parse_schedule("R2/PT10S"), EpochMs(0), 10)) == 2


def test_a_preview_is_bounded() -> None:
    assert len(preview(interval(1), EpochMs(0), 10**9)) == PREVIEW_SLOTS_MAX
