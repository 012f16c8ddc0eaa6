"""What was received and when, and whether it came exactly once."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from tocsin.codec.deliveries import METADATA, Metadata
from tocsin.codec.events import decode_event
from tocsin.core.events import Armed
from tocsin.core.values import DurationMs, EpochMs, Header
from tocsin.dataflow import Record


class Receipts(Struct, kw_only=True):
    """Everything one receiver saw, in the order in which it came; lists are of equal length."""

    #: Wall clock when the record was in the receiver's hands.
    received: list[int]
    #: Deliveries: due and fire time. Answers: the due that was armed, and the engine's time.
    due: list[int]
    fired: list[int]
    #: Slots passed over just before it.
    missed: list[int]
    partitions: list[int]
    #: Ids that had come before.
    duplicates: int
    #: Deliveries received before they were due; answers that were no Armed event.
    wrong: int


#: One record as it was taken in: wall clock, partition, and the bytes that tell what it is.
Taken = tuple[int, int, bytes]

_metadata = msgspec.json.Decoder(Metadata).decode


def taken_delivery(record: Record, at: int) -> Taken:
    """Return what is kept of a delivery: looking into it waits until the clock stands still."""
    return at, record.partition, metadata_of(record.headers)


def taken_event(record: Record, at: int) -> Taken:
    """Return what is kept of an event."""
    return at, record.partition, record.value or b""


def metadata_of(headers: Sequence[Header]) -> bytes:
    """Return the header `tocsin`, which the engine writes last; empty where there is none."""
    for name, value in reversed(headers):
        if name == METADATA:
            return value or b""
    return b""


def deliveries(taken: Iterable[Taken]) -> Receipts:
    """Return what the deliveries were about, and count ids that came again."""
    seen: set[str] = set()
    receipts = _none()
    for at, partition, header in taken:
        metadata = _metadata(header)
        seen.add(metadata.id)
        receipts.received.append(at)
        receipts.due.append(metadata.due)
        receipts.fired.append(metadata.fired)
        receipts.missed.append(metadata.missed)
        receipts.partitions.append(partition)
        receipts.wrong += at < metadata.due
    receipts.duplicates = len(receipts.received) - len(seen)
    return receipts


def answers(taken: Iterable[Taken]) -> Receipts:
    """Return what the Armed events said, and count commands that were answered again."""
    seen: set[tuple[int, int | None]] = set()
    receipts = _none()
    for at, partition, value in taken:
        event, stamp = decode_event(value)
        if not isinstance(event, Armed):
            receipts.wrong += stamp.answer
            continue
        seen.add((partition, stamp.command))
        receipts.received.append(at)
        receipts.due.append(event.spec.anchor)
        receipts.fired.append(stamp.engine_time)
        receipts.missed.append(0)
        receipts.partitions.append(partition)
    receipts.duplicates = len(receipts.received) - len(seen)
    return receipts


def between(receipts: Receipts, first: EpochMs, end: EpochMs) -> Receipts:
    """Return those that were due from `first` on and before `end`."""
    chosen = [i for i, due in enumerate(receipts.due) if first <= due < end]
    return Receipts(
        received=[receipts.received[i] for i in chosen],
        due=[receipts.due[i] for i in chosen],
        fired=[receipts.fired[i] for i in chosen],
        missed=[receipts.missed[i] for i in chosen],
        partitions=[receipts.partitions[i] for i in chosen],
        duplicates=receipts.duplicates,
        wrong=receipts.wrong,
    )


def missed_between(receipts: Receipts, first: EpochMs, end: EpochMs, every: DurationMs) -> int:
    """Return how many of the slots that were passed over were due from `first` on, before `end`."""
    return sum(
        first <= due - back * every < end
        for due, missed in zip(receipts.due, receipts.missed, strict=True)
        for back in range(1, missed + 1)
    )


def _none() -> Receipts:
    return Receipts(received=[], due=[], fired=[], missed=[], partitions=[], duplicates=0, wrong=0)
