"""What the engine needs of the world.

Each port has a real adapter and one in memory; tests/contract holds both to these sentences.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from tocsin.core.values import EpochMs, Header, Offset
from tocsin.dataflow import Record


class Clock(Protocol):
    """Time as this machine has it."""

    def wall_ms(self) -> EpochMs:
        """Return the wall clock: milliseconds since the epoch, may jump."""

    def monotonic_ms(self) -> int:
        """Return a clock that never goes back; it may stand still while the machine sleeps."""


class KeyValues(Protocol):
    """An ordered map of bytes on local disk. A write is all or nothing and outlives the process."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value under `key`."""

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the values under `keys`, in their order."""

    def scan(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return the first `limit` entries with start <= key < end, in key order."""

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        """Apply `deletes`, then `puts`, as one."""

    def close(self) -> None:
        """Let go of it; a call after this raises StoreClosed. Waits for reads under way."""


class WorldError(Exception):
    """Base of what the world does to us: no fault of a command, so no command is refused for it."""


class StoreClosed(WorldError):
    """The store was closed, because its partition went to another worker."""


class StoreUnusable(WorldError):
    """The state directory cannot be used; the message names it and says why."""


class Stores(Protocol):
    """The worker's own stores, one for each partition, kept after the partition is lost."""

    def open(self, partition: int) -> KeyValues:
        """Open the store of `partition`, making it if need be; StoreUnusable with the reason."""

    def wipe(self, partition: int) -> None:
        """Destroy the store of `partition`, which is closed."""


class Token(Struct, frozen=True):
    """Proof of membership at one moment; sent with a transaction, it fences a stale owner."""

    generation: int
    member: str
    opaque: object


class Ownership(Protocol):
    """Told, from within `Commands.poll`, which partitions come and go."""

    def assigned(self, partitions: Sequence[int]) -> None:
        """Partitions came; nothing is read from them until `Commands.start`.

        Empty after a rebalance that brought none. Records of the partitions that stayed may come
        late after a rebalance, whatever it brought.
        """

    def revoked(self, partitions: Sequence[int]) -> None:
        """Partitions go to somebody else once this returns."""

    def lost(self, partitions: Sequence[int]) -> None:
        """Partitions are somebody else's already."""


class OffsetGone(Exception):
    """The offset that was to be read is not in the log of `partition`; Cluster.bounds tell more."""

    def __init__(self, partition: int) -> None:
        super().__init__(f"the next command of partition {partition} is not in the log")
        self.partition = partition


class MembershipLost(Exception):
    """Never again a member, for another has this worker's instance id; a new one can."""


class Commands(Protocol):
    """The committed commands of the partitions that the group gives to this worker."""

    def join(self, ownership: Ownership) -> None:
        """Ask for a share of the partitions."""

    def poll(self, timeout_s: float, limit: int) -> list[Record]:
        """Return up to `limit` records of started partitions, once one is there or time is up.

        Calls `ownership` from within, and from nowhere else. Raises OffsetGone, once for each
        `start`, and MembershipLost.
        """

    def start(self, partition: int, offset: Offset) -> None:
        """Read on from `offset`, also when reading was already under way."""

    def hold(self, partitions: Sequence[int]) -> None:
        """Return nothing of `partitions` until `start`."""

    def reached(self, partition: int) -> Offset:
        """Return the offset before which everything visible of `partition` was returned by `poll`.

        Aborted and control records count once passed over, those at the end of the log too.
        """

    def token(self) -> Token | None:
        """Return the proof of membership as of the last poll; None while not a member."""

    def close(self) -> None:
        """Leave the group at once (a static member stays until its session ends)."""


class Report(Struct, frozen=True):
    """What became of one produced record."""

    offset: Offset
    #: Append time that the broker gave it; None where it gives none.
    appended: EpochMs | None
    #: Kafka's name of the error, such as MSG_SIZE_TOO_LARGE; None: it was taken.
    error: str | None
    #: The broker will never take this record: gone topic, too large, not authorised.
    permanent: bool


