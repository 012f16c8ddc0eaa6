"""What cron texts mean, and how a wrong one is refused: the field, its value, the way out."""

import pytest

from tocsin.core.errors import Reason, Refusal
from tocsin.core.schedule.cron_text import CRON_CHARS_MAX, EXCLUDED_DATES_MAX, read_cron
from tocsin.core.schedule.slots import next_slot
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.time_text import format_instant, parse_instant
from tocsin.core.values import EpochMs

#: A Thursday.
START = EpochMs(parse_instant("2027-04-01T10:11:12.500Z"))


def first_after(text: str, start: EpochMs = START) -> str:
    slot = next_slot(read_cron(text), start)
    assert slot is not None
    return format_instant(slot.due).removesuffix(":00.000Z").removesuffix(".000Z")


def refusal_of(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read_cron(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2027-04-01T10:12"),
        ("*/15 * * * *", "2027-04-01T10:15"),
        ("0 2 * * *", "2027-04-02T02:00"),
        ("5,10 8-10 * * *", "2027-04-02T08:05"),
        ("0 9 * * MON-FRI", "2027-04-02T09:00"),
        ("0 9 * * mon", "2027-04-05T09:00"),
        ("0 9 * * 0", "2027-04-04T09:00"),
        ("0 9 * * 7", "2027-04-04T09:00"),
        ("0 9 * * SAT-SUN", "2027-04-03T09:00"),
        ("0 9 * * SUN-SUN", "2027-04-04T09:00"),
        ("0 9 * * 0-0", "2027-04-04T09:00"),
        ("0 0 1 JAN *", "2028-01-01T00:00"),
        ("0 0 L * *", "2027-04-30T00:00"),
        ("0 0 LW * *", "2027-04-30T00:00"),
        ("0 0 * * 5L", "2027-04-30T00:00"),
        ("0 0 * * MON#2", "2027-04-12T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 12 ? * MON-FRI", "2027-04-01T12:00"),
        ("0 0 12 1 * ?", "2027-04-01T12:00"),
        ("  0   2\t* * * ", "2027-04-02T02:00"),
    ],
)
def test_fields_mean_what_cron_says(text: str, expected: str) -> None:
    assert first_after(text) == expected


def test_of_six_fields_the_first_is_the_seconds() -> None:
    assert first_after("20 11 10 * * *") == "2027-04-01T10:11:20"


@pytest.mark.parametrize(
    ("nickname", "expected"),
    [
        ("@hourly", "2027-04-01T11:00"),
        ("@daily", "2027-04-02T00:00"),
        ("@midnight", "2027-04-02T00:00"),
        ("@weekly", "2027-04-04T00:00"),
        ("@monthly", "2027-05-01T00:00"),
        ("@yearly", "2028-01-01T00:00"),
        ("@annually", "2028-01-01T00:00"),
        ("@Daily", "2027-04-02T00:00"),
    ],
)
def test_nicknames_mean_what_crontab_says(nickname: str, expected: str) -> None:
    assert first_after(nickname) == expected


def test_either_restricted_day_is_enough() -> None:
    assert first_after("0 0 13 * FRI") == "2027-04-02T00:00"


def test_days_of_which_one_starts_with_a_star_must_both_match() -> None:
    assert first_after("0 0 */13 * FRI") == "2027-05-14T00:00"


def test_spelling_makes_no_difference_to_the_value() -> None:
    assert read_cron(" 0  9 * jan mon-fri") == read_cron("0 9 * JAN MON-FRI")


