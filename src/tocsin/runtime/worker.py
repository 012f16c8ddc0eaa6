"""The loop: one thread, one consumer, one transactional producer.

A turn polls the group, restores a slice of what was just assigned, and takes one step over the
partitions that are ready. Nothing of a lost partition survives the poll that says so.
"""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter

import structlog

from tocsin.core.values import EpochMs, Offset
from tocsin.ports import Fenced, OffsetGone, Transaction, Unreachable
from tocsin.runtime.clock_watch import ClockWatch, Gap
from tocsin.runtime.index import IndexBroken
from tocsin.runtime.partition import Partition, Phase
from tocsin.runtime.recovery import Recovery
from tocsin.runtime.status import StatusBoard
from tocsin.runtime.step import Stepper, Stopped
from tocsin.runtime.world import Installation, World

log = structlog.get_logger(__name__)

#: The longest the loop waits for commands: what a due index could miss, it sees after this.
SLEEP_S_MAX = 0.5
#: Commands kept in memory per worker, read and not yet answered.
INBOX_MAX = 2_000
#: Pause before a broker that did not answer is asked again.
ASK_AGAIN_MS = 500
#: Pause before a predecessor's undecided transaction is asked about again.
ASK_SOON_MS = 20
#: Fenced twice within this time: somebody has our identity, and another one is needed.
FENCED_AGAIN_MS = 60_000


