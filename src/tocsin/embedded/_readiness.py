"""Waits until brokers do what a client asks of them first."""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tocsin.embedded._errors import EmbeddedKafkaError
from tocsin.embedded._ports import listens

#: Bounds one question, so that a JVM's death is noticed soon.
REQUEST_TIMEOUT_S = 5
POLL_S = 0.05
PROBE = "tocsin-embedded-probe"


def wait_until_ready(
    ports: Sequence[int], servers: str, *, timeout_s: float, raise_if_dead: Callable[[], None]
) -> None:
    """Returns when every port is open and the cluster at `servers` answers with all these brokers,
    would create a topic, and serves consumer groups and transactions.

    Leaves nothing but the two internal topics and one unused transactional id. `raise_if_dead` is
    called between questions. Raises EmbeddedKafkaError after `timeout_s` or what that raised.
    """
    deadline = time.monotonic() + timeout_s

    def retry(question: Callable[[], str | None]) -> None:
        while problem := question():
            raise_if_dead()
            if time.monotonic() > deadline:
                raise EmbeddedKafkaError(f"Not ready after {timeout_s} s: {problem}.")
            time.sleep(POLL_S)

    for port in ports:
        retry(lambda port=port: None if listens(port) else f"port {port} is closed")  # type: ignore[misc]
    cluster = _Cluster(servers, len(ports))
    retry(cluster.answers)
    retry(cluster.creates_topics)
    retry(cluster.coordinates)


class _Cluster:
    """Questions to a cluster; each is answered with None, or with what is wrong still."""

    def __init__(self, servers: str, brokers: int) -> None:
        # librdkafka would write each refused connection to stderr.
        config: dict[str, str | int] = {"bootstrap.servers": servers, "log_level": 0}
        self._brokers = brokers
        self._admin = AdminClient(config)
        self._producer = Producer({**config, "transactional.id": PROBE})

    def answers(self) -> str | None:
        try:
            known = len(self._admin.list_topics(timeout=REQUEST_TIMEOUT_S).brokers)
        except KafkaException as error:
            return f"no metadata ({error})"
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

    def coordinates(self) -> str | None:
        """Both kinds of coordinator are asked at once: each first creates its internal topic."""
        described = self._admin.describe_consumer_groups(
            [PROBE], request_timeout=REQUEST_TIMEOUT_S
        )
        try:
            self._producer.init_transactions(REQUEST_TIMEOUT_S)
            described[PROBE].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                return f"no coordinator ({error})"
        return None
