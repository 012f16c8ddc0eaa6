"""Every fire has exactly one delivery with its id, key, payload and headers; no other is there.

Fires of a partition and their deliveries in one partition of a target come in the same order, so
the two are merged. Memory is bounded: LOOKAHEAD_MAX deliveries ahead of their events, PENDING_MAX
fires whose delivery was not met, MATCHED_MAX ids to tell a second copy by.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from math import gcd
from typing import Protocol

import msgspec
from msgspec import Struct, field

from tocsin.audit.findings import Findings, Kind, Place
from tocsin.codec.deliveries import METADATA, delivery_headers, delivery_id, read_delivery
from tocsin.codec.errors import Undecodable
from tocsin.core.events import Fired
from tocsin.core.partitioning import partition_of
from tocsin.core.reminder import Spec
from tocsin.core.values import EpochMs, Offset, Version
from tocsin.dataflow import Record

LOOKAHEAD_MAX = 1_000
PENDING_MAX = 10_000
MATCHED_MAX = 100_000
TOLERATED_MAX = 1_000


class DeliveryLog(Struct, frozen=True):
    """One partition of a target topic."""

    records: Iterator[Record]
    #: Where the log starts now; above 0 retention cut it.
    start: Offset
    #: Each record below this offset must have its event among those given.
    settled: Offset


class DeliveryLogs(Protocol):
    """The target topics."""

    @property
    def default(self) -> str:
        """Full name of the default delivery topic."""

    @property
    def targets(self) -> Sequence[str]:
        """The topics in which each delivery must have an event; the default one among them."""

    @property
    def owners(self) -> int:
        """Number of partitions of the commands."""

    def partitions(self, topic: str) -> int | None:
        """Return the number of partitions of `topic`; None: it is not there."""

    def log(self, topic: str, partition: int) -> DeliveryLog:
        """Return this partition, to be read once."""


class _Metadata(Struct, frozen=True):
    """What the matching needs of the header `tocsin`."""

    id: str
    actor: str
    reminder: str
    version: Version
    fired: EpochMs


class _Expected(Struct, frozen=True):
    place: Place
    id: str
    spec: Spec
    fired: Fired


_decode = msgspec.json.Decoder(_Metadata).decode


class _Excused(Struct):
    """Which deliveries need no event, shared by all lanes."""

    #: Retention cut the events: deliveries fired up to this engine time may have had theirs.
    engine_time: EpochMs | None = None
    #: (actor, reminder, version) armed before the cut, of unknown target and payload.
    unknown: set[tuple[str, str, Version]] = field(default_factory=set)
    #: Ids of fires that were found wrong already.
    tolerated: OrderedDict[str, None] = field(default_factory=OrderedDict)


class DeliveryMatch:
    """Holds the deliveries of one partition's fires against their events."""

    def __init__(self, partition: int, logs: DeliveryLogs | None, findings: Findings) -> None:
        self._partition = partition
        self._logs = logs
        self._findings = findings
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._excused = _Excused()
        self.matched = 0
        #: Fires and deliveries that nothing can be said of.
        self.unproved = 0

    def expect(self, place: Place, spec: Spec, fired: Fired) -> None:
        """Take a fire, in the order of the events."""
        if self._logs is None or place.actor is None:
            return
        topic = spec.to or self._logs.default
        count = self._logs.partitions(topic)
        if not count:
            self.unproved += 1
            return
        lane = self._lane(topic, partition_of(place.actor.encode(), count))
        before = lane.matched, lane.unproved
        lane.expect(_Expected(place, delivery_id(self._partition, fired), spec, fired))
        self.matched += lane.matched - before[0]
        self.unproved += lane.unproved - before[1]

    def begin_at(self, engine_time: EpochMs) -> None:
        """Take that events are gone, and that those left begin at `engine_time`."""
        self._excused.engine_time = engine_time

    def tolerate(self, fired: Fired) -> None:
        """Take a fire that was found wrong already: its delivery is not to be found once more."""
        tolerated = self._excused.tolerated
        tolerated[delivery_id(self._partition, fired)] = None
        if len(tolerated) > TOLERATED_MAX:
            tolerated.popitem(last=False)

    def pass_over(self, place: Place, fired: Fired) -> None:
        """Take a fire of a reminder whose target and payload were in events that are gone."""
        assert place.actor is not None, "it was folded"
        self._excused.unknown.add((place.actor, fired.reminder, fired.version))
        self.unproved += 1

    def finish(self) -> None:
        """Take note that no more fires come."""
        if self._logs is None:
            return
        for topic in self._logs.targets:
            count = self._logs.partitions(topic) or 0
            step = gcd(count, self._logs.owners)
            for number in range(count):
                if number % step == self._partition % step:
                    self._lane(topic, number)
        for lane in self._lanes.values():
            before = lane.matched, lane.unproved
            lane.finish()
            self.matched += lane.matched - before[0]
            self.unproved += lane.unproved - before[1]

    def _lane(self, topic: str, number: int) -> "_Lane":
        lane = self._lanes.get((topic, number))
        if lane is None:
            assert self._logs is not None, "there is a topic"
            lane = self._lanes[topic, number] = _Lane(
                self._partition,
                self._logs.log(topic, number),
                self._logs.owners if topic == self._logs.default else None,
                self._findings,
                self._excused,
            )
        return lane


