"""Which names a command means: what merely starts with the same letters is never touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import names
from tocsin.core.commands import Cancel
from tocsin.core.naming import beginning, is_meant, is_under, operation_and_key
from tocsin.core.values import Offset

parts = st.text(alphabet="ab:/", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("pay", "pay"),
        ("pay:1", "pay"),
        ("pay:1", "pay:"),
        ("pay:1", "pay:1"),
        ("pay:1/2", "pay:1"),
        ("pay:1/2", "pay:1/"),
        ("pay:1:2", "pay:1"),
        ("a/b", "a"),
        ("a/b", "a/"),
    ],
)
def test_a_prefix_covers_itself_and_what_goes_on_at_a_boundary(name: str, prefix: str) -> None:
    assert is_under(name, prefix, raw=False)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("payment", "pay"), ("pay:17", "pay:1"), ("pay:1|2", "pay:1"), ("pay", "pay:"), ("x", "pay")],
)
def test_a_prefix_spares_what_merely_starts_with_the_same_letters(name: str, prefix: str) -> None:
    assert not is_under(name, prefix, raw=False)


@given(parts, parts)
def test_a_raw_prefix_is_letters_alone(name: str, prefix: str) -> None:
    assert is_under(name, prefix, raw=True) == name.startswith(prefix)


@given(parts, parts)
def test_what_a_prefix_covers_is_the_prefix_or_lies_behind_a_boundary(
    name: str, prefix: str
) -> None:
    behind = [name[:at] for at in range(1, len(name) + 1) if name[at - 1] in ":/"]
    before = [name[:at] for at in range(len(name)) if name[at] in ":/"]
    assert is_under(name, prefix, raw=False) == (prefix in {name, *behind, *before})


@given(names)
def test_an_operation_is_all_its_keys(name: str) -> None:
    operation, _ = operation_and_key(name)
    cancel = Cancel(offset=Offset(0), appended=None, operation=operation)
    for other in (operation, f"{operation}:", f"{operation}:1"):
        assert is_meant(other, cancel)
    for other in (f"{operation}x", f"{operation}/1", f"x{operation}"):
        assert not is_meant(other, cancel)


@given(parts, parts, st.booleans())
def test_every_name_that_is_meant_begins_as_told(name: str, prefix: str, raw: bool) -> None:
    for cancel in (
        Cancel(offset=Offset(0), appended=None, prefix=prefix, raw=raw),
        Cancel(offset=Offset(0), appended=None, operation=prefix),
        Cancel(offset=Offset(0), appended=None, all=True),
    ):
        assert not is_meant(name, cancel) or name.startswith(beginning(cancel))
