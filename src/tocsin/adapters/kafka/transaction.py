"""The engine's transactions.

Laws: a record that was refused never lets `commit` succeed, not even when the client library
refused it on the spot; no time-out and no guess is called permanent; a call ends within
CALL_S_MAX or so and may be made again after Unknown.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from tocsin.adapters.kafka import config
from tocsin.adapters.kafka.bounded_call import BoundedCalls, NeverBack
from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.errors import (
    PERMANENT,
    UNKNOWN_TOPIC,
    NothingOpen,
    error_of,
    kafka_name,
    transaction_failure,
)
from tocsin.adapters.kafka.record_limits import BATCH_WIDE, RecordLimits, size_of
from tocsin.adapters.kafka.reports import delivered, failed
from tocsin.core.values import EpochMs, Header, Offset
from tocsin.ports import Aborted, Broken, Fenced, Report, Token, Transaction, Unknown

#: Longest wait within one call; then it raises Unknown.
CALL_S_MAX = 5.0
#: Beyond CALL_S_MAX a call is not coming back at all.
NEVER_BACK_S = CALL_S_MAX + 2.0
#: The client library's commit is asked anew this often, for after a refusal it would wait on for
#: records that can no longer leave.
COMMIT_TRY_S = 0.25
#: After this many tries a commit asks whether a topic is gone: the client library would go on
#: adding a deleted topic to the transaction until its records time out.
COMMIT_TRIES_BLIND = 4
METADATA_S_MAX = 1.0
FLUSH_S_MAX = 1.0
DISCARD_S_MAX = 1.0
REPORTS_S_MAX = 0.1
#: A full queue is waited for this often, this long each time.
QUEUE_WAITS_MAX = 50
QUEUE_WAIT_S = 0.1

_QUEUE_FULL = KafkaError._QUEUE_FULL  # noqa: SLF001
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001
_NOT_NAMED = KafkaError._INCONSISTENT  # noqa: SLF001  "see individual delivery reports"
#: How `flush` raises what a report or a fatal error had to say. The second is what Python makes of
#: the first when the client library (confluent-kafka 2.16) goes on after it as if nothing were.
_RAISED_BY_REPORTS = (KafkaException, SystemError)
#: Refusals of the client library that rest on what it remembers of a broker's answer.
_CACHED = UNKNOWN_TOPIC | {KafkaError.TOPIC_AUTHORIZATION_FAILED}


class KafkaTransaction(Transaction):
    """One transactional producer, replaced when it cannot go on."""

    def __init__(
        self,
        client: config.Settings,
        transactional_id: str,
        commands: str,
        *,
        timeout_ms: int = config.TRANSACTION_TIMEOUT_MS,
    ) -> None:
        self._client = client
        self._settings = config.transactional_producer(
            client, transactional_id=transactional_id, timeout_ms=timeout_ms
        )
        self._commands = commands
        self._producer: Producer | None = None
        self._calls = BoundedCalls("positions")
        self._cluster: KafkaCluster | None = None
        self._limits = RecordLimits(self._settings_of)
        self._ready = False
        #: A transaction was begun and is not yet known to have ended.
        self._begun = False
        #: A batch was refused. The client library's sequence numbers have a gap now: the next
        #: transaction would fail too.
        self._worn = False
        #: Reports are asked for each record, because the last transaction failed without a name.
        self._watching = False
        self._topics: set[str] = set()
        self._refusing: dict[str, bool] = {}
        self._spoilt: tuple[int, str] | None = None

    def open(self) -> None:
        if self._producer is None or self._ready:
            self._discard()
            try:
                self._producer = Producer(self._settings)
            except KafkaException as exception:
                raise Broken(str(error_of(exception))) from exception
        try:
            self._call(self._producer.init_transactions, CALL_S_MAX)
        except (Aborted, Broken, Fenced):
            self._discard()
            raise
        self._ready = True
        self._worn = self._begun = False

    def begin(self) -> None:
        self._call(self._open_producer().begin_transaction)
        self._begun = True
        self._topics.clear()
        self._refusing.clear()
        self._spoilt = None

    def produce(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        timestamp: EpochMs | None = None,
        report: Callable[[Report], None] | None = None,
    ) -> None:
        self._topics.add(topic)
        limited = topic in self._limits
        # By position, and a callback only where one is needed: this is the hot path.
        arguments: tuple[Any, ...] = (
            topic,
            value,
            key,
            -1 if partition is None else partition,
            None
            if report is None and not self._watching and not limited
            else partial(self._on_delivery, topic, (key, value, headers), report),
            None,
            timestamp or 0,
            list(headers),
        )
        if limited:
            self._flush_before(topic, size_of(key, value, headers))
        try:
            self._open_producer().produce(*arguments)
        except (BufferError, KafkaException):
            self._produce_slowly(arguments, report)

    def send_positions(self, positions: Mapping[int, Offset], token: Token) -> None:
        offsets = [TopicPartition(self._commands, p, offset) for p, offset in positions.items()]
        send = self._open_producer().send_offsets_to_transaction
        try:
            self._call(self._calls.call, NEVER_BACK_S, send, offsets, token.opaque, CALL_S_MAX)
        except NeverBack as never:
            raise Broken(f"the client library does not come back: {never}") from never

    def commit(self) -> None:
        if self._spoilt is not None:
            self._serve_reports()
            raise self._explained(*self._spoilt)
        until = time.monotonic() + CALL_S_MAX
        for tries in count(1):
            try:
                self._call(self._open_producer().commit_transaction, COMMIT_TRY_S)
            except Unknown:
                if time.monotonic() > until:
                    raise
                if tries % COMMIT_TRIES_BLIND == 0:
                    self._missing()
            else:
                break
        self._begun = self._watching = False
        self._limits.trust()

    def abort(self) -> None:
        if not self._begun:
            return
        if self._ready:
            try:
                self._call(self._open_producer().abort_transaction, CALL_S_MAX)
            except NothingOpen:
                # The coordinator had taken no partition of it, and the client library gives up
                # over that. There is nothing to abort; a new producer goes on.
                self._worn = True
            self._serve_reports()
        if self._worn:
            self.open()
        self._begun = False

    def close(self) -> None:
        self._discard()
        self._calls.close()
        self._ready = self._begun = False

    def _open_producer(self) -> Producer:
        assert self._producer is not None, "open comes first"
        return self._producer

    def _discard(self) -> None:
        """Let go of the producer; its reports are called, and an open transaction times out."""
        producer, self._producer = self._producer, None
        self._ready = False
        if producer is not None:
            # After a fatal error the first call that serves reports raises it, and only that one.
            with suppress(*_RAISED_BY_REPORTS):
                producer.purge()
                producer.flush(DISCARD_S_MAX)
            with suppress(*_RAISED_BY_REPORTS):
                producer.flush(DISCARD_S_MAX)

    def _serve_reports(self) -> None:
        with suppress(*_RAISED_BY_REPORTS):
            self._open_producer().flush(COMMIT_TRY_S)

    def _call(self, call: Callable[..., object], *arguments: object) -> None:
        try:
            call(*arguments)
        except KafkaException as exception:
            error = error_of(exception)
            failure = transaction_failure(error)
            if isinstance(failure, Aborted) and not failure.stale:
                failure = self._explained(error.code(), str(failure))
            raise failure from exception

    # --- Why a transaction failed --------------------------------------------------------------

    def _explained(self, code: int, message: str) -> Aborted:
        """Return the failure with the topics that refused, as far as anybody says."""
        if not self._refusing:  # it can fail a moment before the reports that say why
            self._open_producer().poll(REPORTS_S_MAX)
        refusing = {topic for topic, permanent in self._refusing.items() if permanent}
        suspected = self._refusing.keys() - refusing
        if not refusing and (suspected or code in BATCH_WIDE):
            # The whole batch was refused for one of its records. The next attempt tells for which.
            self._limits.suspect(suspected or self._topics, code)
        elif not refusing and (code in UNKNOWN_TOPIC or code == _NOT_NAMED):
            refusing = self._missing()
        self._watching = True
        self._worn = self._worn or code in BATCH_WIDE
        permanent = bool(refusing) or code == KafkaError.TOPIC_AUTHORIZATION_FAILED
        return Aborted(message, permanent=permanent, topics=tuple(sorted(refusing)))

    def _missing(self) -> set[str]:
        """Return the topics of this transaction that a broker says do not exist.

        Asking also tells the client library, whose own picture is minutes old.
        """
        missing = set()
        for topic in sorted(self._topics):
            exists = self._exists(topic)
            if exists is None:
                break
            if not exists:
                missing.add(topic)
        return missing

    def _exists(self, topic: str) -> bool | None:
        """Return whether a broker says that `topic` exists; None when none answers."""
        try:
            metadata = self._open_producer().list_topics(topic, METADATA_S_MAX)
        except KafkaException:
            return None
        error = metadata.topics[topic].error
        return error is None or error.code() not in UNKNOWN_TOPIC

    def _on_delivery(
        self,
        topic: str,
        contents: tuple[bytes | None, bytes | None, Sequence[Header]],
        report: Callable[[Report], None] | None,
        error: KafkaError | None,
        message: Any,
    ) -> None:
        if error is None:
            if report is not None:
                report(delivered(message))
            return
        size = size_of(*contents)
        permanent = self._spoilt is None and self._is_permanent(error.code(), topic, size)
        self._worn = self._worn or error.code() in BATCH_WIDE
        if permanent or error.code() in BATCH_WIDE:
            self._refusing[topic] = self._refusing.get(topic, False) or permanent
        if report is not None:
            report(failed(kafka_name(error), permanent=permanent))

    def _is_permanent(self, code: int, topic: str, size: int) -> bool:
        if code in BATCH_WIDE:
            return self._limits.was_alone(topic, size)
        # In a report the topic is unknown only after a broker's metadata said so.
        return code in PERMANENT or code in UNKNOWN_TOPIC

    # --- The slow ways of produce --------------------------------------------------------------

    def _produce_slowly(
        self, arguments: tuple[Any, ...], report: Callable[[Report], None] | None
    ) -> None:
        """Add the record once there is room and the topic was looked up; or note the refusal."""
        topic, asked, error = arguments[0], False, None
        for _ in range(QUEUE_WAITS_MAX):
            try:
                self._open_producer().produce(*arguments)
            except BufferError:
                self._open_producer().poll(QUEUE_WAIT_S)
            except KafkaException as exception:
                error = error_of(exception)
                if error.fatal():
                    raise transaction_failure(error) from exception
                if asked or error.code() not in _CACHED:
                    break
                # The client library remembers; a broker may know better by now.
                asked = self._exists(topic) is not None
                if not asked:
                    break
            else:
                return
        self._refuse(topic, error, reachable=asked, report=report)

    def _refuse(
        self,
        topic: str,
        error: KafkaError | None,
        *,
        reachable: bool,
        report: Callable[[Report], None] | None,
    ) -> None:
        """Note that the record is not in the transaction, for `commit` to say so."""
        name = "_QUEUE_FULL" if error is None else kafka_name(error)
        message = "the producer's queue is full" if error is None else f"{name}: {error.str()}"
        permanent = (
            error is not None
            and (error.code() in PERMANENT or error.code() in UNKNOWN_TOPIC)
            and (reachable or error.code() not in _CACHED)
        )
        if permanent:
            self._refusing[topic] = True
        if self._spoilt is None or permanent:
            self._spoilt = (_QUEUE_FULL if error is None else error.code(), message)
        if report is not None:
            report(failed(name, permanent=permanent))

    def _flush_before(self, topic: str, size: int) -> None:
        """Send off what a record of `size` bytes must not share a batch with."""
        if self._limits.must_flush_before(topic, size) and self._spoilt is None:
            if self._open_producer().flush(FLUSH_S_MAX) > 0:
                self._spoilt = (_TIMED_OUT, "records did not leave in time")
            self._limits.flushed()
        self._limits.added(topic, size)

    def _settings_of(self, topic: str) -> Mapping[str, str]:
        if self._cluster is None:
            self._cluster = KafkaCluster(self._client)
        return self._cluster.settings(topic)
