"""What the client needs of the world, beside the engine's own ports."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from tocsin.core.values import Header, Offset
from tocsin.dataflow import Record
from tocsin.ports import Bounds, LogReader


class Written(Struct, frozen=True):
    """Where a record came to lie."""

    partition: int
    offset: Offset


class Source(Protocol):
    """Committed records of a topic, one after the other."""

    def read(self, timeout_s: float, limit: int) -> list[Record]:
        """Return up to `limit` records, once one is there or time is up."""

    def handled(self, record: Record) -> None:
        """The caller is done with `record`, and with those before it in its partition."""

    def finished(self) -> bool:
        """Nothing more comes: the agreed end was reached."""

    def progress(self) -> tuple[int, int]:
        """Return how many offsets were passed and how many there are to the end; (0, 0) without."""

    def close(self) -> None:
        """Let go of it; where a group reads, its place is kept."""


class ClientLog(Protocol):
    """Kafka as a client sees it.

    Calls raise UnreachableError, TopicMissingError or DeniedError; may be made from any thread.
    """

    def partitions(self, topic: str) -> int:
        """Return how many partitions `topic` has."""

    def write(self, topic: str, key: bytes, value: bytes, headers: Sequence[Header]) -> Written:
        """Append a record, placed as a Java producer does, and wait until a broker has it.

        NotWrittenError when none said so in time.
        """

    def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
        """Return the ends of these partitions."""

    def reader(self) -> LogReader:
        """Return a new reader of committed records, outside of any group."""

    def group(self, topic: str, group: str, *, from_beginning: bool) -> Source:
        """Return the share that `group` gives to a new member of it.

        It goes on behind what was handled; new groups start at the beginning or the end.
        """

    def close(self) -> None:
        """Let go of it."""


class Web(Protocol):
    """Questions to a worker's read-only endpoint."""

    def get(self, url: str, parameters: Mapping[str, str], token: str | None) -> bytes | None:
        """Return the body of a 200, None for a 404; OwnerError for all else."""
