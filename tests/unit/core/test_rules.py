"""What a command may ask: every bound from both sides, and every refusal as its author reads it."""

from typing import Any

import pytest

from tocsin.core.commands import Arm, Cancel, Move
from tocsin.core.errors import Reason, Refusal
from tocsin.core.limits import Limits
from tocsin.core.rules import (
    CONTENT_TYPE_CHARS_MAX,
    check_actor,
    check_arm,
    check_cancel,
    check_headers,
    check_move,
    check_name,
    check_room,
)
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX, INSTANT_MS_MIN
from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version

LIMITS = Limits(targets=frozenset({"orders"}))
HERE: dict[str, Any] = {"offset": Offset(9), "appended": EpochMs(1_800_000_000_000)}
INT64_MAX = 2**63 - 1
BARE = (
    "an operation is what stands before the colon of a name: give it without key and colon, or use "
    "prefix"
)
STAY = "stay within it, or ask the operator to raise it"
#: A family of four is one glyph and seven characters; an e with an accent may be two.
FAMILY = "👨\u200d👩\u200d👧\u200d👦"
ACCENT = "e\u0301"


def arm(**changes: Any) -> Arm:
    return Arm(**(HERE | {"reminder": "pay"} | changes))


def move(**changes: Any) -> Move:
    return Move(**(HERE | {"reminder": "pay", "after": DurationMs(0)} | changes))


# --- actors


@pytest.mark.parametrize(
    "actor",
    [
        "a",
        "order/1",
        "\0",
        "a\0b",
        "/",
        "a:b|c@d#e",
        "'\"\\",
        FAMILY,
        "שלום",
        "x" * 1024,
        "é" * 512,
    ],
)
def test_any_utf8_up_to_1024_bytes_is_an_actor(actor: str) -> None:
    assert check_actor(actor.encode(), LIMITS) == actor


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (None, "actor = None: the record key is the actor: send a non-empty key"),
        (b"", "actor = 0 bytes: the record key is the actor: send a non-empty key"),
        (b"\xff\xfe", "actor = 2 bytes: the record key must be UTF-8"),
        (b"\xed\xa0\x80", "actor = 3 bytes: the record key must be UTF-8"),
        (b"\xc0\x80", "actor = 2 bytes: the record key must be UTF-8"),
        ("é".encode() * 512 + b"x", f"actor = 1025: the limit actor_bytes_max is 1024: {STAY}"),
    ],
)
def test_a_key_that_is_no_actor_is_refused(key: bytes | None, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_actor(key, LIMITS)
    assert str(refused.value) == message


# --- names


@pytest.mark.parametrize(
    "name",
    [
        *["pay", "pay:1", "pay:a:b", "pay::", "pay: ", " ", "\0", "\0:\0", "a/b\\c|d@e#f'\"", "."],
        *[FAMILY, f"{ACCENT}:{ACCENT}", "שלום:עולם", "x" * 191, "⏰" * 191, "o:" + "k" * 189],
        *[ACCENT * 95, "\U0010ffff"],
    ],
)
def test_any_character_is_data_in_a_name_up_to_191(name: str) -> None:
    check_name(name, LIMITS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "reminder = '': a name is operation or operation:key, neither empty"),
        (":", "reminder = ':': a name is operation or operation:key, neither empty"),
        (":1", "reminder = ':1': a name is operation or operation:key, neither empty"),
        ("pay:", "reminder = 'pay:': the key after the colon is empty: leave out the colon"),
        ("x" * 192, f"reminder = 192: the limit name_chars_max is 191: {STAY}"),
        ("o:" + "k" * 190, f"reminder = 192: the limit name_chars_max is 191: {STAY}"),
        ("⏰" * 192, f"reminder = 192: the limit name_chars_max is 191: {STAY}"),
        (ACCENT * 96, f"reminder = 192: the limit name_chars_max is 191: {STAY}"),
    ],
)
def test_what_is_no_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_name(name, LIMITS)
    assert str(refused.value) == message


# --- instants, durations, periods


@pytest.mark.parametrize("make", [arm, move])
@pytest.mark.parametrize("at", [INSTANT_MS_MIN, -1, 0, 1, INSTANT_MS_MAX])
def test_instants_of_the_years_1_to_9999_pass(make: Any, at: int) -> None:
    (check_arm if make is arm else check_move)(make(at=at, after=None), LIMITS)


@pytest.mark.parametrize("make", [arm, move])
@pytest.mark.parametrize("after", [0, 1, DURATION_MS_MAX])
def test_delays_up_to_a_thousand_years_pass(make: Any, after: int) -> None:
    (check_arm if make is arm else check_move)(make(after=after), LIMITS)


