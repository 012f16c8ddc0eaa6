"""A client of a Kafka cluster, in one call: `with connect("localhost:9092") as tocsin: …`."""

from collections.abc import Mapping

from tocsin.adapters.clock import SystemClock
from tocsin.adapters.kafka.client_log import KafkaClientLog
from tocsin.adapters.owner_web import UrllibWeb
from tocsin.client import Client


def connect(
    bootstrap_servers: str,
    *,
    prefix: str = "tocsin",
    kafka: Mapping[str, str | int | float | bool] | None = None,
    token: str | None = None,
) -> Client:
    """Return a client. Nothing is asked of the brokers before its first call.

    `kafka`: settings of librdkafka by its names, such as security.protocol. `token`: what the
    workers' read-only endpoint wants to see.
    """
    log = KafkaClientLog({"bootstrap.servers": bootstrap_servers, **(kafka or {})})
    return Client(log, UrllibWeb(), SystemClock(), prefix=prefix, token=token)
