"""Wires the audit to Kafka: `with open_audit(settings) as audit: audit.verify(0)`."""

from collections.abc import Iterator
from contextlib import contextmanager

from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.audit.sources import LiveAudit, Topics
from tocsin.settings import Settings


@contextmanager
def open_audit(settings: Settings) -> Iterator[LiveAudit]:
    """Yield the audit of the settings' installation; its connections are closed at the end."""
    client = settings.client
    cluster = KafkaCluster(client)
    try:
        targets = sorted(settings.engine_limits.targets)
        yield LiveAudit(
            cluster, lambda: KafkaLogReader(client), Topics.of(settings.prefix, targets)
        )
    finally:
        cluster.close()
