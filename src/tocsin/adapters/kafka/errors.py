"""Kafka's errors in the words of the ports."""

from confluent_kafka import KafkaError, KafkaException

from tocsin.ports import Aborted, Broken, Fenced, TransactionFailed, Unknown

#: The broker will never take the record. A topic that does not exist counts only when a broker's
#: metadata says so; see transaction.py.
PERMANENT = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
#: Ways in which a client says that a topic or partition is unknown.
UNKNOWN_TOPIC = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    }
)
_STALE = frozenset(
    {
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
    }
)
#: Fatal for this producer; a new one may go on.
_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.TRANSACTION_COORDINATOR_FENCED,
    }
)
#: Nobody answered, or not in time.
UNANSWERED = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError._TIMED_OUT,  # noqa: SLF001
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_CONTROLLER,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)


class NothingOpen(Fenced):
    """The coordinator knows of no open transaction, and the client library gives up over that."""


def error_of(exception: KafkaException) -> KafkaError:
    """Return the error inside; every KafkaException of the client carries one."""
    error = exception.args[0]
    assert isinstance(error, KafkaError)
    return error


def kafka_name(error: KafkaError) -> str:
    """Return Kafka's name of the error, also where the client library said it by itself."""
    return "UNKNOWN_TOPIC_OR_PART" if error.code() in UNKNOWN_TOPIC else str(error.name())


def transaction_failure(error: KafkaError) -> TransactionFailed:
    """Return which of the four ways it is."""
    code, message = error.code(), f"{error.name()}: {error.str()}"
    if error.fatal():
        if code == KafkaError.INVALID_TXN_STATE:
            return NothingOpen(message)
        return Fenced(message) if code in _FENCED else Broken(message)
    if error.txn_requires_abort():
        return Aborted(message, permanent=code in PERMANENT, stale=code in _STALE)
    if error.retriable() or code in UNANSWERED:
        return Unknown(message)
    return Broken(message)
