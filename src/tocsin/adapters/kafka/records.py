"""A message of the client library as a Record of ours."""

from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError

from tocsin.dataflow import Record

#: Errors that tell of progress or of a lost race, not of trouble.
PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
FATAL = KafkaError._FATAL  # noqa: SLF001
AUTO_OFFSET_RESET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001


def record_of(message: Any) -> Record:
    """Return the record; `message` has no error. Any: the stubs make each getter optional."""
    headers = message.headers()
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        tuple(headers) if headers else (),
        timestamp,
        kind == TIMESTAMP_LOG_APPEND_TIME,
    )
