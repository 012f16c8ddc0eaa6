"""Arguments as services write them become exact commands, or a refusal that names the argument."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client import arguments
from tocsin.codec.commands import decode_command, encode_command
from tocsin.core.errors import Reason, Refusal
from tocsin.core.time_text import DURATION_MS_MAX
from tocsin.core.values import Offset

MARCH = 1_803_888_000_000  # 2027-03-01T08:00Z


@pytest.mark.parametrize(
    "value",
    [
        MARCH,
        str(MARCH),
        "2027-03-01T09:00+01:00",
        datetime(2027, 3, 1, 8, tzinfo=UTC),
        datetime(2027, 3, 1, 9, tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_an_instant_is_read_however_it_is_written(value: arguments.Instant) -> None:
    assert arguments.arm("pay", {"at": value}).at == MARCH


@pytest.mark.parametrize("value", [129_600_000, "36h", "P1DT12H", timedelta(hours=36)])
def test_a_duration_is_read_however_it_is_written(value: arguments.Duration) -> None:
    armed = arguments.arm("pay", {"after": value, "every": value})
    assert (armed.after, armed.every) == (129_600_000, 129_600_000)


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_is_never_early(value: datetime) -> None:
    try:
        ms = arguments.instant_of("at", value)
    except Refusal:  # the last moments of 9999 have no next millisecond
        assert value.year == 9999
        return
    exact_us = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert 0 <= ms * 1000 - exact_us < 1000


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(milliseconds=DURATION_MS_MAX)))
def test_a_delay_is_never_shorter(value: timedelta) -> None:
    exact_us = value // timedelta(microseconds=1)
    assert 0 <= arguments.duration_of("after", value) * 1000 - exact_us < 1000


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"at": datetime(2027, 3, 1)}, "at"),  # noqa: DTZ001  the point
        ({"at": "tomorrow"}, "at"),
        ({"at": 1.5}, "at"),
        ({"at": True}, "at"),
        ({"after": "banana"}, "after"),
        ({"after": timedelta(seconds=-1)}, "after"),
        ({"after": timedelta(days=400_000)}, "after"),
        ({"every": "-1s"}, "every"),
        ({"payload": {"a": float("nan")}}, "payload"),
        ({"payload": object()}, "payload"),
        ({"payload": "\ud800"}, "payload"),
        ({"payload": ["\ud800"]}, "payload"),
        ({"content_type": "\ud800"}, "content_type"),
        ({"headers": {"x\ud800": "y"}}, "headers"),
        ({"headers": {"x": "\ud800"}}, "headers['x']"),
        ({"headers": {"x": 1}}, "headers['x']"),
        ({"to": 3}, "to"),
        ({"if_version": -1}, "if_version"),
        ({"if_version": "7"}, "if_version"),
        ({"if_version": True}, "if_version"),
        ({"if_version": 2**63}, "if_version"),
        ({"until": "tomorrow"}, "until"),
        ({"cron": 5}, "cron"),
        ({"zone": "\ud800"}, "zone"),
        ({"exclude": [5]}, "exclude"),
        ({"every": "R5/PT10S", "occurrences": 3}, "occurrences"),
        ({"occurrences": 0}, "occurrences"),
        ({"occurrences": True}, "occurrences"),
        ({"jitter": "banana"}, "jitter"),
        ({"missed": 3}, "missed"),
        ({"catch_up": -1}, "catch_up"),
        ({"ttl": "x"}, "ttl"),
        ({"traceparent": "\ud800"}, "traceparent"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_named(options: Any, field: str) -> None:
    with pytest.raises(Refusal) as caught:
        arguments.arm("pay", options)
    assert caught.value.reason is Reason.INVALID
    assert caught.value.field == field
    assert caught.value.way_out


@pytest.mark.parametrize("actor", ["", "\ud800", 7, None])
def test_an_actor_is_text_that_utf8_can_hold(actor: object) -> None:
    with pytest.raises(Refusal) as caught:
        arguments.key_of(actor)
    assert caught.value.field == "actor"


@pytest.mark.parametrize(
    ("given_payload", "payload", "content_type"),
    [
        (None, b"", None),
        (b"\x00\xff", b"\x00\xff", None),
        (bytearray(b"x"), b"x", None),
        ("größe", "größe".encode(), None),
        ({"b": 1, "a": [1.5, "ü"]}, '{"b":1,"a":[1.5,"ü"]}'.encode(), "application/json"),
        (7, b"7", "application/json"),
        (False, b"false", "application/json"),
        ({1: timedelta(seconds=1)}, b'{"1":"PT1S"}', "application/json"),
    ],
)
def test_a_payload_is_bytes_text_or_compact_json(
    given_payload: object, payload: bytes, content_type: str | None
) -> None:
    assert arguments.payload_of(given_payload) == (payload, content_type)


def test_a_content_type_of_ones_own_wins() -> None:
    armed = arguments.arm("pay", {"payload": {"a": 1}, "content_type": "application/vnd.pay+json"})
    assert armed.content_type == "application/vnd.pay+json"


def test_headers_keep_order_and_repetition() -> None:
    pairs: list[tuple[str, str | bytes | None]] = [("x", "1"), ("x", b"2"), ("y", None)]
    assert arguments.headers_of(pairs) == (("x", b"1"), ("x", b"2"), ("y", None))


@given(st.text(min_size=1), st.binary(), st.integers(0, 2**63 - 1))
def test_what_is_sent_is_what_the_engine_reads(name: str, payload: bytes, version: int) -> None:
    sent = arguments.arm(name, {"payload": payload, "after": "1h", "if_version": version})
    assert decode_command(encode_command(sent), (), Offset(-1), None) == sent


def test_each_other_command_says_what_was_asked() -> None:
    assert arguments.move("pay", {"every": "15m", "if_version": 3}).if_version == 3
    assert arguments.cancel("pay").reminder == "pay"
    assert arguments.cancel(None, all_of_actor=True).all
    assert arguments.cancel(None, operation="pay").operation == "pay"
    under = arguments.cancel(None, prefix="pay:1", raw=True)
    assert (under.prefix, under.raw) == ("pay:1", True)
    assert arguments.pause("pay", note="so").note == "so"
    assert arguments.resume(None, all_of_actor=True).all
    late = arguments.arm("pay", {"missed": "skip", "catch_up": "1h", "ttl": "5m", "jitter": "1s"})
    assert (late.missed, late.catch_up, late.ttl, late.jitter) == (
        "skip",
        3_600_000,
        300_000,
        1_000,
    )
    ended = arguments.arm("pay", {"until": MARCH, "occurrences": 3})
    assert (ended.until, ended.occurrences) == (MARCH, 3)
    nightly = arguments.move(
        "pay", {"cron": "0 2 * * *", "zone": "Europe/Berlin", "exclude": [date(2027, 12, 24)]}
    )
    assert (nightly.cron, nightly.zone) == ("0 2 * * *", "Europe/Berlin")
    assert nightly.exclude == ("2027-12-24",)
    five = arguments.arm("pay", {"every": "R5/PT10S"})
    assert (five.every, five.occurrences) == (10_000, 5)
    armed = arguments.arm("pay", {"if_earlier": True, "if_changed": True})
    assert (armed.if_earlier, armed.if_changed) == (True, True)
    assert arguments.fire("pay").reminder == "pay"
