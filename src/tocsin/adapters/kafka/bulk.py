"""What the bench asks of Kafka beyond the engine's ports: a flood of commands, and cleaning up."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from tocsin.adapters.kafka import config

#: A full queue is waited for in slices of this length.
QUEUE_WAIT_S = 0.05
#: No room in the queue for so long: no broker takes anything.
QUEUE_WAITS_MAX = 1_200
#: Reports are served once per so many records.
SERVE_EVERY = 1_000
FLUSH_S_MAX = 60.0


class NotProducedError(Exception):
    """A broker refused records, or none took them; the message says which."""


class BulkProducer:
    """An idempotent producer that waits for nothing but room: one command is one record."""

    def __init__(self, client: config.Settings) -> None:
        self._errors: list[KafkaError] = []
        self._producer = Producer(
            {
                "linger.ms": 5,
                "queue.buffering.max.messages": 200_000,
                **client,
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "delivery.report.only.error": True,
                "on_delivery": self._reported,
                "logger": config.LOGGER,
            }
        )
        self._count = 0

    def produce(self, topic: str, key: bytes, value: bytes) -> None:
        """Add a record; it goes out on its own."""
        self._count += 1
        if self._count % SERVE_EVERY == 0:
            self._producer.poll(0)
        for _ in range(QUEUE_WAITS_MAX):
            try:
                self._producer.produce(topic, value, key)
            except BufferError:
                self._producer.poll(QUEUE_WAIT_S)
            else:
                return
        raise NotProducedError("no broker takes the commands")

    def flush(self) -> None:
        """Return once the brokers have everything; NotProducedError when one has refused a part."""
        left = self._producer.flush(FLUSH_S_MAX)
        if self._errors:
            raise NotProducedError(
                f"{len(self._errors)} commands were refused, the first: {self._errors[0].str()}"
            )
        if left:
            raise NotProducedError(f"{left} commands were not taken within {FLUSH_S_MAX:.0f} s")

    def _reported(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._errors.append(error)


def delete_topics(client: config.Settings, topics: Sequence[str]) -> None:
    """Delete topics; one that is gone already is no error."""
    admin = AdminClient(config.admin(client))
    for future in admin.delete_topics(list(topics)).values():
        with suppress(confluent_kafka.KafkaException):
            future.result()


def library_versions() -> Mapping[str, str]:
    """Return the versions of the client library and of librdkafka under it."""
    return {
        "confluent-kafka": version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
    }
