"""Answers of the admin client, awaited with a bound and in the words of the ports."""

from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from tocsin.adapters.kafka.errors import UNANSWERED, UNKNOWN_TOPIC, error_of
from tocsin.ports import Denied, Unreachable

#: Longest wait for one answer.
ANSWER_S_MAX = 5.0
#: Our own wait is longer, so that the client library tells the reason.
FUTURE_S_MAX = ANSWER_S_MAX + 1.0


T = TypeVar("T")


class NoSuchTopic(Denied):
    """A broker said that the topic, or its partition, does not exist."""


class NoLeader(Unreachable):
    """The partition has no leader, or the topic does not exist: the client library says no more."""


class TopicExists(Denied):
    """A broker said that there is such a topic already."""


def answer(future: "Future[T]") -> T:
    """Return what the brokers answered; Unreachable, or Denied and its kinds."""
    try:
        return future.result(FUTURE_S_MAX)
    except KafkaException as exception:
        raise refusal(exception) from exception
    except NoAnswer as exception:
        raise Unreachable(f"no answer within {FUTURE_S_MAX} s") from exception


def refusal(exception: KafkaException) -> Unreachable | Denied:
    """Return `exception` in the words of the ports."""
    error = error_of(exception)
    message = f"{error.name()}: {error.str()}"
    if error.code() in UNKNOWN_TOPIC:
        return NoSuchTopic(message)
    if error.code() == KafkaError._NOENT:  # noqa: SLF001
        return NoLeader(message)
    if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
        return TopicExists(message)
    if error.retriable() or error.code() in UNANSWERED:
        return Unreachable(message)
    return Denied(message)