class _Lane:
    """One partition of a target: its records from this partition of the commands, in order."""

    def __init__(
        self,
        partition: int,
        log: DeliveryLog,
        owners: int | None,
        findings: Findings,
        excused: _Excused,
    ) -> None:
        self._prefix = f"{partition}:"
        self._partition = partition
        self._log = log
        #: Set for the topic in which nobody but the engine writes.
        self._owners = owners
        self._findings = findings
        self._excused = excused
        self._synced = log.start == 0 and excused.engine_time is None
        self._expected = 0
        #: Of the deliveries that were matched, the furthest.
        self._last_offset = -1
        self._held: OrderedDict[str, tuple[Record, EpochMs, int]] = OrderedDict()
        self._pending: OrderedDict[str, _Expected] = OrderedDict()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self.matched = 0
        self.unproved = 0

    def expect(self, expected: _Expected) -> None:
        self._expected += 1
        self._judge_overdue(expected.fired.fired)
        held = self._held.pop(expected.id, None)
        record = held[0] if held is not None else self._pull(expected.id)
        if record is not None:
            self._match(expected, record)
        elif self._synced:
            self._pending[expected.id] = expected
            if len(self._pending) > PENDING_MAX:
                self._miss(self._pending.popitem(last=False)[1])
        else:
            self.unproved += 1

    def finish(self) -> None:
        for record, _, _ in self._held.values():
            self._judge(record)
        self._held.clear()
        while (found := self._next()) is not None:
            record, metadata = found
            expected = self._pending.pop(metadata.id, None)
            if expected is not None:
                self._match(expected, record)
            elif self._may_be_older(metadata):
                self.unproved += 1
            else:
                self._judge(record)
        for expected in self._pending.values():
            self._miss(expected)
        self._pending.clear()

    def _pull(self, wanted: str) -> Record | None:
        """Read on until `wanted`, but no further ahead than is held in memory."""
        while len(self._held) < LOOKAHEAD_MAX:
            found = self._next()
            if found is None:
                return None
            record, metadata = found
            if metadata.id == wanted:
                return record
            late = self._pending.pop(metadata.id, None)
            if late is not None:
                self._match(late, record)
            elif metadata.id in self._seen or metadata.id in self._held:
                self._judge(record, again=True)
            elif self._may_be_older(metadata):
                self.unproved += 1
            else:
                self._held[metadata.id] = (record, metadata.fired, self._expected)
        return None

    def _next(self) -> tuple[Record, _Metadata] | None:
        """Return the next record that this partition of the commands caused."""
        for record in self._log.records:
            metadata = _metadata(record)
            if metadata is None:
                self._check_foreign(record)
            elif metadata.id.startswith(self._prefix):
                return record, metadata
        return None

    def _may_be_older(self, metadata: _Metadata) -> bool:
        """Whether its event, or that of its arming, may have been cut off."""
        excused = self._excused
        if excused.engine_time is None:
            return False
        if (metadata.actor, metadata.reminder, metadata.version) in excused.unknown:
            return True
        return not self._synced and metadata.fired <= excused.engine_time

    def _judge_overdue(self, now: EpochMs) -> None:
        """Give up on what should have met its event long ago, or nothing more could be held.

        Neither sign alone is enough: where deliveries are missing, those behind them wait long.
        """
        while self._held:
            record, fired, since = next(iter(self._held.values()))
            overtaken = record.offset < self._last_offset or fired < now
            if not overtaken or self._expected - since <= 2 * LOOKAHEAD_MAX:
                return
            self._held.popitem(last=False)
            self._judge(record)

    # --- verdicts

    def _match(self, expected: _Expected, record: Record) -> None:
        self._synced = True
        self.matched += 1
        if record.offset < self._last_offset:
            text = f"delivery {expected.id} comes before one that was decided earlier"
            self._findings.add(Kind.ORDER, _place(record, expected.place.reminder), text)
        self._last_offset = max(self._last_offset, record.offset)
        self._seen[expected.id] = None
        if len(self._seen) > MATCHED_MAX:
            self._seen.popitem(last=False)
        difference = _difference(self._partition, expected, record)
        if difference is not None:
            self._findings.add(
                Kind.DELIVERY_DIFFERS,
                _place(record, expected.place.reminder),
                f"delivery {expected.id} of event {expected.place.offset}: {difference}",
            )

    def _miss(self, expected: _Expected) -> None:
        topic = self._log_topic(expected)
        text = f"fired, but delivery {expected.id} is not in {topic}"
        self._findings.add(Kind.DELIVERY_MISSING, expected.place, text)

    def _log_topic(self, expected: _Expected) -> str:
        return expected.spec.to or "the default delivery topic"

    def _judge(self, record: Record, *, again: bool = False) -> None:
        """Add a finding about a record that no event waits for."""
        metadata = _metadata(record)
        assert metadata is not None, "it was read before"
        if again or metadata.id in self._seen:
            text = f"delivery {metadata.id} is there a second time"
            self._findings.add(Kind.DELIVERY_DUPLICATE, _place(record), text)
        elif record.offset < self._log.settled and self._needs_event(metadata):
            text = f"no event decided delivery {metadata.id}"
            self._findings.add(Kind.DELIVERY_EXTRA, _place(record), text)

    def _needs_event(self, metadata: _Metadata) -> bool:
        return metadata.id not in self._excused.tolerated and not self._may_be_older(metadata)

    def _check_foreign(self, record: Record) -> None:
        """Find what is no delivery of ours, in the one topic where nothing else belongs."""
        owners = self._owners
        if owners is not None and partition_of(record.key or b"", owners) == self._partition:
            text = "a record that the engine did not write: it has no readable header `tocsin`"
            self._findings.add(Kind.DELIVERY_EXTRA, _place(record), text)


