"""What a client complains of, told once in a while: it repeats itself a thousand times a second."""

import time

import structlog
from confluent_kafka import KafkaError

from tocsin.adapters.kafka.errors import UNANSWERED

_log = structlog.get_logger(__name__)

#: The same complaint of the same client is told again after this long.
AGAIN_S = 10.0


class Complaints:
    """The complaints of one client, each told once in AGAIN_S with how often it came meanwhile."""

    def __init__(self, role: str) -> None:
        self._role = role
        #: Kafka's name of an error -> when it was last told, and how often it came since.
        self._told: dict[str, tuple[float, int]] = {}

    def add(self, error: KafkaError) -> None:
        """Tell of `error`, or count it."""
        name, now = str(error.name()), time.monotonic()
        last, count = self._told.get(name, (now - AGAIN_S, 0))
        if now - last < AGAIN_S:
            self._told[name] = (last, count + 1)
            return
        self._told[name] = (now, 0)
        what = "no broker answers" if error.code() in UNANSWERED else "kafka reports an error"
        since = {"repeated": count} if count else {}
        _log.warning(what, client=self._role, error=name, reason=error.str(), **since)
