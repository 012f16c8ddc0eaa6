"""From an assigned partition to one that may fire: follow the state topic, then find the place in
the commands. The step record says where commands go on; group offsets expire and are no proof.

What does not fit together is refused, never guessed: CannotStart says what the operator can do.
"""

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
        self._accept_lost_commands = installation.accept_lost_commands
        self._state_topic = self._names.topic("state")
        self._under_way: dict[int, tuple[Partition, Anchors]] = {}

    def begin(self, partition: Partition) -> None:
        """Open the store and start to follow the state topic. Unreachable: try again."""
        anchors = self._anchors(partition.number)
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

    def advance(self) -> list[Partition]:
        """Read one slice; return the partitions that came to the end and may catch up now."""
        if not self._under_way:
            return []
        by_partition: dict[int, dict[bytes, bytes | None]] = {}
        for record in self._reader.read(READ_S, SLICE_MAX):
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
            if position >= anchors.state_bounds.end:
                self._finish(partition, anchors, position)
                ready.append(partition)
        return ready

    def _finish(self, partition: Partition, anchors: Anchors, position: Offset) -> None:
        self.drop(partition.number)
        partition.index.at_end(position, self._clock.wall_ms())
        self._place(partition, anchors, partition.index.step_record())
        partition.frozen_end = anchors.commands_bounds.stable_end
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
                "one. Restore the topic, or run `tocsin topics adopt`."
            )
        if step.next_command < bounds.start:
            partition.lost = CommandsLost(
                first=Offset(step.next_command), last=Offset(bounds.start - 1)
            )
            partition.next_command = bounds.start
            self._meter.alert("commands_lost")
        self._check_committed(partition, anchors)

    def _check_untouched(self, number: int, anchors: Anchors) -> None:
        events = anchors.events_bounds.end > 0
        if events or anchors.committed is not None:
            sign = "there are events" if events else f"the group committed {anchors.committed}"
            raise CannotStart(
                f"state[{number}] has no step record, but {sign}: the topic "
                f"{self._state_topic} was recreated or lost. Run `tocsin state rebuild` to fold "
                "the events into it."
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
                    "would repeat. Run `tocsin topics adopt` to accept the new topic."
                )

    def _check_committed(self, partition: Partition, anchors: Anchors) -> None:
        committed = anchors.committed
        if committed is None or committed <= partition.next_command:
            return
        if not self._accept_lost_commands:
            raise CannotStart(
                f"the group's offset for commands[{partition.number}] is {committed}, beyond the "
                f"{partition.next_command} of the last step: somebody moved it, or the state topic "
                "lost its end. Reset the group's offset, or start once with accept_lost_commands."
            )

    def _anchors(self, number: int) -> Anchors:
        committed = self._cluster.committed(
            self._names.group, self._names.topic("commands"), number
        )
        topics: dict[str, TopicState] = {}
        bounds: dict[str, Bounds] = {}
        for name in ("commands", "events", "state"):
            full = self._names.topic(name)
            topic = self._cluster.topic(full)
            if topic is None:
                raise CannotStart(f"topic {full} does not exist: run `tocsin topics create`.")
            topics[name] = topic
            bounds[name] = self._cluster.bounds(full, [number])[number]
        return Anchors(
            commands=topics["commands"],
            events=topics["events"],
            state=topics["state"],
            commands_bounds=bounds["commands"],
            events_bounds=bounds["events"],
            state_bounds=bounds["state"],
            committed=committed,
        )
