"""Laws of commands: they read back as written, and any other bytes are refused, never worse."""

import re
from contextlib import suppress
from io import BytesIO

import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.strategies import arms, commands, headers, mutated
from tocsin.codec.commands import decode_command, encode_command
from tocsin.codec.framing import HEAD_SIZE, MAGIC, read
from tocsin.codec.schemas import current, known
from tocsin.codec.state import headers_of
from tocsin.core.commands import Arm, ServiceCommand
from tocsin.core.errors import Reason, Refusal
from tocsin.core.values import EpochMs, Header, Offset

written = st.builds(encode_command, commands)
OFFSET, APPENDED = Offset(7), EpochMs(8)
PRINTABLE = re.compile(rb"[ -~]{0,256}")


def carried(command: ServiceCommand) -> tuple[Header, ...]:
    """Headers of the record that carries `command`."""
    if isinstance(command, Arm) and command.traceparent is not None:
        return (("traceparent", command.traceparent.encode()),)
    return ()


@given(commands)
def test_a_command_reads_back_as_written(command: ServiceCommand) -> None:
    value = encode_command(command)
    decoded = decode_command(value, carried(command), command.offset, command.appended)
    assert decoded == command


@given(written)
def test_fastavro_writes_the_same_bytes(value: bytes) -> None:
    name, record = read(value)
    body = BytesIO()
    schemaless_writer(body, current()[name], record)
    assert body.getvalue() == value[HEAD_SIZE:]


@given(arms)
def test_fastavro_reads_the_same_arm(arm: Arm) -> None:
    _, record = read(encode_command(arm))
    record["headers"] = headers_of(record["headers"])
    record["exclude"] = tuple(record["exclude"])
    assert Arm(offset=arm.offset, appended=arm.appended, **record) == replace(arm, traceparent=None)


@given(
    st.one_of(
        st.none(),
        st.binary(max_size=60),
        mutated(written),
        st.builds(
            lambda mark, body: MAGIC + mark + body, st.sampled_from(sorted(known())), st.binary()
        ),
    ),
    headers,
)
def test_any_bytes_are_a_command_or_a_refusal(
    value: bytes | None, record_headers: tuple[Header, ...]
) -> None:
    with suppress(Refusal):
        decode_command(value, record_headers, OFFSET, APPENDED)


@given(written, st.data())
def test_a_command_cut_short_is_undecodable(value: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(value) - 1))
    with pytest.raises(Refusal) as refused:
        decode_command(value[:cut], (), OFFSET, APPENDED)
    assert refused.value.reason is Reason.UNDECODABLE


@given(written, st.binary(min_size=1, max_size=3))
def test_a_command_that_goes_on_after_its_end_is_undecodable(value: bytes, more: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        decode_command(value + more, (), OFFSET, APPENDED)
    assert refused.value.reason is Reason.UNDECODABLE


readable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=256)


@given(arms, readable)
def test_a_readable_trace_context_goes_along(arm: Arm, traceparent: str) -> None:
    carried_by_hand = (("traceparent", traceparent.encode()),)
    decoded = decode_command(encode_command(arm), carried_by_hand, arm.offset, arm.appended)
    assert decoded == replace(arm, traceparent=traceparent)


@given(commands, st.binary(max_size=300).filter(lambda value: not PRINTABLE.fullmatch(value)))
def test_any_other_trace_context_is_refused(command: ServiceCommand, traceparent: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        decode_command(encode_command(command), (("traceparent", traceparent),), OFFSET, APPENDED)
    assert (refused.value.reason, refused.value.field) == (Reason.INVALID, "traceparent")
