"""Creates the topics of a map."""

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.answers import ANSWER_S_MAX, TopicExists, answer
from tocsin.dataflow import Topology


def create_topics(
    client: config.Settings,
    topology: Topology,
    *,
    prefix: str,
    partitions: int,
    replication_factor: int,
) -> Mapping[str, bool]:
    """Create what is missing; return for each topic whether it was created now.

    All get the same number of partitions. Unreachable, or Denied with the broker's words; those
    asked for before the failing one may exist then. What is there is not compared or changed.
    """
    asked = [
        NewTopic(
            f"{prefix}.{topic.name}",
            partitions,
            replication_factor,
            config={**topic.defaults, **topic.config},
        )
        for topic in topology.topics
    ]
    admin = AdminClient(config.admin(client))  # a name of its own: it must outlive the futures
    futures = admin.create_topics(
        asked, request_timeout=ANSWER_S_MAX, operation_timeout=ANSWER_S_MAX
    )
    created = {}
    for name, future in futures.items():
        try:
            answer(future)
            created[name] = True
        except TopicExists:
            created[name] = False
    return created
