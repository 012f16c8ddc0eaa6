"""Delivery reports of the client library in the words of the ports."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError

from tocsin.adapters.kafka.errors import PERMANENT, kafka_name
from tocsin.core.values import EpochMs, Offset
from tocsin.ports import Report

#: What the client library calls. Any: the stubs make each getter of a message optional.
OnDelivery = Callable[[KafkaError | None, Any], None]
NOT_WRITTEN = Offset(-1)


def delivered(message: Any) -> Report:
    """Return the report of a record that was written."""
    kind, timestamp = message.timestamp()
    appended = EpochMs(timestamp) if kind == TIMESTAMP_LOG_APPEND_TIME else None
    return Report(Offset(message.offset()), appended, None, permanent=False)


def failed(error: str, *, permanent: bool = False) -> Report:
    """Return the report of a record that was not written."""
    return Report(NOT_WRITTEN, None, error, permanent)


def to_report(report: Callable[[Report], None]) -> OnDelivery:
    """Return what the client library is to call, for `report` to be called."""

    def on_delivery(error: KafkaError | None, message: Any) -> None:
        if error is None:
            report(delivered(message))
        else:
            report(failed(kafka_name(error), permanent=error.code() in PERMANENT))

    return on_delivery
