"""What is read as an instant or a duration, what is refused, and what the refusal says."""

from collections.abc import Callable
from typing import cast

import pytest

from tocsin.core.time_text import (
    DURATION_MS_MAX,
    INSTANT_MS_MAX,
    INSTANT_MS_MIN,
    TimeTextError,
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
)

HOUR = 3_600_000
DAY = 24 * HOUR
BEYOND_REPR = pytest.param(10**6000, id="10**6000")  # pytest cannot name it: its str() raises
MARCH_2027 = 1_803_888_000_000  # 2027-03-01T08:00Z

DURATIONS: list[tuple[int | str, int]] = [
    (0, 0),
    (5_000, 5_000),
    (DURATION_MS_MAX, DURATION_MS_MAX),
    ("5000", 5_000),
    ("0", 0),
    ("007", 7),
    ("0s", 0),
    ("250ms", 250),
    ("90s", 90_000),
    ("15m", 900_000),
    ("36h", 36 * HOUR),
    ("2d", 2 * DAY),
    ("1w", 7 * DAY),
    ("1h30m", 5_400_000),
    ("1h 30m", 5_400_000),
    ("1w 2d3h 4m5s 6ms", 9 * DAY + 3 * HOUR + 245_006),
    ("1m5ms", 60_005),
    ("1.5h", 5_400_000),
    ("0.1s", 100),
    ("0.1ms", 1),
    ("0.4ms", 1),
    ("1.0001s", 1_001),
    ("0.0005s", 1),
    ("0.00025s 0.25ms", 1),
    ("365250d", DURATION_MS_MAX),
    ("PT10S", 10_000),
    ("P1DT12H", 36 * HOUR),
    ("P2W", 14 * DAY),
    ("P1W2D", 9 * DAY),
    ("PT0.5S", 500),
    ("PT0.0001S", 1),
    ("PT5M", 300_000),
    ("P0D", 0),
    ("PT1.5H", 5_400_000),
]


@pytest.mark.parametrize(("value", "ms"), DURATIONS)
def test_durations_are_exact_milliseconds_rounded_up(value: int | str, ms: int) -> None:
    assert parse_duration(value) == ms


@pytest.mark.parametrize(
    "value",
    [
        *["", " ", "s", "h1", "1x", "1H", "1.h", ".5h", "1,5h", "1e3s", "1_000s", "+1s", "+5"],
        *["5000.5", "0x10", "1 h", "NaN", "inf", "1h  30m", "1h\t30m", " 1h", "1h ", "1h\n"],
        *["5000\n", " 5000", "30m1h", "1h1h", "1h and 30m", "1h30", "P", "PT", "P1DT", "P1"],
        *["P1H", "PT1D", "PT1", "p1d", "pt10s", "P-1D", "PT1.5H30M", "PT0,5S", "P1D ", "٣s", "٣"],
        *["\uff11s", "²", "1\u00a0h", "1h\u2003 30m", "\ud800", "1\x00s", "\u202e1h"],
    ],
)
def test_what_is_no_duration_is_refused(value: str) -> None:
    with pytest.raises(TimeTextError, match="is not a duration"):
        parse_duration(value)


@pytest.mark.parametrize(
    "value", [-1, "-1", "-1h", "-PT10S", pytest.param(-(10**6000), id="-10**6000")]
)
def test_negative_durations_are_refused_as_such(value: int | str) -> None:
    with pytest.raises(TimeTextError, match="it is negative"):
        parse_duration(value)


@pytest.mark.parametrize(
    "value",
    [
        DURATION_MS_MAX + 1,
        BEYOND_REPR,
        str(DURATION_MS_MAX + 1),
        "365251d",
        "31557600000000.1ms",
        "9" * 120 + "w",
    ],
)
def test_durations_over_a_thousand_years_are_refused(value: int | str) -> None:
    with pytest.raises(TimeTextError, match="longer than 1,000 years"):
        parse_duration(value)


