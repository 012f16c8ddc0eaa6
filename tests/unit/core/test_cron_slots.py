"""Slots at their edges. Zones and years are in test_cron_table.py, laws in test_cron_laws.py."""

import pytest

from tocsin.core.errors import Refusal
from tocsin.core.schedule.cron_text import read_cron
from tocsin.core.schedule.slots import Passed, next_slot, passed
from tocsin.core.schedule.values import Cron, CronSlot, Gap, Mark, Overlap
from tocsin.core.time_text import DAY_MS, INSTANT_MS_MAX, INSTANT_MS_MIN, parse_instant
from tocsin.core.values import EpochMs


def at(text: str) -> EpochMs:
    return EpochMs(parse_instant(text))


def test_a_slot_does_not_follow_itself() -> None:
    cron = read_cron("0 2 * * *")
    assert next_slot(cron, at("2027-04-01T02:00Z")) == CronSlot(
        at("2027-04-02T02:00Z"), Mark.NORMAL
    )


def test_a_slot_follows_the_millisecond_before_it() -> None:
    cron = read_cron("0 2 * * *")
    assert next_slot(cron, at("2027-04-01T01:59:59.999Z")) == CronSlot(
        at("2027-04-01T02:00Z"), Mark.NORMAL
    )


def test_all_slots_in_one_gap_are_one() -> None:
    cron = read_cron("*/7 2 * * *", zone="Europe/Berlin")
    slot = next_slot(cron, at("2027-03-27T12:00Z"))
    assert slot == CronSlot(at("2027-03-28T01:00Z"), Mark.GAP)
    following = next_slot(cron, slot.due)
    assert following == CronSlot(at("2027-03-29T00:00Z"), Mark.NORMAL)


def test_the_end_of_a_gap_follows_the_millisecond_before_it() -> None:
    cron = read_cron("30 2 * * *", zone="Europe/Berlin")
    slot = next_slot(cron, EpochMs(at("2027-03-28T01:00Z") - 1))
    assert slot == CronSlot(at("2027-03-28T01:00Z"), Mark.GAP)


def test_a_cron_that_lives_in_gaps_alone_ends_when_they_are_skipped() -> None:
    cron = read_cron("30 2 * MAR 0L", zone="Europe/Berlin", gap=Gap.SKIP)
    assert next_slot(cron, at("2027-01-01T00:00Z")) is None


def test_a_slot_on_an_excluded_date_does_not_exist() -> None:
    cron = read_cron("@daily", exclude=["2027-04-02", "2027-04-03"])
    slot = next_slot(cron, at("2027-04-01T12:00Z"))
    assert slot == CronSlot(at("2027-04-04T00:00Z"), Mark.NORMAL)


def test_a_minutely_cron_pauses_in_the_second_pass_unless_both_are_asked_for() -> None:
    first_pass_ends = at("2027-10-31T00:59Z")
    once = next_slot(read_cron("* * * * *", zone="Europe/Berlin"), first_pass_ends)
    both = next_slot(
        read_cron("* * * * *", zone="Europe/Berlin", overlap=Overlap.BOTH), first_pass_ends
    )
    assert once == CronSlot(at("2027-10-31T02:00Z"), Mark.NORMAL)
    assert both == CronSlot(at("2027-10-31T01:00Z"), Mark.OVERLAP)


def test_the_calendar_ends_with_the_year_9999() -> None:
    cron = read_cron("@yearly", zone="Pacific/Auckland")
    assert next_slot(cron, EpochMs(INSTANT_MS_MAX - 7 * DAY_MS)) is None
    assert next_slot(cron, EpochMs(INSTANT_MS_MAX)) is None


def test_the_calendar_begins_with_the_year_1() -> None:
    slot = next_slot(read_cron("@monthly"), EpochMs(INSTANT_MS_MIN))
    assert slot == CronSlot(at("0001-02-01T00:00Z"), Mark.NORMAL)


def test_a_zone_that_is_gone_is_refused_by_name() -> None:
    # Armed under a tz database that knew it; the newer one does not.
    with pytest.raises(Refusal, match="zone = 'Europe/Atlantis'"):
        next_slot(Cron(text="0 0 * * *", zone="Europe/Atlantis"), at("2027-01-01T00:00Z"))


def test_nothing_passed_before_the_first_slot() -> None:
    cron = read_cron("@daily")
    assert passed(cron, at("2027-04-01T01:00Z"), at("2027-04-01T23:59Z")) == Passed(0, None)


def test_what_passed_leaves_out_the_start_and_holds_the_end() -> None:
    cron = read_cron("@daily")
    assert passed(cron, at("2027-04-01T00:00Z"), at("2027-04-03T00:00Z")) == Passed(
        2, at("2027-04-03T00:00Z")
    )


def test_what_passed_in_a_year_by_the_second_is_counted_without_walking() -> None:
    cron = read_cron("* * * * * *", zone="America/New_York", overlap=Overlap.BOTH)
    start = at("2027-01-01T00:00Z")
    end = EpochMs(start + 365 * DAY_MS)
    assert passed(cron, start, end) == Passed(365 * DAY_MS // 1_000, end)