class Transaction(Protocol):
    """Writes of one producer that appear together or never."""

    def open(self) -> None:
        """Become the only producer of this transactional id; ends what a predecessor left open."""

    def begin(self) -> None:
        """Start a transaction."""

    def produce(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        timestamp: EpochMs | None = None,
        report: Callable[[Report], None] | None = None,
    ) -> None:
        """Add a record; `partition` None means by key, as a Java producer does.

        `report` is called once, at the latest within `commit` or `abort`. A refusal of the record
        shows in its report and at `commit`, never here.
        """

    def send_positions(self, positions: Mapping[int, Offset], token: Token) -> None:
        """Make the group's offsets a part of it; Aborted with a token of an older generation."""

    def commit(self) -> None:
        """Make it visible. Unknown: call again until it says otherwise."""

    def abort(self) -> None:
        """Make it never have been."""

    def close(self) -> None:
        """Let go of the producer; an open transaction is left to its time-out."""


class TransactionFailed(WorldError):
    """Base of the four ways in which a transaction can fail."""


class Aborted(TransactionFailed):
    """It must be aborted and may be tried anew. `permanent` names a refusal for good."""

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        stale: bool = False,
        topics: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        #: The topics that refused; () where nobody says.
        self.topics = topics
        #: The token was of an older generation.
        self.stale = stale


class Unknown(TransactionFailed):
    """Nobody knows yet; the same call again will tell."""


class Fenced(TransactionFailed):
    """Another producer has this transactional id, or the broker gave up on us: open a new one."""


class Broken(TransactionFailed):
    """The producer cannot go on, whatever we do; the message says why."""


class LogReader(Protocol):
    """Reads committed records of single partitions, outside the group."""

    def seek(self, topic: str, partition: int, offset: Offset) -> None:
        """Read `partition` from `offset` on, beside those read already."""

    def read(self, timeout_s: float, limit: int) -> list[Record]:
        """Return up to `limit` records, of any partition sought."""

    def position(self, topic: str, partition: int) -> Offset:
        """Return the offset before which everything visible was returned by `read`.

        Aborted records and control records count as read once passed over.
        """

    def leave(self, topic: str, partition: int) -> None:
        """Read no more of `partition`."""

    def close(self) -> None:
        """Let go of it."""


class TopicState(Struct, frozen=True):
    """What the broker says of a topic."""

    id: str
    partitions: int
    config: Mapping[str, str]


class Bounds(Struct, frozen=True):
    """Ends of a partition's log."""

    start: Offset
    #: Last stable offset: a read_committed reader gets no further now.
    stable_end: Offset
    #: End of what is written, committed or not.
    end: Offset


class Cluster(Protocol):
    """What can be asked of the brokers.

    Each call raises Unreachable when none answers, Denied when one says no.
    """

    def topic(self, name: str) -> TopicState | None:
        """Return the topic, None when a broker says that it does not exist."""

    def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
        """Return the ends of these partitions."""

    def committed(
        self, group: str, topic: str, partitions: Sequence[int]
    ) -> dict[int, Offset | None]:
        """Return the group's offsets, None without one.

        A partition is left out while a transaction on its offset is pending: ask again.
        """

    def close(self) -> None:
        """Let go of it."""


class Unreachable(WorldError):
    """No broker answered in time; trying again is right."""


class Denied(Exception):
    """A broker answered and said no (not authorised, no such topic); the message says what."""


class Heartbeat(Protocol):
    """Tells the world about this worker. Not transactional: losing a beat is harmless."""

    def beat(self, key: bytes, value: bytes | None, report: Callable[[Report], None]) -> None:
        """Send one record to the status topic; never waits."""

    def poll(self) -> None:
        """Call the reports that have come."""

    def close(self) -> None:
        """Let go of it."""


class Meter(Protocol):
    """Figures about the engine, for those who operate it. Called once per step, not per fire."""

    def fired(self, partition: int, lateness_ms: Sequence[int]) -> None:
        """Count fires that were committed, each with its lateness."""

    def answered(self, result: str) -> None:
        """Count a command; `result` is the name of the event that answered it."""

    def refused(self, reason: str) -> None:
        """Count a refusal."""

    def undeliverable(self, target: str) -> None:
        """Count a delivery that no broker takes."""

    def transaction(self, outcome: str, seconds: float) -> None:
        """Record how a transaction ended and how long it took, from begin on."""

    def restored(self, partition: int, records: int) -> None:
        """Count state records read while restoring."""

    def skew(self, milliseconds: int) -> None:
        """Tell how far this machine's clock is ahead of the broker's."""

    def alert(self, what: str) -> None:
        """Count something that an operator should look at: commands_lost, fault and the like."""