def _metadata(record: Record) -> _Metadata | None:
    for name, value in reversed(record.headers):
        if name == METADATA and value is not None:
            try:
                return _decode(value)
            except msgspec.DecodeError:
                return None
    return None


def _difference(partition: int, expected: _Expected, record: Record) -> str | None:
    """Return in what a delivery differs from what its event says."""
    actor, spec, fired = expected.place.actor, expected.spec, expected.fired
    assert actor is not None, "a fire without an actor is not expected"
    if record.key != actor.encode():
        return f"its key is {record.key!r}"
    if record.value != spec.payload:
        return f"its payload is not the armed one ({len(record.value or b'')} bytes)"
    if not record.appended and record.timestamp != fired.fired:
        return f"its timestamp is {record.timestamp}, fired at {fired.fired}"
    headers = tuple(delivery_headers(partition, actor, spec, fired))
    if record.headers == headers:
        return None
    try:  # another release may spell the metadata in another way
        told = read_delivery(record.headers, record.key, record.value)
        meant = read_delivery(headers, record.key, spec.payload)
    except Undecodable as error:
        return str(error)
    for name in meant.__struct_fields__:
        if getattr(told, name) != getattr(meant, name):
            return f"its {name} is {getattr(told, name)!r}, armed {getattr(meant, name)!r}"
    return None


def _place(record: Record, reminder: str | None = None) -> Place:
    actor = None if record.key is None else record.key.decode(errors="replace")
    return Place(record.topic, record.offset, actor, reminder)
