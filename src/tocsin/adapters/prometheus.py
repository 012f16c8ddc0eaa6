"""Figures for Prometheus.

The loop is the only writer, and writes once per step: plain numbers, no lock, no client library in
its way. The library is met at scrape time, in another thread; what partitions hold is looked up
then, from their stores.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from tocsin.core.errors import Reason
from tocsin.ports import Clock, StoreClosed
from tocsin.runtime.partition import Partition, Phase
from tocsin.runtime.queries import armed, backlog

#: Upper bounds, in milliseconds: 1 ms to 1 h.
LATENESS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000),
)
TRANSACTION_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)
#: Shown as 0 before the first, so that the first one is an increase.
ALERTS = ("clock_jump", "commands_lost", "fault", "index_broken", "made_anew", "producer_fenced")
#: Distinct values of a label that others choose; the rest is counted under OTHER.
TARGETS_MAX = 200
OTHER = "other"


class _Histogram:
    """Counts per bucket; many values at once cost one sort and a search per bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._at_most = [0] * len(bounds)
        self._count = 0
        self._sum = 0.0

    def add(self, values: Sequence[float]) -> None:
        ordered = sorted(values)
        for number, bound in enumerate(self._bounds):
            self._at_most[number] += bisect_right(ordered, bound)
        self._count += len(ordered)
        self._sum += sum(ordered)

    def samples(self, divisor: int) -> tuple[list[tuple[str, float]], float]:
        """Return cumulative buckets, and the sum, in units of `divisor`."""
        # A step may be added meanwhile; no bucket may then exceed a larger one.
        buckets, least = [], 0
        for bound, at_most in zip(self._bounds, list(self._at_most), strict=True):
            least = max(least, at_most)
            buckets.append((repr(bound / divisor), float(least)))
        buckets.append(("+Inf", float(max(least, self._count))))
        return buckets, self._sum / divisor


class PrometheusMeter(Collector):
    """The figures of one worker, in a registry of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._partitions: Callable[[], Sequence[Partition]] = tuple
        self._lateness = _Histogram(LATENESS_MS)
        self._transactions = {
            outcome: _Histogram(TRANSACTION_S) for outcome in ("committed", "aborted")
        }
        self._fires: dict[str, int] = {}
        self._answers: dict[str, int] = {}
        self._refusals: dict[str, int] = {reason.value: 0 for reason in Reason}
        self._undeliverable: dict[str, int] = {}
        self._restored: dict[str, int] = {}
        self._alerts = dict.fromkeys(ALERTS, 0)
        self._skew_ms: int | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)

    def watch(self, partitions: Callable[[], Sequence[Partition]]) -> None:
        """Look at these partitions when scraped."""
        self._partitions = partitions

    def render(self) -> tuple[bytes, str]:
        """Return the figures in the text format, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    # --- Meter

    def fired(self, partition: int, lateness_ms: Sequence[int]) -> None:
        _count(self._fires, str(partition), len(lateness_ms))
        self._lateness.add(lateness_ms)

    def answered(self, result: str) -> None:
        _count(self._answers, result)

    def refused(self, reason: str) -> None:
        _count(self._refusals, str(reason))

    def undeliverable(self, target: str) -> None:
        known = target in self._undeliverable or len(self._undeliverable) < TARGETS_MAX
        _count(self._undeliverable, target if known else OTHER)

    def transaction(self, outcome: str, seconds: float) -> None:
        self._transactions.setdefault(outcome, _Histogram(TRANSACTION_S)).add([seconds])

    def restored(self, partition: int, records: int) -> None:
        _count(self._restored, str(partition), records)

    def skew(self, milliseconds: int) -> None:
        self._skew_ms = milliseconds

    def alert(self, what: str) -> None:
        _count(self._alerts, what)

    # --- Collector

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the registry would scrape us once to learn the names."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return all figures as they are now."""
        yield from self._counted()
        yield from self._histograms()
        yield from self._held()
        if self._skew_ms is not None:
            skew = GaugeMetricFamily(
                "tocsin_clock_skew_seconds", "How far this clock is ahead of the broker's."
            )
            skew.add_metric((), self._skew_ms / 1000)
            yield skew

    def _counted(self) -> Iterator[Metric]:
        for name, doc, label, counts in (
            ("tocsin_fires", "Fires committed.", "partition", self._fires),
            ("tocsin_commands", "Commands answered, by event.", "result", self._answers),
            ("tocsin_refusals", "Commands refused.", "reason", self._refusals),
            (
                "tocsin_undeliverable",
                "Deliveries that no broker takes.",
                "target",
                self._undeliverable,
            ),
            (
                "tocsin_restored_records",
                "State records read to restore.",
                "partition",
                self._restored,
            ),
            ("tocsin_alerts", "Things that an operator should look at.", "kind", self._alerts),
        ):
            counter = CounterMetricFamily(name, doc, labels=(label,))
            for value, count in list(counts.items()):
                counter.add_metric((value,), count)
            yield counter

    def _histograms(self) -> Iterator[Metric]:
        lateness = HistogramMetricFamily(
            "tocsin_lateness_seconds", "Fire time minus due, of committed fires."
        )
        lateness.add_metric((), *self._lateness.samples(1_000))
        yield lateness
        transactions = HistogramMetricFamily(
            "tocsin_transaction_seconds", "Transactions, from begin on.", labels=("outcome",)
        )
        for outcome, histogram in list(self._transactions.items()):
            transactions.add_metric((outcome,), *histogram.samples(1))
        yield transactions

    def _held(self) -> Iterator[Metric]:
        """Look into the partitions that are owned now."""
        label = ("partition",)
        is_armed = GaugeMetricFamily("tocsin_armed_reminders", "Reminders armed.", labels=label)
        due = GaugeMetricFamily(
            "tocsin_backlog_reminders",
            "Reminders due and not yet fired; 10,000 means at least so many.",
            labels=label,
        )
        age = GaugeMetricFamily(
            "tocsin_oldest_due_age_seconds",
            "How long the oldest of them is due; 0 without any.",
            labels=label,
        )
        phase = GaugeMetricFamily(
            "tocsin_partition_phase",
            "1 for the phase that an owned partition is in.",
            labels=("partition", "phase"),
        )
        left = GaugeMetricFamily(
            "tocsin_restore_remaining_records",
            "Offsets of the state topic still to be read, while restoring.",
            labels=label,
        )
        now = self._clock.wall_ms()
        for partition in self._partitions():
            number = (str(partition.number),)
            for each in Phase:
                phase.add_metric((*number, each.value), float(partition.phase is each))
            restoring = partition.phase is Phase.RESTORING
            remaining = max(0, partition.restore_total - partition.restore_done)
            left.add_metric(number, remaining if restoring else 0)
            store = partition.store
            if store is None:
                continue
            try:
                is_armed.add_metric(number, armed(store))
                waiting = backlog(store, now)
            except StoreClosed:
                continue
            due.add_metric(number, waiting.count)
            oldest = now if waiting.oldest is None else waiting.oldest
            age.add_metric(number, (now - oldest) / 1000)
        yield from (is_armed, due, age, phase, left)


def _count(counts: dict[str, int], label: str, by: int = 1) -> None:
    counts[label] = counts.get(label, 0) + by
