"""Waits until brokers do what a client asks of them first."""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tocsin.embedded._ports import listens

#: Bounds one question, so that a JVM's death is noticed soon.
REQUEST_TIMEOUT_S = 5
POLL_S = 0.05
PROBE = "tocsin-embedded-probe"


def wait_until_ready(
    ports: Sequence[int],
    servers: str,
    cluster_id: str,
    *,
    timeout_s: float,
    raise_if_dead: Callable[[], None],
) -> None:
    """Returns when every port is open and the cluster at `servers` is the one with that id, knows
    all these brokers, would create a topic, and serves consumer groups and transactions.

    Leaves nothing but the two internal topics and one unused transactional id. `raise_if_dead` is
    called between questions. Raises TimeoutError after `timeout_s`, or what that raised.
    """
    deadline = time.monotonic() + timeout_s

    def retry(question: Callable[[], str | None]) -> None:
        while problem := question():
            raise_if_dead()
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {timeout_s} s {problem}")
            time.sleep(POLL_S)

    for port in ports:
        retry(lambda port=port: None if listens(port) else f"port {port} is closed")  # type: ignore[misc]
    cluster = _Cluster(servers, cluster_id, len(ports))
    retry(cluster.answers)
    retry(cluster.creates_topics)
    # A first question makes the broker create the topic of groups; it does so while the client
    # waits a second before it asks about transactions again.
    cluster.serves_groups()
    retry(cluster.serves_transactions)
    retry(cluster.serves_groups)


class _Cluster:
    """Questions to a cluster; each is answered with None, or with what is wrong still."""

    def __init__(self, servers: str, cluster_id: str, brokers: int) -> None:
        # librdkafka would write each refused connection to stderr.
        config: dict[str, str | int | float | bool] = {"bootstrap.servers": servers, "log_level": 0}
        self._cluster_id = cluster_id
        self._brokers = brokers
        self._admin = AdminClient(config)
        self._producer = Producer({**config, "transactional.id": PROBE})
        self._initialised = False

    def answers(self) -> str | None:
        try:
            metadata = self._admin.list_topics(timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            return f"no metadata ({error})"
        # Somebody else's broker may have taken the port before ours could. (str: the type stub
        # knows only the None that the id is before an answer.)
        if str(metadata.cluster_id) != self._cluster_id:
            return f"another Kafka answers, {metadata.cluster_id}"
        known = len(metadata.brokers)
        return None if known >= self._brokers else f"{known} of {self._brokers} brokers are known"

    def creates_topics(self) -> str | None:
        topic = NewTopic(PROBE, num_partitions=1, replication_factor=self._brokers)
        created = self._admin.create_topics(
            [topic], validate_only=True, request_timeout=REQUEST_TIMEOUT_S
        )
        try:
            created[PROBE].result()
        except KafkaException as error:
            return f"a topic can't be created ({error})"
        return None

    def serves_transactions(self) -> str | None:
        try:
            self._producer.init_transactions(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            return f"no coordinator of transactions ({error})"
        return None

    def serves_groups(self) -> str | None:
        described = self._admin.describe_consumer_groups([PROBE], request_timeout=REQUEST_TIMEOUT_S)
        try:
            described[PROBE].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                return f"no coordinator of groups ({error})"
        return None
