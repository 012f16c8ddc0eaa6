"""Laws of keys: no two things share one, and they sort as what they stand for."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.strategies import actors, names, texts
from tocsin.codec.errors import Undecodable
from tocsin.codec.keys import (
    DUE_KEY_SIZE,
    KINDS,
    NO_WAKE,
    STEP_KEY,
    actor_prefix,
    due_key,
    is_asleep,
    parse_key,
    record_key,
)

triples = st.tuples(texts, st.sampled_from(sorted(KINDS)), texts)


@given(triples)
@example(("", b"r", ""))
@example(("\0\x01r", b"r", "\0\xff"))
def test_a_key_says_whose_it_is(triple: tuple[str, bytes, str]) -> None:
    assert parse_key(record_key(*triple)) == triple


@given(triples, triples)
@example(("a", b"r", "b"), ("a\0", b"r", "b"))
@example(("a\0", b"r", "b"), ("a\x01", b"r", "b"))
@example(("a", b"r", "rb"), ("ar", b"r", "b"))
def test_keys_sort_as_actor_kind_and_name(
    one: tuple[str, bytes, str], other: tuple[str, bytes, str]
) -> None:
    assert (record_key(*one) < record_key(*other)) == (one < other)
    assert (record_key(*one) == record_key(*other)) == (one == other)


@given(triples, texts)
def test_an_actors_prefix_begins_its_own_keys_and_no_others(
    triple: tuple[str, bytes, str], other: str
) -> None:
    actor = triple[0]
    assert record_key(*triple).startswith(actor_prefix(actor))
    assert record_key(*triple).startswith(actor_prefix(other)) == (actor == other)


@given(actors, names, texts)
def test_an_actor_that_begins_like_another_has_its_own_prefix(
    actor: str, name: str, more: str
) -> None:
    longer = actor + more
    assert record_key(longer, b"r", name).startswith(actor_prefix(actor)) == (not more)


@given(triples)
@example(("", b"r", "step"))
@example(("\0", b"r", "step"))
@example(("\0\0step", b"r", ""))
def test_no_actor_reaches_the_step_key(triple: tuple[str, bytes, str]) -> None:
    key = record_key(*triple)
    assert not key.startswith(STEP_KEY[:2])
    assert not STEP_KEY.startswith(actor_prefix(triple[0]))


@given(
    st.binary(max_size=30) | st.builds(b"%b\0\x01r%b".__mod__, st.tuples(st.binary(), st.binary()))
)
@example(STEP_KEY)
@example(b"")
@example(b"\0\x01")
@example(b"a\0b\0\x01rname")
@example(b"a\0\xff\xff\0\x01rname")
def test_bytes_that_are_no_key_are_undecodable(key: bytes) -> None:
    try:
        triple = parse_key(key)
    except Undecodable:
        return
    assert record_key(*triple) == key


def test_the_step_key_is_no_key_of_a_record() -> None:
    with pytest.raises(Undecodable):
        parse_key(STEP_KEY)


@given(
    *(st.tuples(st.integers(-(2**62), 2**62), st.integers(0, 2**63 - 1)) for _ in range(2)),
)
def test_due_keys_sort_by_wake_and_then_by_version(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    def clamped(entry: tuple[int, int]) -> tuple[int, int]:
        return max(entry[0], 0), entry[1]

    assert len(due_key(*one)) == DUE_KEY_SIZE
    assert (due_key(*one) < due_key(*other)) == (clamped(one) < clamped(other))
    assert not is_asleep(due_key(*one))
    assert is_asleep(due_key(NO_WAKE, one[1]))
    assert due_key(*one) < due_key(NO_WAKE, 0)
