"""The worker's sign of life on the status topic."""

from collections.abc import Callable

from confluent_kafka import KafkaException, Producer

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.errors import error_of
from tocsin.adapters.kafka.reports import failed, to_report
from tocsin.ports import Heartbeat, Report

#: Longest wait at `close` for the last beat.
CLOSE_S_MAX = 1.0


class KafkaHeartbeat(Heartbeat):
    """A plain idempotent producer: it stays out of every transaction."""

    def __init__(self, client: config.Settings, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._producer = Producer(config.heartbeat_producer(client))
        #: Beats that found the queue full or the client unable.
        self.dropped = 0

    def beat(self, key: bytes, value: bytes | None, report: Callable[[Report], None]) -> None:
        try:
            self._producer.produce(self._topic, value, key, on_delivery=to_report(report))
        except BufferError as full:
            self._drop(report, str(full))
        except KafkaException as exception:
            self._drop(report, str(exception))
            if error_of(exception).fatal():
                self._producer = Producer(config.heartbeat_producer(self._client))

    def poll(self) -> None:
        self._producer.poll(0)

    def close(self) -> None:
        self._producer.flush(CLOSE_S_MAX)

    def _drop(self, report: Callable[[Report], None], reason: str) -> None:
        self.dropped += 1
        report(failed(reason))
