"""What a workload came to. The names are those of the JSON file: add, never rename."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

#: Of the percentiles that are told.
PERCENTS = (50.0, 90.0, 99.0, 99.9)
#: Upper bounds of the histogram's bins, in milliseconds; the last bin has none.
BINS_MS = (1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 500, 1_000, 2_000, 5_000)


class Lateness(Struct, frozen=True, kw_only=True):
    """How late, in milliseconds."""

    #: From p50 to p99.9, by their names, and `max`.
    percentiles: Mapping[str, float]
    #: How many were below each upper bound and not below the one before; None: no bound.
    histogram: Sequence[tuple[int | None, int]]


class Checks(Struct, frozen=True, kw_only=True):
    """Whether the measured is what was asked for."""

    expected: int
    received: int
    duplicates: int
    #: Received before they were due.
    early: int

    @property
    def passed(self) -> bool:
        """Whether each came exactly once, and none early."""
        return self.expected == self.received and not self.duplicates and not self.early


class Run(Struct, frozen=True, kw_only=True):
    """One measurement."""

    #: By a name that ends in its unit.
    figures: Mapping[str, float]
    checks: Checks
    #: Receipt minus due.
    lateness_ms: Lateness | None = None
    #: Fire time minus due: the part of it that is the engine's own decision.
    fire_lateness_ms: Lateness | None = None


class Result(Struct, frozen=True, kw_only=True):
    """A workload and its runs."""

    workload: str
    parameters: Mapping[str, int]
    runs: Sequence[Run]

    @property
    def passed(self) -> bool:
        """Whether all runs were what was asked for."""
        return all(run.checks.passed for run in self.runs)


class Report(Struct, frozen=True, kw_only=True):
    """The whole JSON file."""

    #: Raised when a name changes its meaning.
    schema: int = 1
    #: When it was begun: ISO 8601, UTC.
    begun: str
    machine: Mapping[str, str | int | float]
    versions: Mapping[str, str]
    settings: Mapping[str, str | int]
    results: Sequence[Result]


def lateness(received: Sequence[int], due: Sequence[int]) -> Lateness | None:
    """Return how late `received` was, one by one; None where nothing came."""
    late = sorted(at - then for at, then in zip(received, due, strict=True))
    if not late:
        return None
    percentiles = {f"p{percent:g}": float(percentile(late, percent)) for percent in PERCENTS}
    return Lateness(
        percentiles={**percentiles, "max": float(late[-1])}, histogram=histogram(late, BINS_MS)
    )


def percentile(ordered: Sequence[int], percent: float) -> int:
    """Return the smallest value that `percent` of the values do not exceed (nearest rank)."""
    # In thousandths: 99.9 % of 1,000 is 999, where floats may say 1,000.
    rank = -(-len(ordered) * round(percent * 1_000) // 100_000)
    return ordered[max(rank, 1) - 1]


def histogram(ordered: Sequence[int], bins: Sequence[int]) -> list[tuple[int | None, int]]:
    """Return how many values are below each bound and not below the one before."""
    counted: list[tuple[int | None, int]] = []
    at = 0
    for bound in bins:
        start = at
        while at < len(ordered) and ordered[at] < bound:
            at += 1
        counted.append((bound, at - start))
    counted.append((None, len(ordered) - at))
    return counted


def median(values: Sequence[float]) -> float:
    """Return the middle one, the lower of two."""
    return sorted(values)[(len(values) - 1) // 2]
