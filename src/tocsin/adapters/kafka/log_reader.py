"""Reads partitions from a given offset on, outside of any group: restore, folds, audits."""

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.complaints import Complaints
from tocsin.adapters.kafka.records import PARTITION_EOF, record_of
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import LogReader


class KafkaLogReader(LogReader):
    """One consumer without a group; nothing is committed."""

    def __init__(self, client: config.Settings) -> None:
        self._consumer = Consumer(config.reader_consumer(client))
        #: Of each partition that is read: the offset before which everything was returned.
        self._positions: dict[tuple[str, int], Offset] = {}
        self._complaints = Complaints("reader")

    def seek(self, topic: str, partition: int, offset: Offset) -> None:
        self.leave(topic, partition)
        self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])
        self._positions[topic, partition] = offset

    def read(self, timeout_s: float, limit: int) -> list[Record]:
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        rest = self._consumer.consume(limit - 1, 0) if limit > 1 else []
        records = []
        # The client's own position() is -1001 before the first record and does not pass over
        # control records at the end; end-of-partition events do.
        positions = self._positions
        messages: tuple[Any, ...] = (first, *rest)
        for message in messages:
            error = message.error()
            if error is None:
                record = record_of(message)
                records.append(record)
                positions[record.topic, record.partition] = Offset(record.offset + 1)
            elif error.code() == PARTITION_EOF:
                positions[message.topic(), message.partition()] = Offset(message.offset())
            else:
                self._complaints.add(error)
        return records

    def position(self, topic: str, partition: int) -> Offset:
        return self._positions[topic, partition]

    def leave(self, topic: str, partition: int) -> None:
        if self._positions.pop((topic, partition), None) is not None:
            self._consumer.incremental_unassign([TopicPartition(topic, partition)])

    def close(self) -> None:
        self._consumer.close()