class Worker:
    """Owns the partitions that the group gives it, and fires what is due in them."""

    def __init__(self, world: World, installation: Installation, status: StatusBoard) -> None:
        self._world = world
        self._installation = installation
        self._commands_topic = installation.names.topic("commands")
        self._recovery = Recovery(world, installation)
        self._status = status
        self._watch = ClockWatch(installation.jump_ms_max)
        self._partitions: dict[int, Partition] = {}
        self._transaction: Transaction | None = None
        self._stepper: Stepper | None = None
        self._stopping = False
        #: As of the last turn: other threads read it, and never ask the client library.
        self.is_member = False
        self._ask_again_at = 0
        self._fenced_at: int | None = None
        self._turn_number = 0

    # --- from outside

    def run(self) -> None:
        """Take turns until asked to stop; then leave the group at once."""
        self._world.commands.join(self)
        try:
            while not self._stopping:
                self.turn()
        except Stopped as stopped:
            log.warning("stopped with an open question", reason=str(stopped))
        finally:
            self._leave()

    def stop(self) -> None:
        """Ask the loop to end after the step under way; safe from a signal handler."""
        self._stopping = True

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions owned now, in order. A copy: readers of other threads may take it."""
        return sorted(self._partitions.values(), key=attrgetter("number"))

    @property
    def transaction_begun(self) -> int | None:
        """Monotonic time at which the last step's transaction began; None when it had none."""
        stepper = self._stepper
        return None if stepper is None else stepper.begun_at

    def turn(self) -> None:
        """Poll once, then take one step."""
        self._look_at_clocks()
        world = self._world
        room = INBOX_MAX - sum(len(p.inbox) for p in self._partitions.values())
        try:
            for record in world.commands.poll(self._timeout_s(), max(room, 1)):
                partition = self._partitions.get(record.partition)
                if partition is not None and partition.phase is not Phase.RESTORING:
                    partition.inbox.append(record)
        except OffsetGone as gone:  # retention overtook us: find the place in the commands anew
            log.warning("commands are gone", reason=str(gone))
            self._restore_again([gone.partition])
        self._restore()
        self._catch_up()
        self._step()
        self._status.turn(self.partitions, self._clock_ms())

    # --- ownership; called from within poll

    def assigned(self, partitions: Sequence[int]) -> None:
        """Take partitions; nothing is read from them before they are restored."""
        log.info("assigned", partitions=sorted(partitions))
        self._read_ends_again()
        for number in partitions:
            self._partitions[number] = Partition(number)

    def revoked(self, partitions: Sequence[int]) -> None:
        """Let go of partitions while still their owner. Nothing is open across a poll."""
        log.info("revoked", partitions=sorted(partitions))
        self._read_ends_again()
        for number in partitions:
            partition = self._partitions.get(number)
            if partition is not None and partition.phase is not Phase.RESTORING:
                partition.index.at_end(partition.index.checkpoint.offset, self._clock_ms())
        self.lost(partitions)

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop partitions that are somebody else's already."""
        for number in partitions:
            self._recovery.drop(number)
            partition = self._partitions.pop(number, None)
            if partition is not None:
                partition.close()

    # --- parts of a turn

    def _look_at_clocks(self) -> None:
        """After a gap in time nothing fires before the commands' end was read again."""
        clock = self._world.clock
        gap = self._watch.look(clock.wall_ms(), clock.monotonic_ms())
        if gap is Gap.NONE:
            return
        if gap is Gap.JUMP:
            log.warning("the wall clock jumped: waiting for the broker's clock to agree")
            self._world.meter.alert("clock_jump")
            self._status.doubt_clock()
        if self._read_ends_again() and gap is Gap.STALL:
            log.info("time went by without us: reading the commands' end again")

    def _read_ends_again(self) -> bool:
        """Let nothing fire before the commands that are in the log now are answered; return whether
        there is a partition that this holds up.

        At a rebalance too, for the partitions that stay: the client drops what it had fetched ahead
        for them and takes a second, at worst, to fetch it again.
        """
        ready = [p for p in self._partitions.values() if p.phase is not Phase.RESTORING]
        for partition in ready:
            partition.phase, partition.frozen_end = Phase.CATCHING_UP, None
        return bool(ready)

    def _timeout_s(self) -> float:
        now = self._world.clock.wall_ms()
        earliest = EpochMs(now + int(SLEEP_S_MAX * 1000))
        for partition in self._partitions.values():
            if partition.inbox or self._recovery.under_way(partition):
                return 0.0
            if partition.phase is Phase.RESTORING:
                earliest = min(earliest, EpochMs(now + ASK_SOON_MS))
            if partition.phase is Phase.LIVE and not self._status.clock_in_doubt:
                head = partition.index.head()
                if head is not None and head < earliest:
                    earliest = head
        return max(0, earliest - now) / 1000

    def _restore(self) -> None:
        if self._partitions and self._stepper is None:
            # First of all: it ends what an earlier life of this worker left open, and restore
            # would wait for.
            self._new_stepper(renew=False)
        if self._world.clock.monotonic_ms() >= self._ask_again_at:
            waiting = [p for p in self._partitions.values() if self._waits_to_restore(p)]
            if waiting:
                self._ask(partial(self._recovery.begin, waiting))
        self._recovery.advance()

    def _waits_to_restore(self, partition: Partition) -> bool:
        return partition.phase is Phase.RESTORING and not self._recovery.under_way(partition)

    def _catch_up(self) -> None:
        """Let partitions fire whose commands, as they stood, are all answered."""
        waiting = [p for p in self.partitions if p.phase is Phase.CATCHING_UP]
        unknown = [p.number for p in waiting if p.frozen_end is None]
        if unknown and self._world.clock.monotonic_ms() >= self._ask_again_at:
            self._ask(lambda: self._freeze(unknown))
        for partition in waiting:
            end = partition.frozen_end
            if end is not None and self._answered_up_to(partition) >= end:
                partition.phase = Phase.LIVE
                log.info("live", partition=partition.number, armed=partition.index.checkpoint.armed)

    def _answered_up_to(self, partition: Partition) -> Offset:
        """Return the offset before which every command was answered, or none was visible."""
        if partition.inbox:
            return partition.inbox[0].offset
        return max(partition.next_command, self._world.commands.reached(partition.number))

    def _freeze(self, numbers: Sequence[int]) -> None:
        bounds = self._world.cluster.bounds(self._commands_topic, numbers)
        for number in numbers:
            self._partitions[number].frozen_end = bounds[number].stable_end

    def _ask(self, question: Callable[[], None]) -> None:
        """Ask the brokers something; when none answers, wait a little before the next question."""
        try:
            question()
        except Unreachable as unreachable:
            log.warning("waiting for the broker", reason=str(unreachable))
            self._ask_again_at = self._world.clock.monotonic_ms() + ASK_AGAIN_MS

    def _step(self) -> None:
        ready = [p for p in self.partitions if p.phase is not Phase.RESTORING]
        token = self._world.commands.token()
        self.is_member = token is not None
        if not ready or token is None:
            return
        self._turn_number += 1
        start = self._turn_number % len(ready)  # nobody is always last
        self._look_at_clocks()  # a freeze within this turn must not fire what it made due
        try:
            stepper = self._stepper
            assert stepper is not None, "made at the first assignment"
            may_fire = not self._status.clock_in_doubt
            stepper.run(ready[start:] + ready[:start], token, may_fire=may_fire)
        except Fenced as fenced:
            self._restart_producer(fenced)
        except IndexBroken as broken:
            self._rebuild(broken)

    # --- beginnings and ends

    def _new_stepper(self, *, renew: bool) -> None:
        transaction = self._world.transaction(renew)
        transaction.open()
        self._transaction = transaction
        topic = self._world.cluster.topic(self._commands_topic)
        assert topic is not None, "checked before the worker joined"
        self._stepper = Stepper(
            self._world,
            self._installation,
            transaction,
            topic.partitions,
            stopping=lambda: self._stopping,
        )

    def _restart_producer(self, fenced: Fenced) -> None:
        """Go on with a new producer; what the last step came to, the state topic tells.

        The first time under the same identity: then its next transaction also ends an offset that
        the coordinator left pending. Fenced again soon, somebody else has this identity.
        """
        log.warning("the producer was fenced: starting a new one", reason=str(fenced))
        self._world.meter.alert("producer_fenced")
        if self._transaction is not None:
            self._transaction.close()
        self._transaction = self._stepper = None
        self._restore_again(list(self._partitions))
        now = self._world.clock.monotonic_ms()
        again = self._fenced_at is not None and now - self._fenced_at < FENCED_AGAIN_MS
        self._fenced_at = now
        self._new_stepper(renew=again)

    def _rebuild(self, broken: IndexBroken) -> None:
        log.error("a store contradicts itself: building it anew", reason=str(broken))
        self._world.meter.alert("index_broken")
        numbers = list(self._partitions)
        self._restore_again(numbers)
        for number in numbers:
            self._world.stores.wipe(number)

    def _restore_again(self, numbers: Sequence[int]) -> None:
        self.lost(numbers)
        self._world.commands.hold(numbers)
        self.assigned(numbers)

    def _leave(self) -> None:
        if self._transaction is not None:
            self._transaction.close()
        self._world.commands.close()
        self.lost(list(self._partitions))
        self._status.close()

    def _clock_ms(self) -> EpochMs:
        return self._world.clock.wall_ms()
