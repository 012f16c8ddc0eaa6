"""What can go wrong between a service and the engine, each with what to do about it."""

from tocsin.client.handles import Handle
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import Refused


class ClientError(Exception):
    """Base of all that this library raises. `way_out` says what to do."""

    def __init__(self, message: str, way_out: str) -> None:
        super().__init__(f"{message}: {way_out}")
        self.message = message
        self.way_out = way_out


class RefusedError(ClientError):
    """The answer is no: the engine's, or this library's before anything was sent."""

    def __init__(
        self, reason: Reason, field: str, value: str, way_out: str, handle: Handle | None
    ) -> None:
        super().__init__(f"refused ({reason}), {field} = {value}", way_out)
        #: One word of `Reason`.
        self.reason = reason
        #: Field at fault, by its name in arguments and JSON.
        self.field = field
        #: Its value as the author would recognise it, shortened.
        self.value = value
        #: The command that the engine refused; None: it was never sent.
        self.handle = handle


class NoAnswerError(ClientError):
    """The command is in the log, and no worker answered it in time. It will be answered once."""

    def __init__(self, handle: Handle, seconds: float) -> None:
        super().__init__(
            f"no answer to the command at partition {handle.partition}, offset {handle.version}"
            f" within {seconds:g} s",
            "it is in the log and takes effect once a worker reads it, so do not send it again;"
            " is a worker running for this prefix? (tocsin worker; tocsin topics describe)",
        )
        self.handle = handle
        self.seconds = seconds


class NotWrittenError(ClientError):
    """No broker confirmed the command in time. It may have been written all the same."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no broker confirmed the command ({why})",
            "it may have been written all the same: look before you send it again,"
            " or arm with if_absent or if_version, which are safe to repeat",
        )


class UnreachableError(ClientError):
    """No broker answers."""

    def __init__(self, servers: str, why: str) -> None:
        super().__init__(
            f"no broker answers at {servers} ({why})",
            "is Kafka running there? Check bootstrap_servers, and the security settings in `kafka`",
        )


class TopicMissingError(ClientError):
    """A topic of the installation does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"topic {topic} does not exist",
            "make the topics with `tocsin topics create`, or check the prefix",
        )
        self.topic = topic


class DeniedError(ClientError):
    """A broker says no: not authorised, too large, or a setting that it does not take."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the broker says no ({why})", "check the permissions of this client")


class OwnerError(ClientError):
    """No worker can be asked about a partition now."""


def refused_here(refusal: Refusal) -> RefusedError:
    """Return what a caller gets whose arguments cannot be sent."""
    return RefusedError(refusal.reason, refusal.field, refusal.value, refusal.way_out, None)


def refused_there(event: Refused, handle: Handle) -> RefusedError:
    """Return what a caller gets whose command the engine refused."""
    return RefusedError(event.reason, event.field, event.value, event.way_out, handle)
