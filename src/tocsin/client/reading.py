"""Deliveries, events and dead letters as typed values, committed ones only.

What is no delivery or event of ours is passed over, counted and logged; a reader never stops at it.
"""

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

import structlog
from msgspec import Struct

from tocsin.client.ports import ClientLog, Source
from tocsin.client.sources import LogSource
from tocsin.codec.deliveries import Delivery, read_delivery
from tocsin.codec.errors import Undecodable
from tocsin.codec.events import Stamp, decode_event
from tocsin.core.events import Event
from tocsin.core.partitioning import partition_of
from tocsin.core.values import EpochMs, Header, Offset
from tocsin.dataflow import Record
from tocsin.ports import Clock

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: Longest wait of one look; short, so that Ctrl-C and `close` are heard.
SLICE_S = 0.2
BATCH = 500


class Received(Delivery, frozen=True):
    """A delivery, and where it lies."""

    topic: str = ""
    partition: int = -1
    offset: Offset = Offset(-1)

    @property
    def lateness_ms(self) -> int:
        """How long after its due it was fired."""
        return self.fired - self.due


class LoggedEvent(Struct, frozen=True):
    """An event of the audit log, and where it lies."""

    #: None: a refused command had a key that is no actor; see `key`.
    actor: str | None
    event: Event
    stamp: Stamp
    partition: int
    offset: Offset
    key: bytes | None


class DeadLetter(Struct, frozen=True):
    """A command that nobody could read, or a delivery that no broker takes, and why."""

    #: One word: a reason of a refusal, or `undeliverable`.
    reason: str
    error: str
    #: Where the command lay: topic[partition]@offset.
    source: str | None
    #: Topic that the delivery was meant for.
    target: str | None
    #: Its key, value and headers as received, without those that give the reason.
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    appended: EpochMs
    partition: int
    offset: Offset


class Reader(Generic[T]):
    """Values one after the other; iterate, or `poll`. For one thread; close it, or use `with`.

    Iterating ends after `limit` values, after `idle` seconds without any, at the agreed end, or
    when `close` was called.
    """

    def __init__(
        self,
        source: Source,
        decode: Callable[[Record], T | None],
        clock: Clock,
        *,
        limit: int | None = None,
        idle: float | None = None,
    ) -> None:
        self._source = source
        self._decode = decode
        self._clock = clock
        self._limit = limit
        self._idle = idle
        self._waiting: list[Record] = []
        self._in_hand: Record | None = None
        self._closed = False
        #: Values given out so far.
        self.count = 0
        #: Records passed over because they could not be read.
        self.unreadable = 0

    def poll(self, timeout: float) -> T | None:
        """Return the next value, None when none came within `timeout` seconds or at the end.

        With a group, the call after this one says that the value was handled.
        """
        until = self._clock.monotonic_ms() + round(timeout * 1000)
        while not self._closed:
            self._settle()
            while self._waiting:
                record = self._waiting.pop()
                self._in_hand = record
                value = self._decode(record)
                if value is not None:
                    self.count += 1
                    return value
                self.unreadable += 1
                self._settle()
            left_s = (until - self._clock.monotonic_ms()) / 1000
            if self._source.finished():
                return None
            self._waiting = self._source.read(min(max(left_s, 0), SLICE_S), BATCH)[::-1]
            if not self._waiting and left_s <= 0:
                return None
        return None

    def __iter__(self) -> Iterator[T]:
        heard = self._clock.monotonic_ms()
        while not self._closed and (self._limit is None or self.count < self._limit):
            value = self.poll(SLICE_S)
            if value is not None:
                yield value
                heard = self._clock.monotonic_ms()
            elif self.finished() or self._silent_since(heard):
                return

    def finished(self) -> bool:
        """Whether the agreed end was reached and nothing is left to give out."""
        return self._source.finished() and not self._waiting

    def progress(self) -> tuple[int, int]:
        """Return how many offsets were passed, and how many there are up to the agreed end."""
        return self._source.progress()

    def close(self) -> None:
        """Let go of it. In a group, the value in hand counts as not handled."""
        if not self._closed:
            self._closed = True
            self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        # Whoever leaves in peace is done with what it has in hand.
        if kind is None and not self._closed:
            self._settle()
        self.close()

    def _settle(self) -> None:
        if self._in_hand is not None:
            self._source.handled(self._in_hand)
            self._in_hand = None

    def _silent_since(self, heard: int) -> bool:
        return self._idle is not None and (self._clock.monotonic_ms() - heard >= self._idle * 1000)


