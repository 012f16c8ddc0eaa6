"""The worker's membership of the group, and the commands of its partitions.

Law: nothing is assigned to the client before `start` says from where. So no group offset is ever
looked up, no record comes early, and a rewind drops what was fetched ahead.
"""

from collections.abc import Sequence
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.bounded_call import BoundedCalls, NeverBack
from tocsin.adapters.kafka.complaints import Complaints
from tocsin.adapters.kafka.records import AUTO_OFFSET_RESET, FATAL, PARTITION_EOF, record_of
from tocsin.adapters.kafka.token import read_token
from tocsin.core.values import Offset
from tocsin.dataflow import Record
from tocsin.ports import Commands, MembershipLost, OffsetGone, Ownership, Token

_log = structlog.get_logger(__name__)

#: Longest good-bye; then the group waits for the session to end.
CLOSE_S_MAX = 2.5


class KafkaCommands(Commands):
    """Commands of one topic, read as a member of one group."""

    def __init__(
        self,
        client: config.Settings,
        topic: str,
        group: str,
        *,
        session_ms: int = config.SESSION_MS,
        instance_id: str | None = None,
    ) -> None:
        self._topic = topic
        self._consumer = Consumer(
            config.commands_consumer(
                client, group=group, session_ms=session_ms, instance_id=instance_id
            )
        )
        #: Partitions that the client reads now, a part of what the group gave; and for each the
        #: offset before which everything visible was returned.
        self._started: dict[int, Offset] = {}
        self._gone: list[int] = []
        self._complaints = Complaints("commands")

    def join(self, ownership: Ownership) -> None:
        def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
            # Empty, not the partitions: see the law above. It also ends the client's rebalance.
            self._consumer.incremental_assign([])
            # Also when none came: the client fetches anew what it had fetched for those that stay.
            ownership.assigned(_numbers(partitions))

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            ownership.revoked(_numbers(partitions))
            self._forget(_numbers(partitions))

        def lost(_: Consumer, partitions: list[TopicPartition]) -> None:
            ownership.lost(_numbers(partitions))
            self._forget(_numbers(partitions))

        self._consumer.subscribe([self._topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)

    def poll(self, timeout_s: float, limit: int) -> list[Record]:
        first = self._consumer.poll(timeout_s)
        # consume(n, t) waits for n or for t; so it only drains.
        rest = self._consumer.consume(limit - 1, 0) if first is not None and limit > 1 else []
        messages = rest if first is None else [first, *rest]
        records = [record for m in messages if (record := self._record(m)) is not None]
        if self._gone and not records:
            raise OffsetGone(self._gone.pop())
        return records

    def start(self, partition: int, offset: Offset) -> None:
        # Leaving and taking it again, rather than seek: a seek fails while the client is still
        # about to start the partition, and needs a resume.
        at = [TopicPartition(self._topic, partition, offset)]
        self.hold([partition])
        self._consumer.incremental_assign(at)
        self._started[partition] = offset

    def hold(self, partitions: Sequence[int]) -> None:
        going = self._drop(partitions)
        if going:
            self._consumer.incremental_unassign(going)

    def reached(self, partition: int) -> Offset:
        return self._started[partition]

    def token(self) -> Token | None:
        return read_token(self._consumer.consumer_group_metadata())

    def close(self) -> None:
        # Seen with librdkafka 2.16: while a rebalance is under way it may wait for ever.
        calls = BoundedCalls("leave")
        try:
            calls.call(CLOSE_S_MAX, self._consumer.close)
        except NeverBack as never:
            _log.warning("left the group without a good-bye", reason=str(never))
        finally:
            calls.close()

    def _record(self, message: Any) -> Record | None:
        error = message.error()
        if error is not None:
            self._met(error, message)
            return None
        # A rebalance met by the drain may have taken what was already in hand.
        if message.partition() not in self._started:
            return None
        record = record_of(message)
        self._started[record.partition] = Offset(record.offset + 1)
        return record

    def _met(self, error: KafkaError, message: Any) -> None:
        partition = message.partition()
        if error.code() == PARTITION_EOF:
            if partition in self._started:
                self._started[partition] = Offset(message.offset())
            return
        if error.code() == FATAL or error.fatal():
            raise MembershipLost(f"{error.name()}: {error.str()}")
        if error.code() == AUTO_OFFSET_RESET and partition in self._started:
            self._gone.append(partition)
            return
        self._complaints.add(error)

    def _forget(self, partitions: Sequence[int]) -> None:
        # Also when empty: it ends the client's rebalance.
        self._consumer.incremental_unassign(self._drop(partitions))

    def _drop(self, partitions: Sequence[int]) -> list[TopicPartition]:
        self._gone = [p for p in self._gone if p not in partitions]
        going = self._started.keys() & set(partitions)
        for partition in going:
            del self._started[partition]
        return [TopicPartition(self._topic, p) for p in going]


def _numbers(partitions: Sequence[TopicPartition]) -> list[int]:
    return sorted(p.partition for p in partitions)
