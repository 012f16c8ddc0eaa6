"""A call that never comes back is given up; the next one is made all the same."""

from threading import Event

import pytest

from tocsin.adapters.kafka.bounded_call import BoundedCalls, NeverBack

LONG_S = 30.0


def test_a_call_is_made_with_its_arguments_and_one_after_the_other() -> None:
    calls = BoundedCalls("test")
    made: list[int] = []
    calls.call(LONG_S, made.append, 1)
    calls.call(LONG_S, made.append, 2)
    calls.close()
    assert made == [1, 2]


def test_what_a_call_raises_is_raised_and_the_next_one_is_made() -> None:
    calls = BoundedCalls("test")
    made: list[int] = []
    with pytest.raises(ZeroDivisionError):
        calls.call(LONG_S, divmod, 1, 0)
    calls.call(LONG_S, made.append, 1)
    calls.close()
    assert made == [1]


def test_a_call_that_does_not_come_back_is_given_up_and_its_late_end_disturbs_nobody() -> None:
    calls, back = BoundedCalls("test"), Event()
    made: list[int] = []
    with pytest.raises(NeverBack):
        calls.call(0.01, back.wait)
    calls.call(LONG_S, made.append, 1)
    back.set()
    calls.call(LONG_S, made.append, 2)
    calls.close()
    assert made == [1, 2]
