"""Laws of time as text: exact both ways, never early, in order, and no exception but its own."""

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

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

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNIT_MS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
ISO_UNITS = ("W", "D", "H", "M", "S")

durations_ms = st.integers(0, DURATION_MS_MAX)
instants_ms = st.integers(INSTANT_MS_MIN, INSTANT_MS_MAX)
decimals = st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,12})?", fullmatch=True)
offsets = st.integers(-1_439, 1_439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
# A day and a second inside the ends: offset and rounding must not lead out of range.
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=offsets)  # noqa: DTZ001

#: Nearly right texts, which reach deeper than arbitrary ones.
near_texts = st.one_of(
    st.text(),
    st.text(alphabet="0123456789.-+: TZPtzwdhmsWDHMSY٣\uff11\n\x00", max_size=40),
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9](:[0-6][0-9](\.[0-9]{1,10})?)?"
        r"(Z|[+-][0-2][0-9]:?[0-6][0-9])?"
    ),
    st.from_regex(r"P([0-9.]+[YMWD]){0,3}T?([0-9.]+[HMS]){0,3}"),
    st.from_regex(r"([0-9]{1,20}(\.[0-9]+)?(ms|[smhdw]) ?){1,4}"),
)


@st.composite
def compact_durations(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A compound such as `1h 0.5m` and its exact milliseconds."""
    units = [unit for unit in UNIT_MS if draw(st.booleans())] or ["s"]
    counts = [draw(decimals) for _ in units]
    text = draw(st.sampled_from(["", " "])).join(map("".join, zip(counts, units, strict=True)))
    return text, _exact(counts, units)


@st.composite
def iso_durations(draw: st.DrawFn) -> tuple[str, Fraction]:
    """An ISO 8601 duration, fraction only in its last number, and its exact milliseconds."""
    units = [unit for unit in ISO_UNITS if draw(st.booleans())] or ["S"]
    whole = st.from_regex(r"[0-9]{1,6}", fullmatch=True)
    counts = [draw(whole) for _ in units[:-1]] + [draw(decimals)]
    parts = [count + unit for count, unit in zip(counts, units, strict=True)]
    dates = [part for part in parts if part[-1] in "WD"]
    times = [part for part in parts if part[-1] in "HMS"]
    text = f"P{''.join(dates)}" + (f"T{''.join(times)}" if times else "")
    return text, _exact(counts, [unit.lower() for unit in units])


def _exact(counts: list[str], units: list[str]) -> Fraction:
    pairs = zip(counts, units, strict=True)
    return sum((Fraction(count) * UNIT_MS[unit] for count, unit in pairs), Fraction(0))


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@given(durations_ms)
def test_a_printed_duration_reads_back_as_itself(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms
    assert parse_duration(str(ms)) == parse_duration(ms) == ms


@given(instants_ms)
def test_a_printed_instant_reads_back_as_itself(ms: int) -> None:
    assert parse_instant(format_instant(ms)) == ms
    assert parse_instant(str(ms)) == parse_instant(ms) == ms


@given(instants_ms, instants_ms)
def test_printed_instants_sort_as_their_instants(one: int, other: int) -> None:
    assert (format_instant(one) < format_instant(other)) == (one < other)


@given(near_texts | st.integers())
@example("9" * 10_000)
@example("٣s")
@example("\ud800")
@example(1 << 20_000)  # its str() and repr() raise
def test_no_value_raises_anything_but_the_refusal(value: int | str) -> None:
    for parse, least, most in (
        (parse_duration, 0, DURATION_MS_MAX),
        (parse_instant, INSTANT_MS_MIN, INSTANT_MS_MAX),
    ):
        try:
            assert least <= parse(value) <= most
        except TimeTextError as refused:
            assert len(str(refused)) < 500  # noqa: PT017 - both outcomes are lawful


@given(st.floats() | st.booleans() | st.none() | st.binary() | st.lists(st.integers()))
def test_what_is_neither_integer_nor_text_is_refused(value: object) -> None:
    for parse in (parse_duration, parse_instant):
        with pytest.raises(TimeTextError):
            parse(value)  # type: ignore[arg-type]


@given(compact_durations() | iso_durations())
def test_a_duration_is_what_is_written_rounded_up(case: tuple[str, Fraction]) -> None:
    text, exact = case
    assume(exact <= DURATION_MS_MAX)
    assert 0 <= parse_duration(text) - exact < 1


@given(compact_durations() | iso_durations(), compact_durations() | iso_durations())
def test_durations_keep_their_order(one: tuple[str, Fraction], other: tuple[str, Fraction]) -> None:
    (shorter, least), (longer, most) = sorted([one, other], key=lambda case: case[1])
    assume(most <= DURATION_MS_MAX)
    assert least <= most
    assert parse_duration(shorter) <= parse_duration(longer)


@given(moments)
def test_an_instant_is_what_is_written_rounded_up(moment: datetime) -> None:
    assert 0 <= parse_instant(moment.isoformat()) * 1_000 - _micros(moment) < 1_000


@given(moments, st.integers(0, 999_999_999))
def test_every_nanosecond_of_a_second_is_rounded_up(moment: datetime, nanos: int) -> None:
    whole = moment.replace(microsecond=0)
    head, offset = whole.isoformat()[:19], whole.isoformat()[19:]
    exact = _micros(whole) * 1_000 + nanos
    assert 0 <= parse_instant(f"{head}.{nanos:09}{offset}") * 1_000_000 - exact < 1_000_000


@given(moments, moments)
def test_instants_keep_their_order_across_offsets(one: datetime, other: datetime) -> None:
    earlier, later = sorted([one, other])
    assert parse_instant(earlier.isoformat()) <= parse_instant(later.isoformat())


@given(moments, offsets)
def test_the_offset_does_not_change_the_instant(moment: datetime, offset: timezone) -> None:
    assert parse_instant(moment.astimezone(offset).isoformat()) == parse_instant(moment.isoformat())


@given(
    near_texts
    | moments.map(datetime.isoformat)
    | moments.map(lambda moment: moment.isoformat(" ", "minutes"))
)
def test_what_datetime_reads_too_is_the_same_instant(text: str) -> None:
    try:
        ours, theirs = parse_instant(text), datetime.fromisoformat(text)
    except ValueError:
        return
    if theirs.tzinfo is None:  # digits alone: milliseconds to us, a date to datetime
        assert text.lstrip("-").isdigit()
        return
    # datetime drops digits after the sixth, so its ceiling may be the millisecond before ours.
    ceiling = -(-_micros(theirs) // 1_000)
    assert ours == ceiling or (len(text.partition(".")[2]) > 6 and ours == ceiling + 1)