class Readers:
    """Opens readers on the topics of one installation."""

    def __init__(self, log: ClientLog, clock: Clock, prefix: str) -> None:
        self._log = log
        self._clock = clock
        self._prefix = prefix

    def deliveries(
        self,
        *,
        topic: str | None,
        group: str | None,
        from_beginning: bool,
        to_end: bool,
        limit: int | None,
        idle: float | None,
    ) -> Reader[Received]:
        """Return a reader of a delivery topic, the default one where `topic` is None."""
        name = topic if topic is not None else f"{self._prefix}.deliveries"
        if group is None:
            source: Source = self._open(name, from_beginning=from_beginning, to_end=to_end)
        elif to_end:
            raise ValueError("to_end goes without a group: a group shares what comes")
        else:
            self._log.partitions(name)
            source = self._log.group(name, group, from_beginning=from_beginning)
        return Reader(source, received, self._clock, limit=limit, idle=idle)

    def events(
        self,
        *,
        key: bytes | None,
        from_beginning: bool,
        to_end: bool,
        limit: int | None,
        idle: float | None,
    ) -> Reader[LoggedEvent]:
        """Return a reader of the audit log; of one actor alone where its `key` is given."""
        name = f"{self._prefix}.events"
        partitions = None
        if key is not None:
            partitions = [partition_of(key, self._log.partitions(name))]
        source = self._open(
            name, from_beginning=from_beginning, to_end=to_end, partitions=partitions
        )
        if key is not None:
            source.only(key)
        return Reader(source, logged_event, self._clock, limit=limit, idle=idle)

    def dead_letters(
        self, *, from_beginning: bool, to_end: bool, limit: int | None, idle: float | None
    ) -> Reader[DeadLetter]:
        """Return a reader of the dead letters."""
        source = self._open(
            f"{self._prefix}.dead-letters", from_beginning=from_beginning, to_end=to_end
        )
        return Reader(source, dead_letter, self._clock, limit=limit, idle=idle)

    def records(self, topic: str) -> list[Record]:
        """Return every committed record of a small topic of the installation."""
        source = self._open(f"{self._prefix}.{topic}", from_beginning=True, to_end=True)
        records: list[Record] = []
        try:
            while not source.finished():
                records += source.read(SLICE_S, BATCH)
        finally:
            source.close()
        return records

    def _open(
        self,
        topic: str,
        *,
        from_beginning: bool,
        to_end: bool,
        partitions: Sequence[int] | None = None,
    ) -> LogSource:
        if partitions is None:
            partitions = range(self._log.partitions(topic))
        bounds = self._log.bounds(topic, partitions)
        return LogSource(
            self._log.reader(), topic, bounds, from_beginning=from_beginning, to_end=to_end
        )


def received(record: Record) -> Received | None:
    """Return the delivery that a record is; None, logged, when it is none."""
    try:
        delivery = read_delivery(record.headers, record.key, record.value)
    except Undecodable as error:
        _passed_over(record, error)
        return None
    fields = {name: getattr(delivery, name) for name in delivery.__struct_fields__}
    return Received(**fields, topic=record.topic, partition=record.partition, offset=record.offset)


def logged_event(record: Record) -> LoggedEvent | None:
    """Return the event that a record is; None, logged, when it is none that this release knows."""
    try:
        event, stamp = decode_event(record.value or b"")
    except Undecodable as error:
        _passed_over(record, error)
        return None
    return LoggedEvent(_text(record.key), event, stamp, record.partition, record.offset, record.key)


def dead_letter(record: Record) -> DeadLetter:
    """Return the dead letter that a record is; the engine's headers are the last of their name."""
    told = {name: value for name, value in record.headers if name in _TOLD and value is not None}
    as_received = [header for header in record.headers if header[0] not in _TOLD]
    return DeadLetter(
        reason=_text(told.get("tocsin-reason")) or "",
        error=_text(told.get("tocsin-error")) or "",
        source=_text(told.get("tocsin-source")),
        target=_text(told.get("tocsin-target")),
        key=record.key,
        value=record.value,
        headers=tuple(as_received),
        appended=record.timestamp,
        partition=record.partition,
        offset=record.offset,
    )


#: Headers of runtime/dead_letters.py; the names are on the wire.
_TOLD = frozenset({"tocsin-reason", "tocsin-error", "tocsin-source", "tocsin-target"})


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _passed_over(record: Record, error: Undecodable) -> None:
    log.warning(
        "passed over a record",
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        reason=str(error),
    )
