"""Questions to the brokers, each with a bound."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.answers import ANSWER_S_MAX, NoLeader, NoSuchTopic, answer, refusal
from tocsin.core.values import Offset
from tocsin.ports import Bounds, Cluster, TopicState, Unreachable

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]

T = TypeVar("T")


class KafkaCluster(Cluster):
    """What one admin client is told."""

    def __init__(self, client: config.Settings) -> None:
        self._client = client
        self._admin = AdminClient(config.admin(client))

    def topic(self, name: str) -> TopicState | None:
        try:
            described = self._answer(
                self._admin.describe_topics(TopicCollection([name]), request_timeout=ANSWER_S_MAX)[
                    name
                ]
            )
            return TopicState(
                str(described.topic_id), len(described.partitions), self.settings(name)
            )
        except NoSuchTopic:
            return None

    def settings(self, topic: str) -> dict[str, str]:
        """Return the settings of `topic` that have a value."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        asked = self._admin.describe_configs([resource], request_timeout=ANSWER_S_MAX)
        entries = self._answer(asked[resource])
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}

    def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
        committed, uncommitted = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
        # The end is asked for last, so that it is never below the stable one.
        try:
            start = self._offsets(topic, partitions, _EARLIEST, uncommitted)
            stable = self._offsets(topic, partitions, _LATEST, committed)
            end = self._offsets(topic, partitions, _LATEST, uncommitted)
        except NoLeader as no_leader:
            if self.topic(topic) is None:
                raise NoSuchTopic(topic) from no_leader
            raise
        return {p: Bounds(start[p], stable[p], end[p]) for p in partitions}

    def committed(
        self, group: str, topic: str, partitions: Sequence[int]
    ) -> dict[int, Offset | None]:
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p) for p in partitions])
        futures = self._admin.list_consumer_group_offsets(
            [asked], require_stable=True, request_timeout=ANSWER_S_MAX
        )
        committed: dict[int, Offset | None] = {}
        for found in self._answer(futures[group]).topic_partitions:
            if found.error is None:
                committed[found.partition] = Offset(found.offset) if found.offset >= 0 else None
            elif found.error.code() != KafkaError.UNSTABLE_OFFSET_COMMIT:
                raise refusal(KafkaException(found.error))
        return committed

    def close(self) -> None:
        del self._admin

    def _answer(self, future: "Future[T]") -> T:
        """Return the answer; the next question goes through a new client when there is none.

        librdkafka 2.16 never again reaches a group coordinator that went away and came back.
        """
        try:
            return answer(future)
        except NoLeader:
            raise
        except Unreachable:
            self._admin = AdminClient(config.admin(self._client))
            raise

    def _offsets(
        self, topic: str, partitions: Sequence[int], spec: OffsetSpec, level: IsolationLevel
    ) -> dict[int, Offset]:
        asked = {TopicPartition(topic, p): spec for p in partitions}
        futures = self._admin.list_offsets(
            asked, isolation_level=level, request_timeout=ANSWER_S_MAX
        )
        return {tp.partition: Offset(self._answer(future).offset) for tp, future in futures.items()}
