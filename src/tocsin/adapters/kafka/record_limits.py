"""How large a record each topic takes, and how to keep a batch from hiding which one is too large.

A broker measures batches: ten small records sent together are "too large" for a topic with a small
max.message.bytes. So a topic that ever refused for size gets batches within its limit, and a record
beyond it goes alone; only then is the refusal the record's own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from tocsin.adapters.kafka import config
from tocsin.core.values import Header
from tocsin.ports import Denied, Unreachable

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
    """What was learnt of the topics that refused for size."""

    def __init__(self, settings_of: Callable[[str], Mapping[str, str]]) -> None:
        self._settings_of = settings_of
        self._known: dict[str, int] = {}
        #: Of topics whose limit a batch could exceed: bytes of the batch that is being filled.
        self._filled: dict[str, int] = {}

    def __contains__(self, topic: str) -> bool:
        """Whether records of `topic` are to be announced by `must_flush_before`."""
        return topic in self._filled

    def exceeded(self, topic: str, size: int) -> bool:
        """Return whether a refusal for size is the record's own."""
        return size > self._known.get(topic, size)

    def learn(self, topics: Iterable[str]) -> None:
        """Ask for the limits of `topics`; what nobody tells stays unknown."""
        for topic in topics:
            try:
                limit = int(self._settings_of(topic)["max.message.bytes"])
            except Denied:
                # Nobody may tell: each record goes alone.
                limit = 0
            except Unreachable as unreachable:
                _log.warning("limit unknown", topic=topic, reason=str(unreachable))
                return
            self._known[topic] = limit
            if limit < config.BATCH_BYTES_MAX + BATCH_OVERHEAD:
                self._filled.setdefault(topic, 0)

    def flushed(self) -> None:
        """Take note that all batches are on their way."""
        for topic in self._filled:
            self._filled[topic] = 0

    def must_flush_before(self, topic: str, size: int) -> bool:
        """Return whether what came before must leave first."""
        filled = self._filled[topic]
        return filled > 0 and filled + size > self._known[topic]

    def added(self, topic: str, size: int) -> None:
        """Take note of a record in the batch of `topic`."""
        self._filled[topic] += size
