from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from tocsin.adapters.memory.stores import MemoryStores
from tocsin.adapters.prometheus import LATENESS_MS, OTHER, TARGETS_MAX, PrometheusMeter
from tocsin.codec.state import StepRecord
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.values import EpochMs, Offset, Version
from tocsin.dataflow import Change
from tocsin.runtime.index import FORMAT, Checkpoint, TimerIndex, plan
from tocsin.runtime.partition import Partition, Phase

NOW = EpochMs(1_800_000_000_000)


class StandingClock:
    def wall_ms(self) -> EpochMs:
        return NOW

    def monotonic_ms(self) -> int:
        return 0


def reader(meter: PrometheusMeter) -> Callable[..., float]:
    """Return what reads a sample of one scrape."""
    text = meter.render()[0].decode()
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def value(name: str, **labels: str) -> float:
        return samples[name, tuple(sorted(labels.items()))]

    return value


def partition_with(dues: list[int]) -> Partition:
    """Return a live partition with a one-shot for each due."""
    partition = Partition(3)
    store = MemoryStores().open(3)
    index = TimerIndex(
        store,
        Checkpoint(format=FORMAT, state_id="s", offset=Offset(0), at_end=NOW, cursor=b"d", armed=0),
    )
    for number, due in enumerate(dues):
        spec = Spec(
            reminder=f"r:{number}",
            version=Version(number),
            anchor=EpochMs(due),
            every=None,
            payload=b"",
            content_type=None,
            headers=(),
            to=None,
            traceparent=None,
        )
        change = Change("a", spec.reminder, None, Reminder(spec, 0, EpochMs(due)))
        index.stage(change, plan(change, 1))
    step = StepRecord(
        step=1,
        next_command=Offset(0),
        engine_time=NOW,
        commands_id="c",
        events_id="e",
        state_id="s",
    )
    index.commit(step, Offset(1), NOW)
    partition.mount(store, index)
    partition.phase = Phase.LIVE
    return partition


def test_lateness_is_counted_in_its_buckets_up_to_and_with_their_bounds() -> None:
    meter = PrometheusMeter(StandingClock())
    meter.fired(0, [0, 1, 2, 3, 10, 4_000_000])
    meter.fired(1, [1])
    value = reader(meter)
    counts = [value("tocsin_lateness_seconds_bucket", le=le) for le in ("0.001", "0.002", "0.005")]
    assert counts == [3, 4, 5]
    assert value("tocsin_lateness_seconds_bucket", le="3600.0") == 6
    assert value("tocsin_lateness_seconds_count") == 7
    assert value("tocsin_lateness_seconds_sum") == 4000.017


def test_buckets_go_from_a_millisecond_to_an_hour() -> None:
    assert (LATENESS_MS[0], LATENESS_MS[-1]) == (1, 3_600_000)
    assert list(LATENESS_MS) == sorted(LATENESS_MS)


def test_fires_are_counted_per_partition() -> None:
    meter = PrometheusMeter(StandingClock())
    meter.fired(0, [1, 1])
    meter.fired(0, [1])
    meter.fired(7, [1])
    value = reader(meter)
    fires = (
        value("tocsin_fires_total", partition="0"),
        value("tocsin_fires_total", partition="7"),
    )
    assert fires == (3, 1)


def test_commands_refusals_and_alerts_are_counted_by_their_kind() -> None:
    meter = PrometheusMeter(StandingClock())
    meter.answered("Armed")
    meter.answered("Armed")
    meter.refused("limit")
    meter.undeliverable("gone")
    meter.alert("commands_lost")
    meter.restored(2, 500)
    value = reader(meter)
    assert value("tocsin_commands_total", result="Armed") == 2
    assert value("tocsin_refusals_total", reason="limit") == 1
    assert value("tocsin_undeliverable_total", target="gone") == 1
    assert value("tocsin_alerts_total", kind="commands_lost") == 1
    assert value("tocsin_restored_records_total", partition="2") == 500


def test_what_never_happened_is_there_as_zero() -> None:
    value = reader(PrometheusMeter(StandingClock()))
    assert value("tocsin_alerts_total", kind="fault") == 0
    assert value("tocsin_refusals_total", reason="exists") == 0
    assert value("tocsin_transaction_seconds_count", outcome="aborted") == 0


def test_targets_that_others_choose_do_not_grow_without_bound() -> None:
    meter = PrometheusMeter(StandingClock())
    for number in range(TARGETS_MAX + 5):
        meter.undeliverable(f"topic-{number}")
    assert reader(meter)("tocsin_undeliverable_total", target=OTHER) == 5


def test_transactions_are_timed_by_outcome() -> None:
    meter = PrometheusMeter(StandingClock())
    meter.transaction("committed", 0.004)
    meter.transaction("aborted", 3)
    value = reader(meter)
    assert value("tocsin_transaction_seconds_bucket", outcome="committed", le="0.005") == 1
    assert value("tocsin_transaction_seconds_sum", outcome="aborted") == 3


def test_skew_is_told_in_seconds_with_its_sign() -> None:
    meter = PrometheusMeter(StandingClock())
    meter.skew(-1500)
    assert reader(meter)("tocsin_clock_skew_seconds") == -1.5


def test_partitions_are_looked_into_when_scraped() -> None:
    meter = PrometheusMeter(StandingClock())
    owned: list[Partition] = []
    meter.watch(lambda: owned)
    owned.append(partition_with([NOW - 5_000, NOW, NOW + 1]))
    value = reader(meter)
    assert value("tocsin_armed_reminders", partition="3") == 3
    assert value("tocsin_backlog_reminders", partition="3") == 2
    assert value("tocsin_oldest_due_age_seconds", partition="3") == 5
    assert value("tocsin_partition_phase", partition="3", phase="live") == 1
    assert value("tocsin_partition_phase", partition="3", phase="restoring") == 0


def test_a_partition_that_goes_while_it_is_scraped_spoils_nothing() -> None:
    meter = PrometheusMeter(StandingClock())
    partition = partition_with([NOW])
    meter.watch(lambda: [partition])
    assert partition.store is not None
    partition.store.close()
    assert reader(meter)("tocsin_partition_phase", partition="3", phase="live") == 1


def test_restore_tells_what_is_left() -> None:
    meter = PrometheusMeter(StandingClock())
    partition = Partition(1)
    partition.restore_total, partition.restore_done = 100, 30
    meter.watch(lambda: [partition])
    assert reader(meter)("tocsin_restore_remaining_records", partition="1") == 70


def test_two_meters_share_nothing() -> None:
    one, other = PrometheusMeter(StandingClock()), PrometheusMeter(StandingClock())
    one.fired(0, [1])
    assert reader(other)("tocsin_lateness_seconds_count") == 0
