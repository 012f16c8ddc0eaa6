"""Membership of a group and the commands of its partitions, in memory; `poll` never waits."""

from collections.abc import Sequence

from tocsin.adapters.memory.broker import MemoryBroker
from tocsin.adapters.memory.group import Group, Member
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Commands, MembershipLost, OffsetGone, Ownership, Token

SESSION_MS = 10_000


class MemoryCommands(Commands):
    """A member. It is dead to the group once `poll` was not called for a session."""

    def __init__(
        self,
        broker: MemoryBroker,
        topic: str,
        group: str,
        *,
        session_ms: int = SESSION_MS,
        instance_id: str | None = None,
    ) -> None:
        self._broker = broker
        self._topic = topic
        self._group_name = group
        self._session_ms = session_ms
        self._instance_id = instance_id
        self._ownership: Ownership | None = None
        self._member: Member | None = None
        #: Next offset of each partition that is read; those served last come last.
        self._positions: dict[int, Offset] = {}
        self._gone: set[int] = set()

    def join(self, ownership: Ownership) -> None:
        self._ownership = ownership

    def poll(self, timeout_s: float, limit: int) -> list[Record]:
        self._broker.faults.before("commands.poll")
        self._hear()
        records: list[Record] = []
        for partition in list(self._positions):
            records += self._read(partition, limit - len(records))
            if len(records) == limit:
                break
        if not records:
            for partition in self._positions.keys() - self._gone:
                self._check(partition)
        return records

    def start(self, partition: int, offset: Offset) -> None:
        self._positions[partition] = offset
        self._gone.discard(partition)

    def hold(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._positions.pop(partition, None)

    def reached(self, partition: int) -> Offset:
        return self._positions[partition]

    def token(self) -> Token | None:
        member = self._member
        if member is None or member.generation < 0:
            return None
        return Token(member.generation, member.id, self._group_name)

    def close(self) -> None:
        if self._member is not None:
            revoked = sorted(self._member.owned)
            if revoked and self._ownership is not None and not self._member.evicted:
                self._ownership.revoked(revoked)
            self._group().leave(self._member)
        self._member = None

    def _group(self) -> Group:
        return self._broker.group(self._group_name, len(self._broker.topic(self._topic).logs))

    def _hear(self) -> None:
        """Take part in the group's life."""
        if self._ownership is None:
            return
        now = self._broker.clock.monotonic_ms()
        if self._member is None:
            self._member = self._group().join(self._instance_id, self._session_ms, now)
        told = self._group().heard(self._member, now)
        for partitions, tell in (
            (told.lost, self._ownership.lost),
            (told.revoked, self._ownership.revoked),
            (told.assigned, self._ownership.assigned),
        ):
            if partitions:
                self.hold(partitions)
                tell(partitions)
        if self._member.fenced:
            raise MembershipLost("FENCED_INSTANCE_ID: another member has this instance id")
        if self._member.evicted:
            self._member = None

    def _read(self, partition: int, limit: int) -> list[Record]:
        """Return records of one partition, which then comes last."""
        position = self._positions[partition]
        log = self._broker.log(self._topic, partition)
        if not log.start <= position <= log.end:
            return []
        records, self._positions[partition] = log.read(position, limit)
        if records:
            self._positions[partition] = self._positions.pop(partition)
        return records

    def _check(self, partition: int) -> None:
        log = self._broker.log(self._topic, partition)
        if not log.start <= self._positions[partition] <= log.end:
            self._gone.add(partition)
            raise OffsetGone(partition)
