"""Laws of state records: they read back as written, as fastavro has them, and never crash."""

from collections.abc import Callable
from io import BytesIO

import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import any_reminders as reminders
from tests.strategies import mutated, step_records, steps
from tocsin.codec.errors import Undecodable
from tocsin.codec.framing import HEAD_SIZE, read
from tocsin.codec.keys import NO_WAKE, due_key
from tocsin.codec.schemas import current
from tocsin.codec.state import (
    StepRecord,
    decode_reminder,
    decode_step,
    due_key_of,
    encode_progress,
    encode_spec,
    encode_step,
    spec_of,
    step_of,
)
from tocsin.core.reminder import PauseInForce, Reminder, next_due

written = st.one_of(
    st.builds(encode_spec, reminders, steps),
    st.builds(encode_progress, reminders, steps),
    st.builds(encode_step, step_records),
)


@given(reminders, steps)
def test_a_reminder_reads_back_as_written(reminder: Reminder, step: int) -> None:
    value = encode_spec(reminder, step)
    assert decode_reminder(value, None) == reminder
    assert step_of(value) == step


@given(reminders, reminders, steps)
def test_progress_of_the_same_version_counts(
    reminder: Reminder, later: Reminder, step: int
) -> None:
    moved = Reminder(reminder.spec, later.occurrence, later.due, later.paused, later.wake)
    progress = encode_progress(moved, step)
    assert decode_reminder(encode_spec(reminder, step), progress) == moved
    assert step_of(progress) == step


@given(reminders, reminders, steps)
def test_progress_of_another_version_is_ignored(
    reminder: Reminder, other: Reminder, step: int
) -> None:
    if reminder.spec.version != other.spec.version:
        progress = encode_progress(other, step)
        assert decode_reminder(encode_spec(reminder, step), progress) == reminder


@given(step_records)
def test_a_step_reads_back_as_written(step: StepRecord) -> None:
    value = encode_step(step)
    assert decode_step(value) == step
    assert step_of(value) == step.step


@given(reminders, steps, st.sampled_from((encode_spec, encode_progress)))
def test_the_due_key_is_known_without_decoding(
    reminder: Reminder, step: int, encode: Callable[[Reminder, int], bytes]
) -> None:
    value = encode(reminder, step)
    due = next_due(reminder)
    wake = NO_WAKE if due is None else due
    assert due_key_of(value) == due_key(wake, reminder.spec.version)
    assert read(value)[1]["due_key"] == due_key_of(value)


@given(written)
def test_fastavro_writes_the_same_bytes(value: bytes) -> None:
    name, record = read(value)
    body = BytesIO()
    schemaless_writer(body, current()[name], record)
    assert body.getvalue() == value[HEAD_SIZE:]


@given(reminders, steps)
def test_fastavro_reads_the_same_reminder(reminder: Reminder, step: int) -> None:
    _, record = read(encode_spec(reminder, step))
    paused = None if record["paused"] is None else PauseInForce(**record["paused"])
    spec = spec_of(record["spec"])
    moving = record["occurrence"], record["due"], paused, record["wake"]
    assert Reminder(spec, *moving) == reminder


@given(reminders, steps)
def test_fastavro_reads_the_same_progress(reminder: Reminder, step: int) -> None:
    _, record = read(encode_progress(reminder, step))
    paused = None if record["paused"] is None else PauseInForce(**record["paused"])
    read_back = (record["version"], record["occurrence"], record["due"], paused, record["wake"])
    moving = reminder.occurrence, reminder.due, reminder.paused, reminder.wake
    assert read_back == (reminder.spec.version, *moving)


@given(st.one_of(st.binary(max_size=40), mutated(written)), mutated(written))
def test_bytes_that_are_no_state_are_undecodable(value: bytes, other: bytes) -> None:
    for attempt in (
        lambda: decode_reminder(value, None),
        lambda: decode_reminder(value, other),
        lambda: decode_step(value),
        lambda: due_key_of(value),
        lambda: step_of(value),
    ):
        try:
            attempt()
        except Undecodable:
            continue


@given(written)
def test_a_state_record_that_goes_on_after_its_end_is_undecodable(value: bytes) -> None:
    with pytest.raises(Undecodable):
        step_of(value + b"\0")
    with pytest.raises(Undecodable):
        decode_reminder(value + b"\0", None)
