"""How large a batch each topic takes, and how to find the one record that a broker refuses.

A broker refuses batches: ten small records sent together are "too large" for a topic with a small
max.message.bytes, and one invalid record makes its whole batch invalid. So a topic that refused
gets batches within its limit, and what is suspected goes alone; only then is the refusal the
record's own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog
from confluent_kafka import KafkaError

from tocsin.adapters.kafka import config
from tocsin.core.values import Header
from tocsin.ports import Denied, Unreachable

#: A broker refuses a whole batch for one record of it, and does not say for which.
BATCH_WIDE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD})
#: Bytes of a batch's own, and of a record's and a header's beside their contents; at the most.
BATCH_OVERHEAD = 80
RECORD_OVERHEAD = 30
HEADER_OVERHEAD = 10

_log = structlog.get_logger(__name__)


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """Return an upper bound for the bytes of a batch of this one record."""
    contents = len(key or b"") + len(value or b"")
    for name, header in headers:
        # A character is four bytes at the most.
        contents += 4 * len(name) + len(header or b"") + HEADER_OVERHEAD
    return contents + BATCH_OVERHEAD + RECORD_OVERHEAD


class RecordLimits:
    """What was learnt of the topics that refused."""

    def __init__(self, settings_of: Callable[[str], Mapping[str, str]]) -> None:
        self._settings_of = settings_of
        #: Largest batch, of topics that refused for size.
        self._known: dict[str, int] = {}
        #: Topics whose records go one by one, until a transaction was committed.
        self._alone: set[str] = set()
        #: Bytes of the batch that is being filled.
        self._filled: dict[str, int] = {}

    def __contains__(self, topic: str) -> bool:
        """Return whether records of `topic` are to be announced by `must_flush_before`."""
        return topic in self._filled

    def was_alone(self, topic: str, size: int) -> bool:
        """Return whether a refusal of its batch is the record's own."""
        return topic in self._alone or size > self._known.get(topic, size)

    def suspect(self, topics: Iterable[str], code: int) -> None:
        """See to it that the next refusal by one of `topics` names its record."""
        for topic in topics:
            learnt = topic in self._known
            if code != KafkaError.MSG_SIZE_TOO_LARGE:
                self._alone.add(topic)
            elif not self._learn(topic):
                return
            elif learnt:
                # A batch within the limit: that has been lowered, or our sums are wrong.
                self._alone.add(topic)
            if self._limit(topic) < config.BATCH_BYTES_MAX + BATCH_OVERHEAD:
                self._filled[topic] = 0

    def trust(self) -> None:
        """Send batches again, of topics with a known limit within it."""
        for topic in self._alone:
            if topic not in self._known:
                del self._filled[topic]
        self._alone.clear()
        self.flushed()

    def must_flush_before(self, topic: str, size: int) -> bool:
        """Return whether what came before must leave first."""
        filled = self._filled[topic]
        return filled > 0 and filled + size > self._limit(topic)

    def added(self, topic: str, size: int) -> None:
        """Take note of a record in the batch of `topic`."""
        self._filled[topic] += size

    def flushed(self) -> None:
        """Take note that all batches have left."""
        self._filled = dict.fromkeys(self._filled, 0)

    def _limit(self, topic: str) -> int:
        return 0 if topic in self._alone else self._known[topic]

    def _learn(self, topic: str) -> bool:
        try:
            self._known[topic] = int(self._settings_of(topic)["max.message.bytes"])
        except Denied:
            # Nobody may tell: each record goes alone.
            self._known[topic] = 0
        except Unreachable as unreachable:
            _log.warning("record limit unknown", topic=topic, reason=str(unreachable))
            return False
        return True