@pytest.mark.parametrize("make", [arm, move])
@pytest.mark.parametrize("every", [100, DURATION_MS_MAX])
def test_periods_from_the_floor_to_a_thousand_years_pass(make: Any, every: int) -> None:
    (check_arm if make is arm else check_move)(make(every=every), LIMITS)


INSTANT = "an instant lies in the years 1 to 9999"
DURATION = "a duration is from 0 to 1,000 years"
FLOOR = "the smallest period, every_ms_min, is 100 ms: give a longer one"
APPEND_TIME = (
    "a delay counts from the broker's append time: set "
    "message.timestamp.type=LogAppendTime on the commands topic, or give `at`"
)


@pytest.mark.parametrize("make", [arm, move])
@pytest.mark.parametrize(
    ("when", "message"),
    [
        ({"at": INSTANT_MS_MIN - 1}, f"at = {INSTANT_MS_MIN - 1}: {INSTANT}"),
        ({"at": INSTANT_MS_MAX + 1}, f"at = {INSTANT_MS_MAX + 1}: {INSTANT}"),
        ({"at": INT64_MAX}, f"at = {INT64_MAX}: {INSTANT}"),
        ({"at": -INT64_MAX - 1}, f"at = {-INT64_MAX - 1}: {INSTANT}"),
        ({"after": -1}, f"after = -1: {DURATION}"),
        ({"after": DURATION_MS_MAX + 1}, f"after = {DURATION_MS_MAX + 1}: {DURATION}"),
        ({"after": INT64_MAX}, f"after = {INT64_MAX}: {DURATION}"),
        ({"every": -1}, f"every = -1: {DURATION}"),
        ({"every": DURATION_MS_MAX + 1}, f"every = {DURATION_MS_MAX + 1}: {DURATION}"),
        ({"every": INT64_MAX}, f"every = {INT64_MAX}: {DURATION}"),
        ({"every": 0}, f"every = 0: {FLOOR}"),
        ({"every": 99}, f"every = 99: {FLOOR}"),
        ({"at": 5, "after": 6}, "after = 6: give at or after, not both"),
        ({"after": 6, "appended": None}, f"after = 6: {APPEND_TIME}"),
    ],
)
def test_what_is_out_of_range_is_refused_with_its_field(
    make: Any, when: dict[str, int], message: str
) -> None:
    with pytest.raises(Refusal) as refused:
        (check_arm if make is arm else check_move)(make(**({"after": None} | when)), LIMITS)
    assert str(refused.value) == message


def test_no_setting_lets_a_period_of_nothing_through() -> None:
    with pytest.raises(Refusal):
        check_arm(arm(every=0), Limits(every_ms_min=DurationMs(0)))


# --- headers

RESERVED = (
    "the engine writes this header itself: leave it out; content_type is a field of the "
    "command, traceparent a header of its record"
)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("a", None), ("a", b""), ("a", b"\x00\xff")),
        tuple((str(number), b"") for number in range(32)),
        (("n" * 8192, None),),
        (("n", b"v" * 8191),),
        (("é", b"v" * 8190),),
        (("tracestate", b""), ("ce", b""), ("ceremony", b""), ("x-tocsin", b""), (" ", b"")),
        ((FAMILY, b""), ("a:b/c", b""), ("a\nb", b"")),
    ],
)
def test_headers_within_the_limits_pass(headers: tuple[Header, ...]) -> None:
    check_headers(headers, LIMITS)


@pytest.mark.parametrize(
    "name", ["Tocsin", "TOCSIN", "Content-Type", "CE_id", "Ce_type", "TraceParent"]
)
def test_header_names_differ_by_letter_case_as_they_do_in_kafka(name: str) -> None:
    check_headers(((name, b""),), LIMITS)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ((("", b""),), "headers = '': a header name is not empty and has no NUL: rename it"),
        (
            (("a\0", b""),),
            "headers = 'a\\x00': a header name is not empty and has no NUL: rename it",
        ),
        (
            (("a\ud800", b""),),
            "headers = 'a\\ud800': a header name must be UTF-8, without lone surrogates",
        ),
        ((("tocsin", b""),), f"headers = 'tocsin': {RESERVED}"),
        ((("content-type", None),), f"headers = 'content-type': {RESERVED}"),
        ((("traceparent", b""),), f"headers = 'traceparent': {RESERVED}"),
        ((("ce_", b""),), f"headers = 'ce_': {RESERVED}"),
        ((("fine", b""), ("ce_id", b"")), f"headers = 'ce_id': {RESERVED}"),
        ((("a", b""),) * 33, f"headers = 33: the limit headers_max is 32: {STAY}"),
        ((("n", b"v" * 8192),), f"headers = 8193: the limit headers_bytes_max is 8192: {STAY}"),
        ((("é", b"v" * 8191),), f"headers = 8193: the limit headers_bytes_max is 8192: {STAY}"),
        ((("n" * 8193, None),), f"headers = 8193: the limit headers_bytes_max is 8192: {STAY}"),
    ],
)
def test_headers_that_cannot_be_delivered_are_refused(
    headers: tuple[Header, ...], message: str
) -> None:
    with pytest.raises(Refusal) as refused:
        check_arm(arm(headers=headers), LIMITS)
    assert str(refused.value) == message


