"""Percentiles, histograms and checks of the bench."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.bench.results import BINS_MS, Checks, histogram, lateness, median, percentile

late = st.lists(st.integers(0, 20_000), min_size=1).map(sorted)


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 50), (90, 90), (99, 99), (99.9, 100), (0, 1), (100, 100)]
)
def test_a_percentile_is_the_nearest_rank(percent: float, expected: int) -> None:
    assert percentile(range(1, 101), percent) == expected


def test_a_tenth_of_a_percent_is_exact() -> None:
    assert percentile(range(1, 1_001), 99.9) == 999


@given(late, st.floats(0, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(
    values: list[int], percent: float
) -> None:
    found = percentile(values, percent)
    assert found in values
    not_above = sum(value <= found for value in values)
    # To a thousandth of a percent, as precise as it is asked for.
    assert not_above * 100_000 >= len(values) * (round(percent * 1_000))


@given(late)
def test_every_value_is_in_exactly_one_bin(values: list[int]) -> None:
    bins = histogram(values, BINS_MS)
    assert sum(count for _, count in bins) == len(values)
    lower = 0
    for bound, count in bins:
        upper = bound if bound is not None else values[-1] + 1
        assert count == sum(lower <= value < max(upper, lower) for value in values)
        lower = upper


def test_lateness_is_receipt_minus_due_of_each() -> None:
    found = lateness([110, 105, 100], [100, 104, 80])
    assert found is not None
    assert found.percentiles == {"p50": 10, "p90": 20, "p99": 20, "p99.9": 20, "max": 20}


def test_nothing_received_has_no_lateness() -> None:
    assert lateness([], []) is None


@pytest.mark.parametrize("values", [[3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 9.0, 8.0]])
def test_the_median_is_one_of_the_runs(values: list[float]) -> None:
    found = median(values)
    assert found in values
    assert sum(value <= found for value in values) * 2 >= len(values)


@pytest.mark.parametrize(
    "checks",
    [
        Checks(expected=3, received=2, duplicates=0, early=0),
        Checks(expected=3, received=4, duplicates=1, early=0),
        # One is missing, and another came twice.
        Checks(expected=3, received=3, duplicates=1, early=0),
        Checks(expected=3, received=3, duplicates=0, early=1),
    ],
)
def test_lost_repeated_and_early_deliveries_fail_the_checks(checks: Checks) -> None:
    assert not checks.passed
