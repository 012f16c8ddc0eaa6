"""The log of one partition: offsets without gaps, of which some are not for readers.

Law: a read_committed reader sees committed records in offset order, never one at or above the
last stable offset; commit and abort take an offset of their own.
"""

from enum import Enum

from msgspec import Struct

from tocsin.core.values import Offset
from tocsin.dataflow import Record


class State(Enum):
    """What has become of an entry."""

    OPEN = "open"
    VISIBLE = "visible"
    #: Aborted, a control record, or compacted away.
    HIDDEN = "hidden"


class Entry(Struct):
    """One offset. `writer` names the transaction that it belongs to, while that is open."""

    record: Record | None
    state: State
    writer: str | None


class PartitionLog:
    """All entries from `start` on."""

    def __init__(self) -> None:
        self.start = 0
        self._entries: list[Entry] = []
        #: First offset of each open transaction.
        self._open: dict[str, int] = {}

    @property
    def end(self) -> int:
        """Offset of what is written next."""
        return self.start + len(self._entries)

    @property
    def stable_end(self) -> int:
        """First offset that a read_committed reader may not see yet."""
        return min(self._open.values(), default=self.end)

    def append(self, record: Record, writer: str | None) -> None:
        """Write `record`, whose offset is `end`; visible at once without a `writer`."""
        assert record.offset == self.end
        if writer is not None:
            self._open.setdefault(writer, self.end)
        state = State.VISIBLE if writer is None else State.OPEN
        self._entries.append(Entry(record, state, writer))

    def finish(self, writer: str, *, commit: bool) -> None:
        """Decide the transaction of `writer` and write its control record."""
        first = self._open.pop(writer)
        for entry in self._entries[max(first - self.start, 0) :]:
            if entry.writer == writer:
                entry.writer = None
                entry.state = State.VISIBLE if commit else State.HIDDEN
        self._entries.append(Entry(None, State.HIDDEN, None))

    def read(self, offset: int, limit: int) -> tuple[list[Record], Offset]:
        """Return up to `limit` visible records from `offset` on, and where to go on."""
        records: list[Record] = []
        stable_end = self.stable_end
        while offset < stable_end and len(records) < limit:
            entry = self._entries[offset - self.start]
            if entry.state is State.VISIBLE and entry.record is not None:
                records.append(entry.record)
            offset += 1
        return records, Offset(offset)

    def delete_before(self, offset: int) -> None:
        """Cut the log, as retention does."""
        assert offset <= self.stable_end
        del self._entries[: max(offset - self.start, 0)]
        self.start = max(self.start, offset)

    def compact(self) -> None:
        """Keep the newest record of each key below the stable end; tombstones go too."""
        newest: dict[bytes | None, int] = {}
        stable = range(self.stable_end - self.start)
        for index in stable:
            entry = self._entries[index]
            if entry.state is State.VISIBLE and entry.record is not None:
                newest[entry.record.key] = index
        for index in stable:
            entry = self._entries[index]
            record = entry.record
            if record is None or newest.get(record.key) != index or record.value is None:
                entry.state, entry.record = State.HIDDEN, None
