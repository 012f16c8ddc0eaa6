"""What the receiver makes of the records it took."""

from tocsin.bench.receipts import (
    Receipts,
    Taken,
    answers,
    between,
    deliveries,
    metadata_of,
    missed_between,
)
from tocsin.codec.deliveries import delivery_headers
from tocsin.codec.events import Stamp, encode_event
from tocsin.core.errors import Reason
from tocsin.core.events import Armed, Event, Fired, Kind, Refused
from tocsin.core.reminder import Spec
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

SPEC = Spec(
    reminder="pay",
    version=Version(7),
    anchor=EpochMs(1_000),
    every=None,
    payload=b"x",
    content_type="text/plain",
    headers=(("mine", b"1"),),
    to=None,
    traceparent=None,
)
REFUSED = Refused(
    reason=Reason.EXISTS, command="arm", reminder="pay", field="f", value="v", way_out="w"
)


def delivery(occurrence: int, due: int, at: int, partition: int = 0, missed: int = 0) -> Taken:
    fired = Fired(
        "pay",
        SPEC.version,
        Kind.SCHEDULED,
        occurrence,
        EpochMs(due),
        EpochMs(due + 3),
        missed,
        None,
        None,
        None,
        Offset(9),
    )
    return at, partition, metadata_of(delivery_headers(partition, "order/1", SPEC, fired))


def answer(event: Event, command: int, at: int, partition: int = 0) -> Taken:
    stamp = Stamp(EpochMs(900), 1, Offset(command), answer=True)
    return at, partition, encode_event(event, stamp)


def test_a_delivery_tells_receipt_due_fire_time_and_what_was_missed() -> None:
    receipts = deliveries([delivery(0, due=1_000, at=1_020, partition=3, missed=2)])
    assert receipts.received == [1_020]
    assert receipts.due == [1_000]
    assert receipts.fired == [1_003]
    assert receipts.missed == [2]
    assert receipts.partitions == [3]
    assert (receipts.duplicates, receipts.wrong) == (0, 0)


def test_an_id_that_comes_again_is_a_duplicate() -> None:
    taken = [delivery(k, due=1_000, at=1_020) for k in (0, 1, 0)]
    assert deliveries(taken).duplicates == 1


def test_the_same_version_in_another_partition_is_another_id() -> None:
    taken = [delivery(0, due=1_000, at=1_020, partition=p) for p in (0, 1)]
    assert deliveries(taken).duplicates == 0


def test_a_receipt_before_the_due_is_wrong() -> None:
    assert deliveries([delivery(0, due=1_000, at=999)]).wrong == 1


def test_an_armed_event_is_an_answer() -> None:
    receipts = answers([answer(Armed(spec=SPEC), command=7, at=950)])
    assert receipts.received == [950]
    assert receipts.due == [1_000]
    assert (receipts.duplicates, receipts.wrong) == (0, 0)


def test_a_command_answered_again_is_a_duplicate() -> None:
    taken = [answer(Armed(spec=SPEC), command=c, at=950) for c in (7, 7, 8)]
    assert answers(taken).duplicates == 1


def test_a_refusal_is_wrong_and_no_receipt() -> None:
    receipts = answers([answer(REFUSED, command=7, at=950)])
    assert receipts.received == []
    assert receipts.wrong == 1


def test_between_keeps_what_was_due_in_the_window() -> None:
    taken = [delivery(k, due=k, at=10) for k in range(6)]
    chosen: Receipts = between(deliveries(taken), EpochMs(2), EpochMs(4))
    assert chosen.due == [2, 3]
    assert len(chosen.received) == len(chosen.fired) == len(chosen.missed) == 2


def test_of_the_slots_passed_over_those_in_the_window_count() -> None:
    # Slots at 70, 80 and 90 were passed over; the delivery itself is no longer in the window.
    receipts = deliveries([delivery(9, due=100, at=110, missed=3)])
    assert missed_between(receipts, EpochMs(80), EpochMs(100), DurationMs(10)) == 2
