"""Laws of JSON commands: a payload arrives as it was written, and nothing is taken for a command
that its author may not have meant.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from typing import Any, assert_never

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.strategies import commands, header_names, mutated, names, texts, traceparents
from tocsin.codec.commands import decode_command
from tocsin.codec.json_commands import FIELDS
from tocsin.core.commands import (
    AckAsked,
    Acknowledge,
    Arm,
    Cancel,
    Destroy,
    Fire,
    Move,
    Pause,
    Resume,
    ServiceCommand,
)
from tocsin.core.errors import Reason, Refusal
from tocsin.core.time_text import TimeTextError, format_duration, format_instant
from tocsin.core.values import EpochMs, Offset

OFFSET, APPENDED = Offset(7), EpochMs(8)

#: Numbers as JSON writes them, also those that no float or integer of 64 bits can hold.
numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
blanks = st.text(alphabet=" \t\r\n", max_size=3)


def decode(text: str | bytes) -> ServiceCommand:
    value = text if isinstance(text, bytes) else text.encode()
    return decode_command(value, (), OFFSET, APPENDED)


@st.composite
def spaced(draw: st.DrawFn, depth: int = 3) -> tuple[str, str]:
    """A JSON text with blanks in it, and the same text without."""
    form = draw(st.integers(0, 3 if depth else 1))
    if form == 0:
        literal = draw(numbers | st.sampled_from(("true", "false", "null")))
        return literal, literal
    if form == 1:
        literal = json.dumps(draw(texts), ensure_ascii=draw(st.booleans()))
        return literal, literal
    parts, compact = [], []
    for at in range(draw(st.integers(0, 3))):
        part, tight = draw(spaced(depth - 1))
        name = f'"{at} \\u0041 "'
        parts.append(f"{name}{draw(blanks)}:{draw(blanks)}{part}" if form == 3 else part)
        compact.append(f"{name}:{tight}" if form == 3 else tight)
    opening, closing = "{}" if form == 3 else "[]"
    inner = ",".join(f"{draw(blanks)}{part}{draw(blanks)}" for part in parts) or draw(blanks)
    return f"{opening}{inner}{closing}", f"{opening}{','.join(compact)}{closing}"


@given(spaced(), blanks)
def test_a_payload_arrives_as_written_but_for_blanks(pair: tuple[str, str], blank: str) -> None:
    text, compact = pair
    arm = decode(f'{{"arm":{{"reminder":"r","payload":{blank}{text}{blank}}}}}{blank}')
    assert isinstance(arm, Arm)
    assert arm.payload.decode() == compact
    assert arm.content_type == "application/json"


@given(names, texts, texts)
def test_any_character_arrives(name: str, payload: str, content_type: str) -> None:
    for escaped in (True, False):
        fields = {"reminder": name, "payload_text": payload, "content_type": content_type}
        arm = decode(json.dumps({"arm": fields}, ensure_ascii=escaped))
        assert isinstance(arm, Arm)
        assert (arm.reminder, arm.payload) == (name, payload.encode())
        assert arm.content_type == content_type


@given(st.dictionaries(header_names, st.none() | texts, max_size=4))
def test_headers_keep_their_order_and_text(given_headers: dict[str, str | None]) -> None:
    arm = decode(json.dumps({"arm": {"reminder": "r", "headers": given_headers}}))
    assert isinstance(arm, Arm)
    assert arm.headers == tuple(
        (name, None if value is None else value.encode()) for name, value in given_headers.items()
    )


@given(commands, st.booleans())
def test_json_and_avro_say_the_same(command: ServiceCommand, as_text: bool) -> None:
    with suppress(Inexpressible):
        value = json.dumps(as_json(command, as_text=as_text))
        assert decode(value) == at_hand(command)


class Inexpressible(Exception):
    """Avro can say what JSON cannot."""


def at_hand(command: ServiceCommand) -> ServiceCommand:
    """The command as it comes in this test's record, which has no headers."""
    here = replace(command, offset=OFFSET, appended=APPENDED)
    return replace(here, traceparent=None) if isinstance(here, Arm) else here


def as_json(command: ServiceCommand, *, as_text: bool) -> dict[str, Any]:
    fields: dict[str, Any]
    match command:
        case Arm() | Move():
            if command.every == 0:
                raise Inexpressible  # JSON refuses it at once, Avro when it is decided
            fields = {
                "reminder": command.reminder,
                "at": time(command.at, format_instant, as_text),
                "after": time(command.after, format_duration, as_text),
                "every": time(command.every, format_duration, as_text),
                "if_version": command.if_version,
                "cron": command.cron,
                "zone": command.zone,
                "gap": command.gap,
                "overlap": command.overlap,
                "exclude": list(command.exclude),
            }
            if isinstance(command, Arm):
                fields |= arm_fields(command)
                fields["until"] = time(command.until, format_instant, as_text)
                fields["ack"] = None if command.ack is None else ack_fields(command.ack, as_text)
                for field in ("jitter", "catch_up", "ttl"):
                    fields[field] = time(getattr(command, field), format_duration, as_text)
        case Cancel():
            fields = {
                "reminder": command.reminder,
                "operation": command.operation,
                "prefix": command.prefix,
                "raw": command.raw,
                "all": command.all,
                "if_version": command.if_version,
            }
        case Fire():
            fields = {"reminder": command.reminder}
        case Pause() | Resume():
            fields = {"reminder": command.reminder, "all": command.all, "note": command.note}
        case Acknowledge():
            fields = {
                "delivery": command.delivery,
                "outcome": command.outcome,
                "reminder": command.reminder,
                "after": time(command.after, format_duration, as_text),
                "at": time(command.at, format_instant, as_text),
                "reason": command.reason,
            }
        case Destroy():
            fields = {}
        case _:
            assert_never(command)
    return {type(command).__name__.lower(): fields}


