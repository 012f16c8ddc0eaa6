"""What others wrote can do nothing to a terminal, and can be given back as it is shown."""

from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.exits import Failure
from tocsin.cli.safe import printable, safe, unescaped

#: Control, format, surrogate, private, unassigned; line and paragraph separators.
UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
JOINERS = "\u200c\u200d"


@given(st.text(st.characters(codec="utf-8")))
def test_nothing_that_acts_on_a_terminal_is_shown(text: str) -> None:
    for shown in (safe(text), printable(text)):
        assert not {c for c in shown if category(c) in UNSAFE and c not in JOINERS}


@given(st.text(st.characters(codec="utf-8")))
def test_what_is_shown_can_be_given_back(text: str) -> None:
    assert unescaped(safe(text)) == text


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_no_two_names_look_the_same(one: str, other: str) -> None:
    assert (safe(one) == safe(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("order/4711", "order/4711"),
        ("größe שלום", "größe שלום"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("a\0b", "a\\u0000b"),
        ("a\u202eb", "a\\u202eb"),
        ("\x1b[2J", "\\u001b[2J"),
        ("a\nb\\n", "a\\nb\\\\n"),
        ("\U000e0001", "\\udb40\\udc01"),
        ("\udcff", "\\udcff"),
    ],
)
def test_names_look_so(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.parametrize("text", ["\\", "\\x41", "\\u12", "\\ud800"])
def test_wrong_escapes_are_refused(text: str) -> None:
    with pytest.raises(Failure, match="escaped"):
        unescaped(text)
