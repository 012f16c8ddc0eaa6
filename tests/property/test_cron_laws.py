"""Laws of schedules: strictly increasing, nothing between, nothing that the fields do not say.

The oracle steps through every minute of a window, and asks zoneinfo about folds, as we never do.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tocsin.core.errors import Refusal
from tocsin.core.schedule.cron_text import fields_of, read_cron
from tocsin.core.schedule.jitter import jittered
from tocsin.core.schedule.preview import preview
from tocsin.core.schedule.schedule_text import parse_schedule
from tocsin.core.schedule.slots import next_slot, passed
from tocsin.core.schedule.values import Cron, CronSlot, Gap, Interval, Mark, Overlap, Schedule
from tocsin.core.schedule.zones import period_at
from tocsin.core.time_text import DAY_MS, DURATION_MS_MAX, HOUR_MS, MINUTE_MS, format_duration
from tocsin.core.values import DurationMs, EpochMs


@cache
def zone_info(name: str) -> ZoneInfo:
    """Not ZoneInfo(name): that reads the machine's data, whose version may be another."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as source:
        return ZoneInfo.from_file(source, key=name)


EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local seconds have no zone
MINUTE_SECONDS = 60
WINDOW_MINUTES = 36 * 60
#: The first look at a zone reads its file, which takes longer than all others.
reads_zones = settings(deadline=None)

ALL_ZONES = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
RESTLESS_ZONES = (
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kwajalein",
)


class Told(NamedTuple):
    """A cron text, and what it says as sets, known from how it was made and not from reading it."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    def says(self, local: datetime) -> bool:
        *_, by_month_day, _, by_weekday = self.text.split(" ")
        month_day = local.day in self.days
        weekday = local.isoweekday() % 7 in self.weekdays
        both = by_month_day == "*" or by_weekday == "*"
        return (
            local.minute in self.minutes
            and local.hour in self.hours
            and local.month in self.months
            and ((month_day and weekday) if both else (month_day or weekday))
        )


def sets(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    everything = frozenset(range(low, high + 1))
    lists = st.frozensets(st.integers(low, high), min_size=1, max_size=5)
    ranges = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    steps = st.integers(1, high - low)
    return st.one_of(
        st.just(("*", everything)),
        steps.map(lambda step: (f"*/{step}", frozenset(range(low, high + 1, step)))),
        lists.map(lambda picked: (",".join(map(str, picked)), picked)),
        ranges.map(lambda ends: (f"{ends[0]}-{ends[1]}", frozenset(range(ends[0], ends[1] + 1)))),
    )


def told(*fields: tuple[str, frozenset[int]]) -> Told:
    return Told(" ".join(text for text, _ in fields), *(values for _, values in fields))


def in_every_month(field: tuple[str, frozenset[int]]) -> bool:
    return min(field[1]) <= 28


def without_star_steps(field: tuple[str, frozenset[int]]) -> bool:
    # `*/2` makes a day field "starred" as well: the oracle would need that rule twice.
    return "*/" not in field[0]


tellings = st.builds(
    told,
    sets(0, 59),
    sets(0, 23),
    sets(1, 31).filter(without_star_steps).filter(in_every_month),
    sets(1, 12),
    sets(0, 6).filter(without_star_steps),
)
busy_tellings = st.builds(
    told,
    sets(0, 59),
    sets(0, 23),
    st.just(("*", frozenset(range(1, 32)))),
    st.just(("*", frozenset(range(1, 13)))),
    st.just(("*", frozenset(range(7)))),
)
zones = st.sampled_from(RESTLESS_ZONES) | st.sampled_from(ALL_ZONES)
seconds = st.integers(0, 2_145_916_800)  # 1970 to 2037


@st.composite
def crons(draw: st.DrawFn, texts: st.SearchStrategy[Told] = tellings) -> tuple[Cron, Told]:
    said = draw(texts)
    cron = read_cron(
        said.text,
        zone=draw(zones),
        gap=draw(st.sampled_from(Gap)),
        overlap=draw(st.sampled_from(Overlap)),
    )
    return cron, said


@st.composite
def instants(draw: st.DrawFn, zone: str) -> EpochMs:
    """Anywhere, or within hours of the next change of the zone's offset: there the bugs are."""
    second = draw(seconds)
    if draw(st.booleans()):
        second = period_at(zone, second).end + draw(st.integers(-26 * 3_600, 26 * 3_600))
    return EpochMs(second * 1_000 + draw(st.integers(0, 999)))


