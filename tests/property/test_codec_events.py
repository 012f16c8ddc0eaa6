"""Laws of events: each reads back as written, as fastavro has it, and none can crash a reader."""

from io import BytesIO

import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import events, mutated, stamps
from tocsin.codec.errors import Undecodable
from tocsin.codec.events import Stamp, decode_event, encode_event
from tocsin.codec.framing import HEAD_SIZE, MAGIC, read
from tocsin.codec.schemas import current, known
from tocsin.core.events import Event

written = st.builds(encode_event, events, stamps)


@given(events, stamps)
def test_an_event_reads_back_as_written(event: Event, stamp: Stamp) -> None:
    assert decode_event(encode_event(event, stamp)) == (event, stamp)


@given(events, stamps)
def test_each_event_says_its_name_and_stamp(event: Event, stamp: Stamp) -> None:
    name, record = read(encode_event(event, stamp))
    assert name == f"tocsin.events.{type(event).__name__}"
    assert list(record)[:4] == ["engine_time", "step", "command", "answer"]


@given(written)
def test_fastavro_writes_the_same_bytes(value: bytes) -> None:
    name, record = read(value)
    body = BytesIO()
    schemaless_writer(body, current()[name], record)
    assert body.getvalue() == value[HEAD_SIZE:]


@given(
    st.one_of(
        st.binary(max_size=40),
        mutated(written),
        st.builds(
            lambda mark, body: MAGIC + mark + body, st.sampled_from(sorted(known())), st.binary()
        ),
    )
)
def test_bytes_that_are_no_event_are_undecodable(value: bytes) -> None:
    try:
        decode_event(value)
    except Undecodable:
        return


@given(written, st.binary(min_size=1, max_size=3))
def test_an_event_that_goes_on_after_its_end_is_undecodable(value: bytes, more: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_event(value + more)


@given(written, st.data())
def test_an_event_cut_short_is_undecodable(value: bytes, data: st.DataObject) -> None:
    with pytest.raises(Undecodable):
        decode_event(value[: data.draw(st.integers(0, len(value) - 1))])
