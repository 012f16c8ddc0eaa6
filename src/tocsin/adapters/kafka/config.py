"""Settings of the clients: what the caller gives, what suits the engine, what correctness demands.

Later ones win: our defaults, the caller's, the demanded ones.
"""

import logging
from collections.abc import Mapping
from typing import Any

from tocsin.adapters.kafka.complaints import Complaints

#: Settings of librdkafka, by its names: bootstrap.servers, security.protocol, …
Settings = Mapping[str, str | int | float | bool]

#: Where librdkafka's own log goes: nowhere, unless the program gives it a handler. What matters
#: arrives as errors.
LOGGER = logging.getLogger("librdkafka")
LOGGER.addHandler(logging.NullHandler())
SESSION_MS = 10_000
TRANSACTION_TIMEOUT_MS = 10_000
#: A topic that the brokers' metadata does not have after this long does not exist.
METADATA_PROPAGATION_MS_MAX = 1_000
#: Records of one transaction and of a retry behind it.
PRODUCER_QUEUE_RECORDS = 200_000
#: The broker's word counts, not the client's: a record of up to this size is sent.
RECORD_BYTES_MAX = 10 * 1024 * 1024
#: A batch of several records is never larger than this; librdkafka's default, stated because
#: transaction.py relies on it.
BATCH_BYTES_MAX = 1_000_000
#: Beats that wait while no broker answers; more are dropped.
HEARTBEAT_QUEUE = 1_000
HEARTBEAT_TIMEOUT_MS = 5_000
READER_QUEUE_RECORDS = 200_000
READER_QUEUE_KIB = 128 * 1024
READER_FETCH_BYTES = 4 * 1024 * 1024


def commands_consumer(
    client: Settings, *, group: str, session_ms: int, instance_id: str | None
) -> dict[str, Any]:
    """Return the settings of the group's consumer."""
    static = {} if instance_id is None else {"group.instance.id": instance_id}
    return {
        **_base("commands"),
        "session.timeout.ms": session_ms,
        # Members hear of a rebalance by their heartbeats: a planned hand-over takes about one.
        "heartbeat.interval.ms": max(session_ms // 20, 100),
        # A start or rewind waits for the fetch that is under way for other partitions.
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 100,
        **client,
        **static,
        "group.id": group,
        "isolation.level": "read_committed",
        "partition.assignment.strategy": "cooperative-sticky",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
    }


def reader_consumer(client: Settings) -> dict[str, Any]:
    """Return the settings of a consumer that reads single partitions, outside any group."""
    return {
        **_base("reader"),
        "queued.min.messages": READER_QUEUE_RECORDS,
        "queued.max.messages.kbytes": READER_QUEUE_KIB,
        "fetch.message.max.bytes": READER_FETCH_BYTES,
        "fetch.error.backoff.ms": 100,
        "fetch.wait.max.ms": 100,
        **client,
        # librdkafka wants a name; nothing is committed or subscribed under it.
        "group.id": "tocsin-reader",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        # Below the log's start: from the start. (Beyond the end too: Bounds tell beforehand.)
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
    }


def transactional_producer(
    client: Settings, *, transactional_id: str, timeout_ms: int
) -> dict[str, Any]:
    """Return the settings of the engine's producer."""
    return {
        **_base("transaction"),
        # A commit flushes without waiting for it, so a small transaction is no slower; a large one
        # leaves in fewer requests (docs/performance.md).
        "linger.ms": 2,
        "retry.backoff.ms": 1,
        "retry.backoff.max.ms": 10,
        "compression.type": "none",
        "queue.buffering.max.messages": PRODUCER_QUEUE_RECORDS,
        **client,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
        "topic.metadata.propagation.max.ms": METADATA_PROPAGATION_MS_MAX,
        "partitioner": "murmur2_random",
        "message.max.bytes": RECORD_BYTES_MAX,
        "batch.size": BATCH_BYTES_MAX,
        "delivery.report.only.error": False,
        "allow.auto.create.topics": False,
    }


def heartbeat_producer(client: Settings) -> dict[str, Any]:
    """Return the settings of the producer of the status topic."""
    return {
        **_base("heartbeat"),
        "linger.ms": 5,
        **client,
        "enable.idempotence": True,
        "delivery.timeout.ms": HEARTBEAT_TIMEOUT_MS,
        "queue.buffering.max.messages": HEARTBEAT_QUEUE,
        "allow.auto.create.topics": False,
    }


def admin(client: Settings) -> dict[str, Any]:
    """Return the settings of the admin client."""
    return {**_base("admin"), **client}


def _base(role: str) -> dict[str, Any]:
    return {"client.id": f"tocsin-{role}", "logger": LOGGER, "error_cb": Complaints(role).add}
