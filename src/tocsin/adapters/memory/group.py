"""A group's coordinator: members, generations, cooperative-sticky shares, offsets.

Law: a partition has one owner at a time. A share moves in two rounds: its owner gives it up in the
first and only then another gets it; each round is a generation.
"""

from msgspec import Struct, field

from tocsin.core.values import Offset
from tocsin.ports import Token


class Member(Struct):
    """One member, as the coordinator and the member itself see it."""

    id: str
    instance_id: str | None
    session_ms: int
    seen_ms: int
    #: The generation that the member knows: what its tokens say.
    generation: int = -1
    #: What the member holds, by what it was told so far.
    owned: set[int] = field(default_factory=set)
    #: What the coordinator gave it in the current generation.
    share: set[int] = field(default_factory=set)
    rejoined: bool = False
    #: The coordinator has dropped it: silent for too long, or its instance id taken.
    evicted: bool = False
    fenced: bool = False


class Told(Struct, frozen=True):
    """What a member learns in one poll."""

    lost: list[int]
    revoked: list[int]
    assigned: list[int]


class Group:
    """Members of one group, all reading the same topic."""

    def __init__(self, name: str, partitions: int) -> None:
        self.generation = 0
        self.offsets: dict[tuple[str, int], Offset] = {}
        self._name = name
        self.partitions = partitions
        self._members: dict[str, Member] = {}
        self._rebalancing = False
        self._joined = 0

    def join(self, instance_id: str | None, session_ms: int, now_ms: int) -> Member:
        """Return a new member; one with a taken instance id takes over its share, in place."""
        self._joined += 1
        member = Member(f"{self._name}-{self._joined}", instance_id, session_ms, now_ms)
        former = self._of_instance(instance_id)
        if former is None:
            self._members[member.id] = member
            self._rebalance()
            return member
        former.evicted = former.fenced = True
        member.share = set(former.share)
        member.rejoined = self._rebalancing
        self._members = {
            (member.id if m is former else m.id): (member if m is former else m)
            for m in self._members.values()
        }
        return member

    def leave(self, member: Member) -> None:
        """Drop a dynamic member at once; a static one stays until its session ends."""
        if not member.evicted and member.instance_id is None:
            self._evict(member)

    def expire(self, now_ms: int) -> None:
        """Drop who was not heard of for a session."""
        for member in list(self._members.values()):
            if now_ms - member.seen_ms > member.session_ms:
                self._evict(member)

    def heard(self, member: Member, now_ms: int) -> Told:
        """Take a sign of life, and return what the member must know."""
        if member.evicted:
            return Told(self._forget(member), [], [])
        member.seen_ms = now_ms
        if self._rebalancing:
            member.rejoined = True
            if all(m.rejoined for m in self._members.values()):
                self._share_out()
        if self._rebalancing:
            return Told([], [], [])
        member.generation = self.generation
        revoked = sorted(member.owned - member.share)
        assigned = sorted(member.share - member.owned)
        member.owned = set(member.share)
        if revoked:
            self._rebalance()
        return Told([], revoked, assigned)

    def accepts(self, token: Token) -> bool:
        """Return whether `token` is of the current generation; ownership is not looked at."""
        return token.generation == self.generation and token.member in self._members

    def _share_out(self) -> None:
        """Begin a generation: who owns keeps, up to a fair share; only free partitions move."""
        self.generation += 1
        self._rebalancing = False
        members = list(self._members.values())
        least, more = divmod(self.partitions, len(members))
        keep: dict[str, list[int]] = {m.id: sorted(m.owned) for m in members}
        # Those who have most may have one more than the least.
        by_size = sorted(members, key=lambda m: -len(m.owned))
        quota = {m.id: least + (1 if i < more else 0) for i, m in enumerate(by_size)}
        held = {p for m in members for p in m.owned}
        free = [p for p in range(self.partitions) if p not in held]
        for member in members:
            share = keep[member.id][: quota[member.id]]
            while len(share) < quota[member.id] and free:
                share.append(free.pop(0))
            member.share = set(share)
            member.rejoined = False

    def _rebalance(self) -> None:
        self._rebalancing = bool(self._members)
        for member in self._members.values():
            member.rejoined = False

    def _evict(self, member: Member) -> None:
        del self._members[member.id]
        member.evicted = True
        self._rebalance()

    def _forget(self, member: Member) -> list[int]:
        lost, member.owned = sorted(member.owned), set()
        member.generation = -1
        return lost

    def _of_instance(self, instance_id: str | None) -> Member | None:
        if instance_id is None:
            return None
        return next((m for m in self._members.values() if m.instance_id == instance_id), None)