def test_every_option_is_kept() -> None:
    cron = read_cron(
        "0 2 * * *",
        zone="Europe/Berlin",
        gap=Gap.SKIP,
        overlap=Overlap.BOTH,
        exclude=["2027-12-25", "2027-01-01", "2027-12-25"],
    )
    assert cron == Cron(
        text="0 2 * * *",
        zone="Europe/Berlin",
        gap=Gap.SKIP,
        overlap=Overlap.BOTH,
        exclude=("2027-01-01", "2027-12-25"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("60 * * * *", "minute is '60': it takes 0-59"),
        ("* 24 * * *", "hour is '24': it takes 0-23"),
        ("* * 0 * *", "day of month is '0': it takes 1-31"),
        ("* * * 13 *", "month is '13': it takes 1-12 or JAN-DEC"),
        ("* * * JANUARY *", "month is 'JANUARY': it takes 1-12 or JAN-DEC"),
        ("* * * * 8", "day of week is '8': it takes 0-7 or SUN-SAT"),
        ("60 * * * * *", "second is '60': it takes 0-59"),
        ("1,,2 * * * *", "minute is '1,,2'"),
        ("-1 * * * *", "minute is '-1'"),
        ("*/0 * * * *", "minute is '*/0'"),
        ("² * * * *", "minute is '²'"),
        ("* * * * MON#6", "day of week is 'MON#6'"),
        ("H 2 * * *", "give jitter"),
        ("* * 15W * *", "the weekday nearest to a day is not read"),
        ("0 0 * * FRI-MON", "a range counts up: write one that wraps as two"),
        ("0 22-2 * * *", "a range counts up: write one that wraps as two"),
        ("* * * * * 30", "of six fields the first is the seconds"),
        ("*/90 * * * *", "start anew with each hour, so that the largest is 60; a longer period"),
        ("0 0 L/2 * *", "day of month is 'L/2': a step needs a range"),
        ("0 0 ? * ?", "? stands alone for one of the days"),
        ("? * * * *", "? stands alone for one of the days"),
        ("0 0 12 ? * 2-6", "write names such as MON-FRI"),
        ("", "it has 0 fields"),
        ("* * *", "it has 3 fields: give minute hour"),
        ("0 0 12 * * * 2027", "years are not read: leave them out, and give until"),
        ("@reboot", "give an instant as at"),
        ("@every 1h", "give it as every"),
        ("@fortnightly", "there is no such nickname: give"),
        ("CRON_TZ=UTC 0 2 * * *", "give zone"),
        ("*" * (CRON_CHARS_MAX + 1), "give a shorter one"),
    ],
)
def test_a_wrong_text_is_refused_with_its_field_and_a_way_out(text: str, said: str) -> None:
    refusal = refusal_of(text)
    assert (refusal.reason, refusal.field) == (Reason.INVALID, "cron")
    assert said in refusal.way_out


@pytest.mark.parametrize(
    "text",
    ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30,31 FEB ?", "0 0 */16 2 MON#5", "1 0 0 31 2 *"],
)
def test_a_cron_that_never_matches_is_refused(text: str) -> None:
    assert "it never matches" in refusal_of(text).way_out


@pytest.mark.parametrize("text", ["0 0 30 2 MON", "0 0 29 2 *", "0 0 */28 2 MON#5"])
def test_a_cron_that_matches_rarely_is_taken(text: str) -> None:
    assert next_slot(read_cron(text), START) is not None


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("utc", "did you mean UTC"),
        ("+02:00", "a fixed +02:00 is Etc/GMT-2"),
        ("Mars/Phobos", "give an IANA name"),
        ("../../etc/passwd", "give an IANA name"),
        ("\0", "give an IANA name"),
        ("", "give an IANA name"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_one(zone: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_cron("@daily", zone=zone)
    assert caught.value.field == "zone"
    assert said in caught.value.way_out


@pytest.mark.parametrize("given", ["25.12.2027", "2027-02-30", "2027-12-25T00:00Z", "", "20271225"])
def test_an_excluded_date_is_a_date(given: str) -> None:
    with pytest.raises(Refusal) as caught:
        read_cron("@daily", exclude=[given])
    assert caught.value.field == "exclude"
    assert "2027-12-24" in caught.value.way_out


def test_excluded_dates_have_a_bound() -> None:
    dates = [f"{year}-01-01" for year in range(2000, 2000 + EXCLUDED_DATES_MAX + 1)]
    with pytest.raises(Refusal) as caught:
        read_cron("@daily", exclude=dates)
    assert (caught.value.reason, caught.value.field) == (Reason.LIMIT, "exclude")
