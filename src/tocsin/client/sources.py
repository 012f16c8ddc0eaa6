"""Partitions read outside of any group, from one frozen end to another."""

from collections.abc import Mapping

from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Bounds, LogReader


class LogSource:
    """A topic's partitions. Where it starts and ends was fixed when it was made.

    The end is the stable one: what was committed by then is seen, open transactions are not.
    """

    def __init__(
        self,
        reader: LogReader,
        topic: str,
        bounds: Mapping[int, Bounds],
        *,
        from_beginning: bool,
        to_end: bool,
    ) -> None:
        self._reader = reader
        self._topic = topic
        self._key: bytes | None = None
        #: Partitions whose end was not reached yet; empty without an end.
        self._open: dict[int, Offset] = {}
        self._follow = not to_end
        self.starts: dict[int, Offset] = {}
        self.ends: dict[int, Offset] = {}
        for partition, bound in bounds.items():
            start = bound.start if from_beginning else bound.stable_end
            self.starts[partition] = start
            self.ends[partition] = bound.stable_end
            if self._follow or start < bound.stable_end:
                reader.seek(topic, partition, start)
                if to_end:
                    self._open[partition] = bound.stable_end

    def only(self, key: bytes) -> None:
        """Return records with this key alone from now on."""
        self._key = key

    def read(self, timeout_s: float, limit: int) -> list[Record]:
        """Return up to `limit` records, once one is there or time is up."""
        records = self._reader.read(timeout_s, limit)
        if not self._follow:
            ends = self.ends
            records = [record for record in records if record.offset < ends[record.partition]]
            for partition, end in list(self._open.items()):
                if self._reader.position(self._topic, partition) >= end:
                    del self._open[partition]
                    self._reader.leave(self._topic, partition)
        if self._key is not None:
            records = [record for record in records if record.key == self._key]
        return records

    def handled(self, record: Record) -> None:
        """Nothing is kept of it: no group reads."""

    def finished(self) -> bool:
        """Whether each partition came to the end that was fixed."""
        return not self._follow and not self._open

    def progress(self) -> tuple[int, int]:
        """Return how many offsets were passed, and how many there are up to the end."""
        total = sum(self.ends[p] - start for p, start in self.starts.items())
        left = sum(
            max(0, end - self._reader.position(self._topic, p)) for p, end in self._open.items()
        )
        return total - left, total

    def close(self) -> None:
        """Let go of it."""
        self._reader.close()
