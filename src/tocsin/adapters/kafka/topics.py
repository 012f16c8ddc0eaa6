"""Creates the topics of a map."""

import time
from collections.abc import Collection, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.answers import ANSWER_S_MAX, TopicExists, answer, refusal
from tocsin.dataflow import Topology

#: Between two looks at what the broker knows.
LOOK_S = 0.05


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
    _wait_until_known(admin, created.keys())
    return created


def _wait_until_known(admin: AdminClient, names: Collection[str]) -> None:
    """Return once the broker tells of what the controller has made, or after a while all the same.

    Whoever looks a moment earlier is told that there is no such topic.
    """
    until = time.monotonic() + ANSWER_S_MAX
    while time.monotonic() < until:
        try:
            known = admin.list_topics(timeout=ANSWER_S_MAX).topics
        except KafkaException as exception:
            raise refusal(exception) from exception
        if all(name in known and known[name].error is None for name in names):
            return
        time.sleep(LOOK_S)
