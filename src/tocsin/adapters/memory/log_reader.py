"""Committed records of single partitions, in memory; `read` never waits."""

from tocsin.adapters.memory.broker import MemoryBroker
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import LogReader


class MemoryLogReader(LogReader):
    """Where each partition goes on."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._positions: dict[tuple[str, int], Offset] = {}

    def seek(self, topic: str, partition: int, offset: Offset) -> None:
        self._positions[topic, partition] = offset

    def read(self, timeout_s: float, limit: int) -> list[Record]:
        self._broker.faults.before("reader.read")
        records: list[Record] = []
        for topic, partition in list(self._positions):
            records += self._read(topic, partition, limit - len(records))
            if len(records) == limit:
                break
        return records

    def position(self, topic: str, partition: int) -> Offset:
        return self._positions[topic, partition]

    def leave(self, topic: str, partition: int) -> None:
        self._positions.pop((topic, partition), None)

    def close(self) -> None:
        self._positions.clear()

    def _read(self, topic: str, partition: int, limit: int) -> list[Record]:
        """Return records of one partition, which then comes last."""
        position = self._positions.pop((topic, partition))
        log = self._broker.log(topic, partition)
        if not log.start <= position <= log.end:
            position = Offset(log.start)
        records, self._positions[topic, partition] = log.read(position, limit)
        return records
