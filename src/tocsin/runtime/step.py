"""One step: commands, then what is due, in one transaction; then the store.

No transaction is open across a poll. Each one ends, per partition, with the step record, carries
the positions with a fresh proof of membership (also when only timers fired: that is what fences a
stale owner), and touches only partitions that have something to say.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog

from tocsin.codec.commands import decode_command
from tocsin.codec.keys import STEP_KEY
from tocsin.codec.state import StepRecord, encode_step
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import Event, Fired, Kind, Refused, Undeliverable
from tocsin.core.values import EpochMs, Offset
from tocsin.dataflow import (
    BuryCommand,
    BuryDelivery,
    Change,
    Due,
    Effect,
    Incoming,
    Note,
    Record,
    Turn,
    View,
)
from tocsin.ports import Aborted, Broken, Report, Token, Transaction, Unknown, WorldError
from tocsin.runtime.encoding import Encoder, Outgoing, Staged
from tocsin.runtime.faults import Point
from tocsin.runtime.partition import Partition, Phase
from tocsin.runtime.rejections import Rejections
from tocsin.runtime.world import Installation, World

log = structlog.get_logger(__name__)

#: Commands leave this part of a step to what is due, or a flood of them would hold up firing.
RESERVED = 8
#: By then the coordinator has given up on the transaction, and the client library may wait for ever
#: for what it was to say of it. A new producer of the same id settles it.
UNKNOWN_MS_MAX = 15_000


class Stopped(WorldError):
    """Asked to stop while the outcome of a commit was unknown; a restart finds it out."""


class _Share:
    """What one partition has in the step under way."""

    def __init__(self, partition: Partition, encoder: Encoder, turn: Turn, engine: EpochMs) -> None:
        self.partition = partition
        self.encoder = encoder
        self.turn = turn
        self.engine_time = engine
        self.taken = 0
        self.next_command = partition.next_command
        self.notes: list[Note] = []
        #: End of the state topic after this step, once the broker has told.
        self.state_end: Offset | None = None

    def on_step_record(self, report: Report) -> None:
        """Take the offset of the step record, the last one of its transaction."""
        if report.error is None:
            self.state_end = Offset(report.offset + 1)


class Stepper:
    """Takes steps with one transactional producer."""

    def __init__(
        self,
        world: World,
        installation: Installation,
        transaction: Transaction,
        partitions: int,
        *,
        stopping: Callable[[], bool],
    ) -> None:
        self._intake = installation.topology.fed_by("commands").run
        self._timer = installation.topology.fed_by("timers").run
        self._names = installation.names
        self._state_topic = self._names.topic("state")
        own_topics = {self._names.topic(topic.name) for topic in installation.topology.topics}
        self._rejections = Rejections(self._names, frozenset(own_topics))
        self._limits = installation.limits
        self._bounds = installation.bounds
        self._partitions = partitions
        self._transaction = transaction
        self._clock = world.clock
        self._meter = world.meter
        self._faults = world.faults
        self._stopping = stopping
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._begun_at: int | None = None
        self._decisions = 0
        self._bytes = 0
        self._reserved = False

    @property
    def begun_at(self) -> int | None:
        """Monotonic time at which the last step's transaction began; None when it had none."""
        return self._begun_at

    # --- the step

    def run(self, partitions: Sequence[Partition], token: Token, *, may_fire: bool) -> bool:
        """Take one step over `partitions`; return whether anything was committed.

        Whatever is raised, every partition is as it was after the last committed step. Fenced and
        Broken: the producer is at its end.
        """
        now = self._clock.wall_ms()
        self._begin_anew()
        self._rejections.begin_step(now)
        self._reserved = may_fire
        try:
            shares = [self._take_commands(partition, now) for partition in partitions]
            for share in shares:
                if may_fire and share.partition.phase is Phase.LIVE:
                    self._take_due(share)
            shares = [share for share in shares if share.notes]
            if not shares:
                return False
            self._commit(shares, token)
        except Aborted as aborted:
            self._roll_back(partitions)
            self._abort()
            log.warning("transaction aborted", reason=str(aborted), permanent=aborted.permanent)
            self._rejections.learn(aborted, self._clock.wall_ms())
            return False
        except BaseException:
            self._roll_back(partitions)
            raise
        self._settle(shares, now)
        return True

    def _take_commands(self, partition: Partition, now: EpochMs) -> _Share:
        engine_time = max(partition.engine_time, now)
        encoder = Encoder(self._names, partition.number, partition.step + 1, engine_time)
        turn = self._turn(partition, now, partition.next_command)
        share = _Share(partition, encoder, turn, engine_time)
        if partition.lost is not None:
            self._emit(share, [Note(b"", partition.lost, None, answer=False)])
        for record in partition.inbox:
            if share.taken >= self._bounds.commands_max or not self._room_for_commands():
                break
            share.next_command = Offset(record.offset + 1)
            share.turn = self._turn(partition, now, share.next_command)
            self._decide(share, self._read_and_answer, record, _faulty_command)
            share.taken += 1
        return share

    def _take_due(self, share: _Share) -> None:
        index = share.partition.index
        if not self._room():
            return
        room = 1 if self._rejections.probing else self._bounds.decisions_max - self._decisions
        for due in index.due(share.turn.now, room):
            if self._rejections.probing or self._has_room():
                self._decide(share, self._timer, due, _faulty_fire)
            else:
                index.put_back(due)

    def _room_for_commands(self) -> bool:
        if self._rejections.probing or not self._reserved:
            return self._room()
        decisions_max, bytes_max = self._bounds.decisions_max, self._bounds.bytes_max
        decisions = decisions_max - min(-(-decisions_max // RESERVED), decisions_max - 1)
        return self._decisions < decisions and self._bytes < bytes_max - bytes_max // RESERVED

    def _room(self) -> bool:
        if self._rejections.probing:
            return self._decisions == 0
        return self._has_room()

    def _has_room(self) -> bool:
        return self._decisions < self._bounds.decisions_max and self._bytes < self._bounds.bytes_max

    def _turn(self, partition: Partition, now: EpochMs, next_command: Offset) -> Turn:
        return Turn(
            partition=partition.number,
            partitions=self._partitions,
            now=now,
            next_command=next_command,
            limits=self._limits,
            rejections=self._rejections.known,
        )

    # --- one decision

    def _decide(
        self,
        share: _Share,
        processor: Callable[[Any, View, Turn], Sequence[Effect]],
        subject: Record | Due,
        on_fault: Callable[[Any, Turn, Exception], Sequence[Effect]],
    ) -> None:
        """Let `processor` decide. Whatever our own code does, the partition goes on."""
        try:
            effects = processor(subject, share.partition.index, share.turn)
            encoded = share.encoder.encode(effects)
        except WorldError:
            raise
        except Exception as error:  # the loop's one guard
            log.exception("a decision failed", partition=share.turn.partition)
            self._meter.alert("fault")
            effects = on_fault(subject, share.turn, error)
            encoded = share.encoder.encode(effects)
        self._send(share, effects, *encoded)

    def _read_and_answer(self, record: Record, view: View, turn: Turn) -> Sequence[Effect]:
        appended = record.timestamp if record.appended else None
        try:
            command = decode_command(record.value, record.headers, record.offset, appended)
        except Refusal as refusal:
            return self._intake(Incoming(record, refusal), view, turn)
        return self._intake(Incoming(record, command), view, turn)

    def _emit(self, share: _Share, effects: Sequence[Effect]) -> None:
        self._send(share, effects, *share.encoder.encode(effects))

    def _send(
        self,
        share: _Share,
        effects: Sequence[Effect],
        outgoing: Sequence[Outgoing],
        staged: Sequence[Staged],
    ) -> None:
        """Produce what was decided, then let the rest of the step see it."""
        if self._begun_at is None:
            self._begin()
        for record in outgoing:
            self._produce(record)
        self._faults.at(Point.AFTER_FIRST_PRODUCE)
        index = share.partition.index
        for change in staged:
            index.stage(change.change, change.records)
        notes = [effect for effect in effects if type(effect) is Note]
        share.notes += notes
        self._decisions += len(notes)

    # --- the transaction

    def _begin(self) -> None:
        self._faults.at(Point.BEFORE_BEGIN)
        self._begun_at = self._clock.monotonic_ms()
        self._until_known(self._transaction.begin)
        self._faults.at(Point.AFTER_BEGIN)

    def _produce(self, record: Outgoing) -> None:
        self._bytes += len(record.value or b"")
        delivery = record.delivery
        report = None if delivery is None else self._rejections.watch(*delivery)
        self._transaction.produce(
            record.topic,
            record.partition,
            record.key,
            record.value,
            record.headers,
            record.timestamp,
            report,
        )

    def _commit(self, shares: Sequence[_Share], token: Token) -> None:
        for share in shares:
            self._transaction.produce(
                self._state_topic,
                share.partition.number,
                STEP_KEY,
                encode_step(_step_record(share)),
                report=share.on_step_record,
            )
        positions = {share.partition.number: share.next_command for share in shares}
        self._faults.at(Point.BEFORE_POSITIONS)
        self._until_known(partial(self._transaction.send_positions, positions, token))
        self._faults.at(Point.BEFORE_COMMIT)
        self._until_known(self._transaction.commit)
        self._faults.at(Point.AFTER_COMMIT)

    def _abort(self) -> None:
        if self._begun_at is None:
            return
        self._until_known(self._transaction.abort)
        self._record("aborted")

    def _until_known(self, call: Callable[[], None]) -> None:
        """Repeat `call` while its outcome is unknown; each try is bounded by the adapter."""
        since = self._clock.monotonic_ms()
        while True:
            try:
                return call()
            except Unknown as unknown:
                log.warning("waiting for the broker", reason=str(unknown))
                if self._stopping():
                    raise Stopped(str(unknown)) from unknown
                if self._clock.monotonic_ms() - since > UNKNOWN_MS_MAX:
                    raise Broken(f"nobody tells what became of a transaction: {unknown}") from None

    def _roll_back(self, partitions: Sequence[Partition]) -> None:
        for partition in partitions:
            partition.index.rollback()

    def _settle(self, shares: Sequence[_Share], now: EpochMs) -> None:
        """Take the committed step into the stores, and only then forget the commands."""
        self._record("committed")
        for share in shares:
            partition = share.partition
            assert share.state_end is not None, "a committed step record was reported"
            step = _step_record(share)
            partition.index.commit(step, share.state_end, now)
            partition.step = step.step
            partition.engine_time = share.engine_time
            partition.next_command = share.next_command
            partition.lost = None
            for _ in range(share.taken):
                partition.inbox.popleft()
            self._measure(share)
        self._faults.at(Point.AFTER_STORE)
        self._rejections.committed()

    # --- figures

    def _record(self, outcome: str) -> None:
        assert self._begun_at is not None
        took = self._clock.monotonic_ms() - self._begun_at
        self._meter.transaction(outcome, took / 1000)

    def _measure(self, share: _Share) -> None:
        lateness: list[int] = []
        for note in share.notes:
            event = note.event
            if isinstance(event, Fired):
                lateness.append(event.fired - event.due)
            elif isinstance(event, Undeliverable):
                self._meter.undeliverable(event.target)
            elif isinstance(event, Refused):
                self._meter.refused(event.reason)
            if note.answer:
                self._meter.answered(type(event).__name__)
        if lateness:
            self._meter.fired(share.partition.number, lateness)


def _step_record(share: _Share) -> StepRecord:
    commands, events, state = share.partition.topic_ids
    return StepRecord(
        step=share.partition.step + 1,
        next_command=share.next_command,
        engine_time=share.engine_time,
        commands_id=commands,
        events_id=events,
        state_id=state,
    )


def _faulty_command(record: Record, _turn: Turn, error: Exception) -> Sequence[Effect]:
    event = Refused(
        reason=Reason.FAULT,
        command=None,
        reminder=None,
        field="command",
        value=f"offset {record.offset}",
        way_out=f"the engine failed on it ({type(error).__name__}): please report this command",
    )
    return [Note(record.key, event, record.offset, answer=True), BuryCommand(record, event)]


def _faulty_fire(due: Due, turn: Turn, error: Exception) -> Sequence[Effect]:
    """End the reminder: a fire that our own code cannot decide would come back for ever."""
    reminder = due.reminder
    spec = reminder.spec
    fired = Fired(
        spec.reminder,
        spec.version,
        Kind.SCHEDULED,
        reminder.occurrence,
        reminder.due,
        turn.now,
        0,
        None,
        None,
        None,
        turn.next_command,
    )
    target = spec.to or "deliveries"
    failure = f"fault: {type(error).__name__}"
    event: Event = Undeliverable(fired=fired, target=target, error=failure)
    return [
        BuryDelivery(due.actor, spec, fired, target, failure),
        Note(due.actor.encode(), event, None, answer=False),
        Change(due.actor, spec.reminder, reminder, None),
    ]
