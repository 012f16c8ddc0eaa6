"""From an assigned partition to one that may fire: follow the state topic, then find the place in
the commands. The step record says where commands go on; group offsets expire and are no proof.

What does not fit together is refused, never guessed: CannotStart says what the operator can do.
"""

from collections.abc import Iterator, Mapping, Sequence

import structlog
from msgspec import Struct

from tocsin.codec.state import StepRecord
from tocsin.core.events import CommandsLost
from tocsin.core.values import EpochMs, Offset
from tocsin.ports import Bounds, TopicState
from tocsin.runtime.faults import Point
from tocsin.runtime.index import (
    FORMAT,
    Checkpoint,
    TimerIndex,
    read_checkpoint,
)
from tocsin.runtime.partition import Partition, Phase
from tocsin.runtime.world import Installation, World

log = structlog.get_logger(__name__)

#: Beyond the transactions' time-out, before an offset that stays pending is passed over.
PENDING_MARGIN_MS = 2_000
#: State records taken between two polls of the group.
SLICE_MAX = 5_000
#: The longest a slice waits for the first of them.
READ_S = 0.02
DELETE_RETENTION = "delete.retention.ms"


class CannotStart(Exception):
    """The worker must not go on; the message says why and names the way out."""


class Anchors(Struct, frozen=True, kw_only=True):
    """What the broker says of a partition's three topics at the moment of assignment."""

    commands: TopicState
    events: TopicState
    state: TopicState
    commands_bounds: Bounds
    events_bounds: Bounds
    state_bounds: Bounds
    committed: Offset | None