def slots_after(cron: Cron, after: EpochMs) -> Iterator[CronSlot]:
    slot = next_slot(cron, after)
    while slot is not None:
        yield slot
        slot = next_slot(cron, slot.due)


def is_twice(local: datetime) -> bool:
    first, second = (local.replace(fold=fold).utcoffset() for fold in (0, 1))
    assert first is not None
    assert second is not None
    return first > second


def stepped(cron: Cron, said: Told, start: int, end: int) -> list[int]:
    """Return the slots in [start, end), seconds of whole minutes, by trying every minute."""
    zone = zone_info(cron.zone)
    found = []
    for second in range(start, end, MINUTE_SECONDS):
        local = datetime.fromtimestamp(second, zone)
        just_before = datetime.fromtimestamp(second - MINUTE_SECONDS, zone)
        if is_slot(cron, said, local) or ends_gap(cron, said, just_before, local):
            found.append(second)
    return found


def is_slot(cron: Cron, said: Told, local: datetime) -> bool:
    if not said.says(local):
        return False
    match cron.overlap:
        case Overlap.FIRST:
            return not local.fold
        case Overlap.SECOND:
            return bool(local.fold) or not is_twice(local)
        case Overlap.BOTH:
            return True


def ends_gap(cron: Cron, said: Told, just_before: datetime, local: datetime) -> bool:
    minute = timedelta(minutes=1)
    left_out = just_before.replace(tzinfo=None) + minute
    end = local.replace(tzinfo=None)
    while cron.gap is Gap.AFTER and left_out < end:
        if said.says(left_out):
            return True
        left_out += minute
    return False


@reads_zones
@given(data=st.data(), made=crons())
def test_slots_strictly_increase_and_come_after_what_was_asked(
    data: st.DataObject, made: tuple[Cron, Told]
) -> None:
    cron, _ = made
    after = data.draw(instants(cron.zone))
    for slot in islice(slots_after(cron, after), 20):
        assert slot.due > after
        after = slot.due


