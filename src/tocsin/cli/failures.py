"""What is foreseeable, and how each of it ends the command."""

from tocsin.cli.exits import Exit, Failure
from tocsin.client import (
    ClientError,
    NoAnswerError,
    NotWrittenError,
    OwnerError,
    RefusedError,
    UnreachableError,
)
from tocsin.core.errors import Refusal
from tocsin.core.time_text import TimeTextError
from tocsin.ports import Denied, StoreUnusable, Unreachable
from tocsin.settings import SettingsError


def failure_of(error: Exception) -> Failure | None:
    """Return how `error` is told; None: it is a bug, and shows as one."""
    match error:
        case Failure():
            return error
        case ClientError():
            return _of_client(error)
        case SettingsError() | TimeTextError():
            return Failure(Exit.USAGE, str(error))
        case Refusal():
            return Failure(Exit.USAGE, f"{error.field} = {error.value}", error.way_out)
        case Unreachable():
            return Failure(
                Exit.UNREACHABLE, f"no broker answers ({error})", "is Kafka running there?"
            )
        case Denied():
            return Failure(Exit.USAGE, f"the broker says no ({error})", "check the permissions")
        case StoreUnusable():
            return Failure(Exit.STATE_DIR, str(error))
        case _:
            return None


def _of_client(error: ClientError) -> Failure:
    failure = Failure(_exit_of(error), error.message, error.way_out)
    if isinstance(error, RefusedError):
        failure.document = {
            "error": "refused",
            "reason": error.reason,
            "field": error.field,
            "value": error.value,
        }
        if error.handle is not None:
            failure.document |= {
                "actor": error.handle.actor,
                "reminder": error.handle.reminder,
                "partition": error.handle.partition,
                "command": error.handle.version,
            }
    return failure


def _exit_of(error: ClientError) -> Exit:
    match error:
        case RefusedError(handle=None):  # a usage mistake: nothing was sent
            return Exit.USAGE
        case RefusedError():
            return Exit.REFUSED
        case NoAnswerError() | OwnerError():
            return Exit.NO_ANSWER
        case UnreachableError() | NotWrittenError():
            return Exit.UNREACHABLE
        case _:
            return Exit.USAGE