@pytest.mark.parametrize("value", ["P1Y", "P1M", "P1Y2M3D", "P1MT1H", "P0.5Y"])
def test_iso_years_and_months_are_refused_with_the_way_out(value: str) -> None:
    with pytest.raises(TimeTextError, match="use days"):
        parse_duration(value)


INSTANTS: list[tuple[int | str, int]] = [
    (0, 0),
    (-5_000, -5_000),
    ("-5000", -5_000),
    (1_700_000_000, 1_700_000_000),
    ("1700000000", 1_700_000_000),
    ("20270301", 20_270_301),
    (INSTANT_MS_MIN, INSTANT_MS_MIN),
    (INSTANT_MS_MAX, INSTANT_MS_MAX),
    ("2027-03-01T09:00+01:00", MARCH_2027),
    ("2027-03-01T08:00Z", MARCH_2027),
    ("2027-03-01 08:00:00Z", MARCH_2027),
    ("2027-03-01t08:00:00z", MARCH_2027),
    ("2027-03-01T09:00:00+0100", MARCH_2027),
    ("2027-03-01 09:00:00+01", MARCH_2027),
    ("2027-03-01T08:00:00-00:00", MARCH_2027),
    ("2027-02-28T22:30-09:30", MARCH_2027),
    ("2027-03-01T08:00:00.123Z", MARCH_2027 + 123),
    ("2027-03-01T08:00:00.1Z", MARCH_2027 + 100),
    ("2027-03-01T08:00:00.123000000Z", MARCH_2027 + 123),
    ("2027-03-01T08:00:00.123000001Z", MARCH_2027 + 124),
    ("2027-03-01T08:00:00.9991Z", MARCH_2027 + 1_000),
    ("1969-12-31T23:59:59.9991Z", 0),
    ("1969-12-31T23:59:59.998001Z", -1),
    ("2028-02-29T00:00Z", 1_835_395_200_000),
    ("0001-01-01T00:00:00Z", INSTANT_MS_MIN),
    ("9999-12-31T23:59:59.999Z", INSTANT_MS_MAX),
]


@pytest.mark.parametrize(("value", "ms"), INSTANTS)
def test_instants_are_epoch_milliseconds_rounded_up(value: int | str, ms: int) -> None:
    assert parse_instant(value) == ms


@pytest.mark.parametrize(
    "value",
    [
        *["", " ", "now", "-", "--5", "+5", "1e3", "1_000", "5.5", " 5", "5\n", "٣"],
        *["\uff11\uff12", "²", "2027-03-01T08Z", "20270301T080000Z", "2027-W09-1T08:00Z"],
        *["2027-060T08:00Z", "27-03-01T08:00Z", "2027-03-01T08:00:00.Z"],
        *["2027-03-01T08:00:00.1234567890Z", "2027-03-01T08:00:00,5Z", "2027-03-01T08:00.5Z"],
        *["2027-03-01  08:00Z", "2027-03-01_08:00Z", "2027-03-01T08:00 Z", "2027-03-01T08:00Z\n"],
        *[" 2027-03-01T08:00Z", "2027-03-01T08:00+1", "2027-03-01T08:00+01:00:00"],
        *["2027-03-01T08:00[Europe/Oslo]", "+2027-03-01T08:00Z", "2027-03-01T08:00\u221201:00"],
        *["2027-03-01T0\u0668:00Z", "10000-01-01T00:00Z", "-2027-03-01T08:00Z"],
    ],
)
def test_what_is_no_instant_is_refused(value: str) -> None:
    with pytest.raises(TimeTextError, match="is not an instant"):
        parse_instant(value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2027-03-01T08:00:00", "add Z or an offset such as [+]01:00"),
        ("2027-03-01 08:00", "add Z or an offset such as [+]01:00"),
        ("2027-03-01", "no time of day and no offset"),
        ("2027-03-01T24:00Z", "00:00 of the next day"),
        ("2016-12-31T23:59:60Z", "leap seconds"),
        ("2027-02-29T08:00Z", "no such date"),
        ("2027-13-01T08:00Z", "no such date"),
        ("0000-01-01T00:00Z", "no such date"),
        ("2027-03-01T25:00Z", "no such time of day"),
        ("2027-03-01T08:60Z", "no such time of day"),
        ("2027-03-01T08:00:61Z", "no such time of day"),
        ("2027-03-01T08:00+24:00", "no such offset"),
        ("2027-03-01T08:00+01:60", "no such offset"),
        ("0001-01-01T00:00+00:01", "before the year 1"),
        ("9999-12-31T23:59-00:01", "after the year 9999"),
        ("9999-12-31T23:59:59.9991Z", "after the year 9999"),
        (INSTANT_MS_MIN - 1, "before the year 1"),
        (INSTANT_MS_MAX + 1, "after the year 9999"),
        ("9" * 100, "after the year 9999"),
        pytest.param(10**6000, "after the year 9999", id="10**6000"),
    ],
)
def test_a_refused_instant_says_why(value: int | str, reason: str) -> None:
    with pytest.raises(TimeTextError, match=reason):
        parse_instant(value)


