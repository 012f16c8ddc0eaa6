"""What services use. `tocsin.connect.connect(...)` makes a client of a Kafka cluster."""

from tocsin.client.client import Client
from tocsin.client.errors import (
    ClientError,
    DeniedError,
    NoAnswerError,
    NotWrittenError,
    OwnerError,
    RefusedError,
    TopicMissingError,
    UnreachableError,
)
from tocsin.client.handles import Answer, Handle
from tocsin.client.owners import Detail, Listed, Owner
from tocsin.client.reading import DeadLetter, LoggedEvent, Reader, Received

__all__ = [
    "Answer",
    "Client",
    "ClientError",
    "DeadLetter",
    "DeniedError",
    "Detail",
    "Handle",
    "Listed",
    "LoggedEvent",
    "NoAnswerError",
    "NotWrittenError",
    "Owner",
    "OwnerError",
    "Reader",
    "Received",
    "RefusedError",
    "TopicMissingError",
    "UnreachableError",
]