# --- the rest of an arm


@pytest.mark.parametrize(
    "changes",
    [
        {"payload": b"x" * 262_144},
        {"to": "orders"},
        {"content_type": ""},
        {"content_type": "x" * CONTENT_TYPE_CHARS_MAX},
        {"if_absent": True},
        {"if_version": Version(0)},
    ],
)
def test_an_arm_within_the_limits_passes(changes: dict[str, Any]) -> None:
    check_arm(arm(**changes), LIMITS)


TARGETS = "ask the operator to add this topic to the setting `targets`"


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        (
            {"payload": b"x" * 262_145},
            Reason.LIMIT,
            f"payload = 262145: the limit payload_bytes_max is 262144: {STAY}",
        ),
        (
            {"content_type": "x" * 257},
            Reason.LIMIT,
            "content_type = 257: a content type has at most 256 characters",
        ),
        ({"to": ""}, Reason.TARGET_NOT_ALLOWED, f"to = '': {TARGETS}"),
        ({"to": "ORDERS"}, Reason.TARGET_NOT_ALLOWED, f"to = 'ORDERS': {TARGETS}"),
        (
            {"if_absent": True, "if_version": Version(3)},
            Reason.INVALID,
            "if_version = 3: if_absent and if_version exclude each other: give one",
        ),
    ],
)
def test_an_arm_that_asks_too_much_is_refused(
    changes: dict[str, Any], reason: Reason, message: str
) -> None:
    with pytest.raises(Refusal) as refused:
        check_arm(arm(**changes), LIMITS)
    assert (refused.value.reason, str(refused.value)) == (reason, message)


@pytest.mark.parametrize("field", ["if_earlier", "if_changed"])
def test_if_absent_excludes_a_condition_on_what_is_armed(field: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_arm(arm(if_absent=True, **{field: True}), LIMITS)
    assert str(refused.value) == (
        f"{field} = True: if_absent and {field} exclude each other: leave out if_absent"
    )


# --- move, cancel, room


def test_a_move_that_changes_nothing_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        check_move(move(after=None), LIMITS)
    assert str(refused.value) == "at = None: a move needs one of at, after, every, cron"


@pytest.mark.parametrize(
    "what",
    [
        {"reminder": "pay"},
        {"reminder": "pay", "if_version": Version(0)},
        {"operation": "pay"},
        {"operation": "n" * 191},
        {"prefix": "pay:"},
        {"prefix": ":", "raw": True},
        {"all": True},
    ],
)
def test_a_cancel_of_one_thing_passes(what: dict[str, Any]) -> None:
    check_cancel(Cancel(**HERE, **what), LIMITS)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({}, "reminder = None: a cancel needs one of reminder, operation, prefix, all"),
        (
            {"reminder": "pay", "all": True},
            "all = True: a cancel needs one of reminder, operation, prefix, all",
        ),
        (
            {"operation": "pay", "prefix": "pay:"},
            "prefix = 'pay:': a cancel needs one of reminder, operation, prefix, all",
        ),
        ({"operation": ""}, f"operation = '': {BARE}"),
        ({"operation": "pay:1"}, f"operation = 'pay:1': {BARE}"),
        (
            {"operation": "n" * 192},
            "operation = 192: the limit name_chars_max is 191: " + STAY,
        ),
        ({"prefix": ""}, "prefix = '': an empty prefix means everything: say all instead"),
        ({"prefix": "n" * 192}, "prefix = 192: the limit name_chars_max is 191: " + STAY),
        (
            {"all": True, "raw": True},
            "raw = True: raw goes with a prefix: leave it out, or give prefix",
        ),
        (
            {"prefix": "pay", "if_version": Version(0)},
            "if_version = 0: if_version goes with an exact name",
        ),
        (
            {"all": True, "if_version": Version(0)},
            "if_version = 0: if_version goes with an exact name",
        ),
    ],
)
def test_a_cancel_of_nothing_or_two_things_is_refused(what: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_cancel(Cancel(**HERE, **what), LIMITS)
    assert str(refused.value) == message


def test_the_last_reminder_within_the_limit_passes() -> None:
    check_room(9_999, LIMITS)


def test_one_reminder_over_the_limit_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        check_room(10_000, LIMITS)
    assert str(refused.value) == (
        "reminders of this actor = 10001: the limit reminders_per_actor_max is 10000: " + STAY
    )