@pytest.mark.parametrize("parse", [parse_duration, parse_instant])
@pytest.mark.parametrize(
    "value", [True, False, 1.0, 1.5, float("nan"), None, b"5", [], {}, object()]
)
def test_no_other_type_is_a_time(parse: Callable[[object], int], value: object) -> None:
    with pytest.raises(TimeTextError, match="is not a"):
        parse(value)


@pytest.mark.parametrize("part", ["9", "-9", "1h", " ", "P", "1h ", "2027-03-01", "\u0663"])
@pytest.mark.parametrize("parse", [parse_duration, parse_instant])
def test_long_text_is_refused_unread(parse: Callable[[str], int], part: str) -> None:
    with pytest.raises(TimeTextError, match="longer than 128 characters"):
        parse(part * 1_000_000)


@pytest.mark.parametrize("value", ["x" * 78, "x" * 79, "x" * 200, "\x00" * 70, "'\"" * 60])
def test_the_value_in_a_refusal_is_at_most_80_characters(value: str) -> None:
    with pytest.raises(TimeTextError) as refused:
        parse_duration(value)
    shown, _, _ = str(refused.value).partition(" is not a duration")
    assert len(shown) <= 80
    assert shown.endswith("…") == (shown != repr(value))


def test_a_refusal_names_the_value_the_reason_and_the_accepted_forms() -> None:
    with pytest.raises(TimeTextError) as refused:
        parse_duration("soon")
    assert str(refused.value) == (
        "'soon' is not a duration: it cannot be read. Accepted: an integer of milliseconds"
        " from 0 to 1,000 years, a text such as 250ms, 90s, 15m, 36h, 2d, 1w, 1h30m or 1.5h,"
        " or ISO 8601 such as PT10S or P1DT12H."
    )


def test_a_value_whose_repr_would_raise_is_refused_by_its_type() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(TimeTextError, match="a value of type list"):
        parse_duration(cast("int", deep))


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0s"),
        (1, "1ms"),
        (250, "250ms"),
        (1_500, "1s500ms"),
        (5_400_000, "1h30m"),
        (36 * HOUR, "1d12h"),
        (14 * DAY, "14d"),
        (60_001, "1m1ms"),
        (DURATION_MS_MAX, "365250d"),
    ],
)
def test_a_duration_is_printed_as_the_shortest_exact_sum(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (MARCH_2027 + 123, "2027-03-01T08:00:00.123Z"),
        (INSTANT_MS_MIN, "0001-01-01T00:00:00.000Z"),
        (INSTANT_MS_MAX, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_an_instant_is_printed_in_utc_with_milliseconds(ms: int, text: str) -> None:
    assert format_instant(ms) == text


@pytest.mark.parametrize("ms", [-1, DURATION_MS_MAX + 1])
def test_a_duration_out_of_range_is_not_printed(ms: int) -> None:
    with pytest.raises(TimeTextError):
        format_duration(ms)


@pytest.mark.parametrize("ms", [INSTANT_MS_MIN - 1, INSTANT_MS_MAX + 1])
def test_an_instant_out_of_range_is_not_printed(ms: int) -> None:
    with pytest.raises(TimeTextError):
        format_instant(ms)