@reads_zones
@given(data=st.data(), made=crons())
def test_a_slot_matches_its_fields_in_local_time_unless_it_is_marked_as_a_gap(
    data: st.DataObject, made: tuple[Cron, Told]
) -> None:
    cron, said = made
    for slot in islice(slots_after(cron, data.draw(instants(cron.zone))), 20):
        local = datetime.fromtimestamp(slot.due // 1_000, zone_info(cron.zone))
        assert slot.mark is Mark.GAP or (said.says(local) and local.second == 0)
        assert is_twice(local) == (slot.mark is Mark.OVERLAP)


@reads_zones
@given(data=st.data(), made=crons(busy_tellings))
def test_between_two_slots_there_is_none(data: st.DataObject, made: tuple[Cron, Told]) -> None:
    cron, said = made
    after = data.draw(instants(cron.zone))
    start = -(-after // MINUTE_MS) * MINUTE_SECONDS
    end = start + WINDOW_MINUTES * MINUTE_SECONDS
    # Offsets of whole minutes; Liberia kept seconds until 1972.
    assume(all(period_at(cron.zone, at).offset % MINUTE_SECONDS == 0 for at in (start, end)))
    found = []
    for slot in slots_after(cron, EpochMs(start * 1_000 - 1)):
        if slot.due >= end * 1_000:
            break
        found.append(slot.due // 1_000)
    assert found == stepped(cron, said, start, end)


@reads_zones
@given(data=st.data(), made=crons())
def test_asked_from_anywhere_in_between_the_next_slot_is_the_same(
    data: st.DataObject, made: tuple[Cron, Told]
) -> None:
    cron, _ = made
    after = data.draw(instants(cron.zone))
    slot = next_slot(cron, after)
    assume(slot is not None)
    assert slot is not None
    between = EpochMs(data.draw(st.integers(after, slot.due - 1)))
    again = next_slot(cron, between)
    assert again is not None
    assert again.due == slot.due


@reads_zones
@given(data=st.data(), made=crons(busy_tellings), hours=st.integers(0, 60))
def test_what_passed_is_what_walking_through_finds(
    data: st.DataObject, made: tuple[Cron, Told], hours: int
) -> None:
    cron, _ = made
    after = data.draw(instants(cron.zone))
    until = EpochMs(after + hours * HOUR_MS)
    walked = []
    for slot in slots_after(cron, after):
        if slot.due > until:
            break
        walked.append(slot.due)
    run = passed(cron, after, until)
    assert (run.count, run.newest) == (len(walked), walked[-1] if walked else None)


@reads_zones
@given(data=st.data(), made=crons(), days=st.integers(0, 4_000), part=st.integers(0, 4_000))
def test_what_passed_adds_up(
    data: st.DataObject, made: tuple[Cron, Told], days: int, part: int
) -> None:
    cron, _ = made
    after = data.draw(instants(cron.zone))
    until = EpochMs(after + days * DAY_MS)
    middle = EpochMs(after + min(part, days) * DAY_MS)
    parts = passed(cron, after, middle).count + passed(cron, middle, until).count
    assert passed(cron, after, until).count == parts


@given(said=tellings, second=st.integers(0, 59), at=seconds)
def test_fields_step_as_the_library_does(said: Told, second: int, at: int) -> None:
    for text in (said.text, f"{second} {said.text}", f"*/7 {said.text}"):
        fields = fields_of(text)
        local = at
        for expected in islice(CronSim(text, EPOCH + timedelta(seconds=at)), 5):
            found = fields.next_from(local + 1)
            assert found is not None
            assert EPOCH + timedelta(seconds=found) == expected
            local = found


@given(
    due=st.integers(0, 10**13),
    room=st.integers(1, 10**9) | st.none(),
    jitter=st.integers(0, DURATION_MS_MAX),
    delivery=st.text(),
)
def test_jitter_delays_by_at_most_itself_and_stays_before_the_next_slot(
    due: int, room: int | None, jitter: int, delivery: str
) -> None:
    assume(all(not "\ud800" <= char <= "\udfff" for char in delivery))
    following = None if room is None else EpochMs(due + room)
    at = jittered(EpochMs(due), following, DurationMs(jitter), delivery)
    assert due <= at <= due + jitter
    assert following is None or at < following
    assert at == jittered(EpochMs(due), following, DurationMs(jitter), delivery)


@given(text=st.text() | st.text(alphabet="0123456789*/,-?#LWSUNMOFRI @RPTHMS", max_size=30))
@example("R" + "9" * 100 + "/PT1S")
@example("0 0 * * " + "9" * 400)
@example("* * * * *\n")
def test_any_text_is_a_schedule_or_a_refusal(text: str) -> None:
    try:
        schedule = parse_schedule(text)
    except Refusal as refusal:
        assert refusal.field in {"cron", "every"}  # noqa: PT017 - the way out is what is tested
        assert refusal.way_out  # noqa: PT017
    else:
        assert preview(schedule, EpochMs(0), 2) or schedule.timing != Interval(every=DurationMs(1))


@given(made=crons())
def test_reading_what_was_read_changes_nothing(made: tuple[Cron, Told]) -> None:
    cron, _ = made
    again = read_cron(cron.text, zone=cron.zone, gap=cron.gap, overlap=cron.overlap)
    assert again == cron


@given(ms=st.integers(1, DURATION_MS_MAX), times=st.integers(1, 10**6))
def test_an_interval_is_read_from_all_its_forms(ms: int, times: int) -> None:
    text = format_duration(ms)
    endless = Schedule(timing=Interval(every=DurationMs(ms)))
    counted = Schedule(timing=Interval(every=DurationMs(ms)), occurrences=times)
    assert parse_schedule(text) == parse_schedule(f"@every {text}") == endless
    assert parse_schedule(f"R/{text}") == endless
    assert parse_schedule(f"R{times}/{text}") == counted


@pytest.mark.parametrize("zone", RESTLESS_ZONES)
def test_periods_tile_time_with_the_offsets_of_zoneinfo(zone: str) -> None:
    second = -2_000_000_000
    while second < 4_000_000_000:
        period = period_at(zone, second)
        for at, offset in (
            (period.start - 1, period.offset_before),
            (period.start, period.offset),
            (period.end - 1, period.offset),
            (period.end, period.offset_after),
        ):
            shift = datetime.fromtimestamp(at, UTC).astimezone(zone_info(zone)).utcoffset()
            assert shift == timedelta(seconds=offset)
        assert period.start <= second < period.end
        second = period.end
