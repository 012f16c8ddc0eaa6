"""Caller mistakes. Each is answered by a Refused event; none of them stops a partition."""

from enum import StrEnum

#: Characters of an offending value that are repeated to its author.
VALUE_SHOWN_MAX = 80
#: Bits of an integer that are written out; Python refuses to print very long ones.
INTEGER_BITS_SHOWN_MAX = 256


class Reason(StrEnum):
    """Why a command was refused. The values are on the wire: add, never rename."""

    UNDECODABLE = "undecodable"
    INVALID = "invalid"
    EXISTS = "exists"
    ABSENT = "absent"
    OTHER_VERSION = "other_version"
    TARGET_NOT_ALLOWED = "target_not_allowed"
    LIMIT = "limit"
    #: The delivery that an Acknowledge names is not the outstanding one.
    SUPERSEDED = "superseded"
    WRONG_PARTITION = "wrong_partition"
    FAULT = "fault"


class Refusal(ValueError):
    """A command that is answered with no: the field, its value, and the way out."""

    def __init__(self, reason: Reason, field: str, value: object, way_out: str) -> None:
        self.reason = reason
        self.field = field
        self.value = shown(value)
        self.way_out = way_out
        super().__init__(f"{field} = {self.value}: {way_out}")


def shown(value: object) -> str:
    """Return `value` as its author would recognise it, cut to VALUE_SHOWN_MAX characters.

    Bytes are only counted: the audit log does not keep what nobody could read.
    """
    match value:
        case bytes():
            return f"{len(value)} bytes"
        case str() if len(value) > VALUE_SHOWN_MAX:
            return f"{value[:VALUE_SHOWN_MAX]!r}… ({len(value)} long)"
        case str():
            return repr(value)
        case int() if value.bit_length() > INTEGER_BITS_SHOWN_MAX:
            return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except ValueError:  # such an integer, within
        text = f"a {type(value).__name__}"
    return text if len(text) <= VALUE_SHOWN_MAX else f"{text[:VALUE_SHOWN_MAX]}…"