def arm_fields(arm: Arm) -> dict[str, Any]:
    headers = {
        name: None if value is None else {"base64": b64encode(value).decode()}
        for name, value in arm.headers
    }
    if len(headers) < len(arm.headers):
        raise Inexpressible("two headers of one name")
    return {
        "payload_base64": b64encode(arm.payload).decode(),
        "content_type": arm.content_type,
        "headers": headers,
        "to": arm.to,
        "if_absent": arm.if_absent,
        "if_earlier": arm.if_earlier,
        "if_changed": arm.if_changed,
        "occurrences": arm.occurrences,
        "missed": arm.missed,
    }


def ack_fields(ack: AckAsked, as_text: bool) -> dict[str, Any]:
    lengths = {
        field: time(getattr(ack, field), format_duration, as_text)
        for field in ("timeout", "initial", "ceiling")
    }
    others = {
        field: getattr(ack, field) for field in ("factor", "attempts", "pause_after_failures")
    }
    return lengths | others


def time(ms: int | None, text: Callable[[int], str], as_text: bool) -> int | str | None:
    if ms is None:
        return None
    try:
        written = text(ms)
    except TimeTextError as error:
        raise Inexpressible from error
    return written if as_text else ms


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.just("base64"), inner, max_size=3)
    ),
    max_leaves=6,
)
#: Commands with the right names and anything for a value.
near_commands = st.sampled_from(sorted(FIELDS)).flatmap(
    lambda name: st.dictionaries(
        st.sampled_from((*FIELDS[name], "within", "ack")), json_values, max_size=5
    ).map(lambda fields: json.dumps({name: fields}).encode())
)
any_json = st.one_of(
    json_values.map(lambda value: json.dumps(value).encode()),
    near_commands,
    mutated(near_commands),
    st.binary().map(b"{".__add__),
    st.text(alphabet='{}[]":,\\u0123dD8eE+-. \n').map(lambda text: f"{{{text}".encode()),
)


@given(any_json)
@example(b'{"arm":{"reminder":"r","payload":' + b"[" * 100_000 + b"}}")
@example(b'{"arm":{"reminder":"r","payload":' + b'{"a":' * 100_000 + b"}}")
@example(b'{"arm":{"reminder":"r","at":' + b"9" * 10_000 + b"}}")
@example(b'{"arm":{"reminder":"r","at":1,"at":' + b"[" * 900 + b"]" * 900 + b"}}")
@example(b'{"\\ud800":1,"\\ud800":1}')
@example(b'{"arm":{"\\ud800":1}}')
@example(b'{"arm":{"' + b"x" * 10_000 + b'":1}}')
def test_any_text_is_a_command_or_a_refusal_that_can_be_told(value: bytes) -> None:
    try:
        decode_command(value, (), OFFSET, APPENDED)
    except Refusal as refusal:
        told = f"{refusal.field} {refusal.value} {refusal.way_out}"
        assert len(told.encode()) < 2_000  # it goes into an event: no lone surrogate, no flood


@given(st.dictionaries(texts, json_values, min_size=1, max_size=3), st.data())
def test_no_key_is_taken_twice_at_any_depth(fields: dict[str, Any], data: st.DataObject) -> None:
    twice = data.draw(st.sampled_from(sorted(fields)))
    members = [*fields.items(), (twice, 1)]
    inner = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members)
    with pytest.raises(Refusal):
        decode(f'{{"arm":{{"reminder":"r","payload":[{{"a":{{{inner}}}}}]}}}}')


@given(traceparents)
def test_a_trace_context_comes_from_the_record(traceparent: str | None) -> None:
    carried = () if traceparent is None else (("traceparent", traceparent.encode()),)
    arm = decode_command(b'{"arm":{"reminder":"r"}}', carried, OFFSET, APPENDED)
    assert isinstance(arm, Arm)
    assert arm.traceparent == traceparent


@given(st.integers(min_value=2**63) | st.integers(max_value=-(2**63) - 1))
def test_an_integer_beyond_64_bits_is_refused(number: int) -> None:
    for field in ("at", "after", "every", "if_version"):
        with pytest.raises(Refusal) as refused:
            decode(f'{{"move":{{"reminder":"r","{field}":{number}}}}}')
        assert (refused.value.reason, refused.value.field) == (Reason.INVALID, field)
