"""What a caller's mistake is called and how its author reads it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import Reason, Refusal, shown

anything: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.binary(),
        st.text(st.characters(codec=None)),
    ),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
)


def test_a_refusal_reads_as_field_value_and_way_out() -> None:
    refusal = Refusal(Reason.INVALID, "every", 5, "the smallest period is 100 ms")
    assert str(refusal) == "every = 5: the smallest period is 100 ms"


def test_the_words_on_the_wire_never_change() -> None:
    assert {reason.value for reason in Reason} >= {
        *("undecodable", "invalid", "exists", "absent", "other_version"),
        *("target_not_allowed", "limit", "wrong_partition", "fault"),
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        ("", "''"),
        ("pay:1", "'pay:1'"),
        ("⏰\0\n", "'⏰\\x00\\n'"),
        ("x" * 80, f"'{'x' * 80}'"),
        ("x" * 81, f"'{'x' * 80}'… (81 long)"),
        (b"", "0 bytes"),
        (b"\x00\xff", "2 bytes"),
    ],
)
def test_a_value_is_shown_as_its_author_would_recognise_it(value: object, text: str) -> None:
    assert shown(value) == text


def test_bytes_are_counted_and_never_repeated_in_the_audit_log() -> None:
    assert "secret" not in shown(b"a secret")


@pytest.mark.parametrize("value", [10**6000, -(10**6000), [10**6000]], ids=["+", "-", "within"])
def test_an_integer_too_long_to_print_is_shown_all_the_same(value: object) -> None:
    assert shown(value)


@given(anything)
def test_whatever_is_shown_is_short(value: object) -> None:
    assert len(shown(value)) < 1_000


@given(anything)
def test_whatever_is_shown_can_be_written_as_utf8(value: object) -> None:
    assert shown(value).encode()