class Recovery:
    """Restores the partitions of one worker, a slice at a time."""

    def __init__(self, world: World, installation: Installation) -> None:
        self._names = installation.names
        self._cluster = world.cluster
        self._stores = world.stores
        self._reader = world.reader
        self._commands = world.commands
        self._clock = world.clock
        self._meter = world.meter
        self._faults = world.faults
        self._transaction_ms_max = installation.transaction_ms_max
        self._accept_lost_commands = installation.accept_lost_commands
        self._commands_topic = self._names.topic("commands")
        self._state_topic = self._names.topic("state")
        self._events_topic = self._names.topic("events")
        self._under_way: dict[int, tuple[Partition, Anchors]] = {}
        #: Partitions without a step record, in which an event would be a contradiction.
        self._looking_for_events: set[int] = set()

    def begin(self, partitions: Sequence[Partition]) -> None:
        """Start to restore `partitions`; those whose predecessor is undecided, another time.

        The offsets come first: what a predecessor wrote before they were decided is written by
        the time that the ends of the logs are asked for. Unreachable: try again.
        """
        numbers = [partition.number for partition in partitions]
        committed = self._cluster.committed(self._names.group, self._commands_topic, numbers)
        ready = [p for p in partitions if p.number in committed or self._outlived(p)]
        if ready:
            for partition, anchors in self._anchors(ready, committed):
                self._follow(partition, anchors)

    def _outlived(self, partition: Partition) -> bool:
        """Return whether a predecessor's transaction cannot add anything any more.

        The coordinator can leave an offset pending for good when its broker dies at the wrong
        moment. What the predecessor produced was written or given up within the time-out of
        transactions; and what was written but not decided holds up the state topic's reader.
        """
        now = self._clock.monotonic_ms()
        if partition.pending_since is None:
            log.info("a predecessor's transaction is undecided", partition=partition.number)
            partition.pending_since = now
        if now - partition.pending_since <= self._transaction_ms_max + PENDING_MARGIN_MS:
            return False
        log.warning("an offset stays pending: going on without it", partition=partition.number)
        self._meter.alert("offset_pending")
        return True

    def _follow(self, partition: Partition, anchors: Anchors) -> None:
        checkpoint = self._open(partition, anchors)
        partition.topic_ids = (anchors.commands.id, anchors.events.id, anchors.state.id)
        partition.restore_total = max(0, anchors.state_bounds.end - checkpoint.offset)
        self._reader.seek(self._state_topic, partition.number, checkpoint.offset)
        self._under_way[partition.number] = (partition, anchors)

    def under_way(self, partition: Partition) -> bool:
        """Whether `begin` was done for this very ownership."""
        entry = self._under_way.get(partition.number)
        return entry is not None and entry[0] is partition

    def drop(self, number: int) -> None:
        """Forget a partition that went to somebody else."""
        if self._under_way.pop(number, None) is not None:
            self._reader.leave(self._state_topic, number)
        if number in self._looking_for_events:
            self._looking_for_events.remove(number)
            self._reader.leave(self._events_topic, number)

    def advance(self) -> list[Partition]:
        """Read one slice; return the partitions that came to the end and may catch up now."""
        if not self._under_way:
            return []
        by_partition: dict[int, dict[bytes, bytes | None]] = {}
        for record in self._reader.read(READ_S, SLICE_MAX):
            if record.topic == self._events_topic:
                raise self._state_lost(record.partition, "there are events")
            if record.key is not None:
                by_partition.setdefault(record.partition, {})[record.key] = record.value
        ready: list[Partition] = []
        for number, (partition, anchors) in list(self._under_way.items()):
            position = self._reader.position(self._state_topic, number)
            records = by_partition.get(number)
            if records:
                partition.index.absorb(records.items(), position)
                partition.restore_done += len(records)
                self._meter.restored(number, len(records))
            self._faults.at(Point.IN_RESTORE)
            if position >= anchors.state_bounds.end and self._fits_events(partition, anchors):
                self._finish(partition, anchors, position)
                ready.append(partition)
        return ready

    def _finish(self, partition: Partition, anchors: Anchors, position: Offset) -> None:
        self.drop(partition.number)
        partition.index.at_end(position, self._clock.wall_ms())
        self._place(partition, anchors, partition.index.step_record())
        partition.frozen_end = None
        partition.phase = Phase.CATCHING_UP
        self._commands.start(partition.number, partition.next_command)
        self._faults.at(Point.AFTER_RESTORE)

    # --- the store

    def _open(self, partition: Partition, anchors: Anchors) -> Checkpoint:
        store = self._stores.open(partition.number)
        checkpoint = read_checkpoint(store)
        if checkpoint is None or self._outdated(checkpoint, anchors):
            store.close()
            self._stores.wipe(partition.number)
            store = self._stores.open(partition.number)
            checkpoint = Checkpoint(
                format=FORMAT,
                state_id=anchors.state.id,
                offset=anchors.state_bounds.start,
                at_end=EpochMs(0),
                cursor=b"d",
                armed=0,
            )
        partition.mount(store, TimerIndex(store, checkpoint))
        return checkpoint

    def _outdated(self, checkpoint: Checkpoint, anchors: Anchors) -> bool:
        """Whether tombstones that the store needs may be gone, or it follows another log.

        A store that never came to the end (at_end 0) counts as old: building it is begun anew.
        """
        retention = int(anchors.state.config.get(DELETE_RETENTION, "86400000"))
        age = self._clock.wall_ms() - checkpoint.at_end
        return (
            checkpoint.state_id != anchors.state.id
            or checkpoint.offset > anchors.state_bounds.end
            or not 0 <= age < retention // 2
        )

    # --- the place in the commands

    def _place(self, partition: Partition, anchors: Anchors, step: StepRecord | None) -> None:
        number, bounds = partition.number, anchors.commands_bounds
        if step is None:
            self._check_untouched(number, anchors)
            partition.next_command = bounds.start
            return
        self._check_same_topics(number, anchors, step)
        partition.step = step.step
        partition.engine_time = EpochMs(step.engine_time)
        partition.next_command = Offset(step.next_command)
        if step.next_command > bounds.end:
            raise CannotStart(
                f"commands[{number}] ends at {bounds.end}, but step {step.step} says that commands "
                f"up to {step.next_command} were answered: the topic lost its end or is another "
                "one. Restore the topic, or install anew under another "
                "prefix (`tocsin topics adopt` is for this, in a later release)."
            )
        if step.next_command < bounds.start:
            partition.lost = CommandsLost(
                first=Offset(step.next_command), last=Offset(bounds.start - 1)
            )
            partition.next_command = bounds.start
        self._check_committed(partition, anchors)
        if partition.lost is not None:
            self._meter.alert("commands_lost")

    def _check_untouched(self, number: int, anchors: Anchors) -> None:
        if anchors.events_bounds.start > 0:
            raise self._state_lost(number, "there were events")
        if anchors.committed is not None:
            raise self._state_lost(number, f"the group committed {anchors.committed}")

    def _fits_events(self, partition: Partition, anchors: Anchors) -> bool:
        """Return whether there is a step record, or no event up to the end: `advance` meets one.

        The ends alone do not tell: what was aborted is no event, and takes offsets too.
        """
        number, bounds = partition.number, anchors.events_bounds
        if bounds.end == bounds.start or partition.index.step_record() is not None:
            return True
        if number not in self._looking_for_events:
            self._looking_for_events.add(number)
            self._reader.seek(self._events_topic, number, bounds.start)
        return self._reader.position(self._events_topic, number) >= bounds.end

    def _state_lost(self, number: int, sign: str) -> CannotStart:
        return CannotStart(
            f"state[{number}] has no step record, but {sign}: the topic "
            f"{self._state_topic} was recreated or lost. Bring it back from a "
            "copy (`tocsin state rebuild`, in a later release, folds the events into a new one)."
        )

    def _check_same_topics(self, number: int, anchors: Anchors, step: StepRecord) -> None:
        for name, was, now in (
            ("commands", step.commands_id, anchors.commands.id),
            ("events", step.events_id, anchors.events.id),
            ("state", step.state_id, anchors.state.id),
        ):
            if was != now:
                raise CannotStart(
                    f"{self._names.topic(name)} was recreated: its topic id is {now}, the last "
                    f"step of partition {number} saw {was}. Its offsets start anew, so versions "
                    "would repeat. Bring the old topic back, or install anew under another "
                    "prefix (`tocsin topics adopt` is for this, in a later release)."
                )

    def _check_committed(self, partition: Partition, anchors: Anchors) -> None:
        committed = anchors.committed
        if committed is None or committed <= partition.next_command:
            return
        beyond = committed > anchors.commands_bounds.end
        if beyond or not self._accept_lost_commands:
            way_out = "" if beyond else ", or start once with accept_lost_commands"
            raise CannotStart(
                f"the group's offset for commands[{partition.number}] is {committed}, beyond the "
                f"{partition.next_command} of the last step: somebody moved it, or the state topic "
                f"lost its end. Reset the group's offset{way_out}."
            )
        first = partition.next_command if partition.lost is None else partition.lost.first
        partition.lost = CommandsLost(first=first, last=Offset(committed - 1))
        partition.next_command = committed

    def _anchors(
        self, partitions: Sequence[Partition], committed: Mapping[int, Offset | None]
    ) -> Iterator[tuple[Partition, Anchors]]:
        numbers = [partition.number for partition in partitions]
        topics: dict[str, TopicState] = {}
        bounds: dict[str, dict[int, Bounds]] = {}
        for name in ("commands", "events", "state"):
            full = self._names.topic(name)
            topic = self._cluster.topic(full)
            if topic is None:
                raise CannotStart(f"topic {full} does not exist: run `tocsin topics create`.")
            topics[name] = topic
            bounds[name] = self._cluster.bounds(full, numbers)
        for partition in partitions:
            yield (
                partition,
                Anchors(
                    **topics,
                    commands_bounds=bounds["commands"][partition.number],
                    events_bounds=bounds["events"][partition.number],
                    state_bounds=bounds["state"][partition.number],
                    committed=committed.get(partition.number),
                ),
            )
