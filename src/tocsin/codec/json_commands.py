"""Commands as JSON: one object with one member, the command in snake case.

Stricter than JSON asks for, so that nobody arms what they did not mean: no unknown and no
duplicate key at any depth, no lone surrogate, no number that is not finite.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from tocsin.core.commands import (
    Arm,
    Cancel,
    Destroy,
    Fire,
    Move,
    Pause,
    Resume,
    ServiceCommand,
)
from tocsin.core.errors import VALUE_SHOWN_MAX, Reason, Refusal
from tocsin.core.rules_of_schedules import read_every, read_period
from tocsin.core.time_text import TimeTextError, parse_duration, parse_instant
from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version

#: Brackets within each other. A fixed bound: what is refused must not hang on our own stack.
DEPTH_MAX: Final = 128
JSON_CONTENT_TYPE: Final = "application/json"

#: The fields of each command, in the order in which they are told to who gave another.
FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "arm": (
        "reminder",
        "at",
        "after",
        "every",
        "cron",
        "zone",
        "gap",
        "overlap",
        "exclude",
        "until",
        "occurrences",
        "jitter",
        "missed",
        "catch_up",
        "ttl",
        "payload",
        "payload_text",
        "payload_base64",
        "content_type",
        "headers",
        "to",
        "if_absent",
        "if_version",
        "if_earlier",
        "if_changed",
    ),
    "move": (
        "reminder",
        "at",
        "after",
        "every",
        "cron",
        "zone",
        "gap",
        "overlap",
        "exclude",
        "if_version",
    ),
    "cancel": ("reminder", "operation", "prefix", "raw", "all", "if_version"),
    "fire": ("reminder",),
    "pause": ("reminder", "all", "note"),
    "resume": ("reminder", "all", "note"),
    "destroy": (),
}
_PAYLOADS: Final = ("payload", "payload_text", "payload_base64")

_INT64: Final = range(-(2**63), 2**63)
#: No integer of 64 bits has more characters. int() is slow for long ones, and refuses some.
_INT64_CHARS_MAX: Final = 20

_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_BRACKET: Final = re.compile(_STRING + rb"|([\[{])|([\]}])", re.DOTALL)
_BLANKS: Final = re.compile(rb"(" + _STRING + rb")|[ \t\r\n]+", re.DOTALL)
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")

Fields = dict[str, Any]
T = TypeVar("T")


def decode_json(
    value: bytes, traceparent: str | None, offset: Offset, appended: EpochMs | None
) -> ServiceCommand:
    """Return the command that the JSON text `value` is; raises Refusal and nothing else."""
    name, fields = _command(_parse(value))
    match name:
        case "arm":
            payload, content_type = _payload(value, fields)
            every, occurrences = _interval(fields)
            return Arm(
                offset=offset,
                appended=appended,
                reminder=_name(fields),
                at=_instant(fields, "at"),
                after=_duration(fields, "after"),
                every=every,
                payload=payload,
                content_type=content_type,
                headers=_headers(fields),
                to=_text(fields, "to"),
                if_absent=_flag(fields, "if_absent"),
                if_version=_version(fields),
                if_earlier=_flag(fields, "if_earlier"),
                if_changed=_flag(fields, "if_changed"),
                until=_instant(fields, "until"),
                occurrences=occurrences,
                **_cron(fields),
                jitter=_duration(fields, "jitter"),
                missed=_text(fields, "missed"),
                catch_up=_duration(fields, "catch_up"),
                ttl=_duration(fields, "ttl"),
                traceparent=traceparent,
            )
        case "move":
            return Move(
                offset=offset,
                appended=appended,
                reminder=_name(fields),
                at=_instant(fields, "at"),
                after=_duration(fields, "after"),
                every=_every(fields, read_period),
                **_cron(fields),
                if_version=_version(fields),
            )
        case "cancel":
            return Cancel(
                offset=offset,
                appended=appended,
                reminder=_text(fields, "reminder"),
                operation=_text(fields, "operation"),
                prefix=_text(fields, "prefix"),
                raw=_flag(fields, "raw"),
                all=_flag(fields, "all"),
                if_version=_version(fields),
            )
        case "fire":
            return Fire(offset=offset, appended=appended, reminder=_name(fields))
        case "pause" | "resume":
            return (Pause if name == "pause" else Resume)(
                offset=offset,
                appended=appended,
                reminder=_text(fields, "reminder"),
                all=_flag(fields, "all"),
                note=_text(fields, "note"),
            )
        case "destroy":
            return Destroy(offset=offset, appended=appended)
        case _:
            raise AssertionError(f"{name} is in FIELDS and not read here")


# --- The text ----------------------------------------------------------------------------------


class _LongInteger(str):
    """The digits of an integer that no field can take."""

    __slots__ = ()


def _parse(value: bytes) -> Any:  # noqa: ANN401  JSON
    """Return what `value` says, once all of it has been found fit for a command."""
    try:
        document = _decoder.decode(value.decode())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refusal(
            Reason.UNDECODABLE, "value", value, f"it is not JSON in UTF-8: {error}"
        ) from error
    except RecursionError:
        raise _too_deep(value) from None
    _check_depth(value)
    if _SURROGATE_ESCAPE.search(value):
        _check_surrogates(document)
    return document


def _check_depth(value: bytes) -> None:
    """Check the depth of valid JSON; of other text this would not be linear."""
    if value.count(b"[") + value.count(b"{") <= DEPTH_MAX:
        return
    depth = 0
    for bracket in _BRACKET.finditer(value):
        if bracket[1]:
            depth += 1
            if depth > DEPTH_MAX:
                raise _too_deep(value)
        elif bracket[2]:
            depth -= 1


def _too_deep(value: bytes) -> Refusal:
    return Refusal(
        Reason.LIMIT, "value", value, f"the limit is {DEPTH_MAX} brackets within each other"
    )


def _check_surrogates(document: Any) -> None:  # noqa: ANN401  JSON
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - 20) : error.end + 20]
        raise _invalid("value", around, "it has a lone surrogate, which is no character") from None


def _object(pairs: list[tuple[str, Any]]) -> Fields:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        for field, value in pairs:
            if field in seen:
                raise _invalid(field, value, "it is given twice: give it once")
            seen.add(field)
    return fields


def _integer(digits: str) -> int | _LongInteger:
    return int(digits) if len(digits) <= _INT64_CHARS_MAX else _LongInteger(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _invalid("value", digits, "the number is too large for JSON readers: send it as text")
    return number


def _constant(word: str) -> NoReturn:
    raise Refusal(Reason.UNDECODABLE, "value", word, "it is not JSON: numbers are finite")


_decoder = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)


# --- The command -------------------------------------------------------------------------------


def _command(document: Any) -> tuple[str, Fields]:  # noqa: ANN401  JSON
    if len(document) != 1:
        raise _invalid("value", list(document), f"give one member, one of {', '.join(FIELDS)}")
    ((name, fields),) = document.items()
    known = FIELDS.get(name)
    if known is None:
        raise _invalid("value", name, f"there is no such command, but {', '.join(FIELDS)}")
    if not isinstance(fields, dict):
        raise _invalid(name, fields, "give an object with the fields of the command")
    for field, value in fields.items():
        if field not in known:
            raise _invalid(
                field, value, f"{name} has no such field; it has {', '.join(known) or 'none'}"
            )
    return name, fields


def _invalid(field: str, value: object, way_out: str) -> Refusal:
    # A field may be anything that an author made up; it goes into an event, as UTF-8.
    named = field[:VALUE_SHOWN_MAX].encode("utf-8", "backslashreplace").decode()
    return Refusal(Reason.INVALID, named, value, way_out)


def _name(fields: Fields) -> str:
    name = _text(fields, "reminder")
    if name is None:
        raise _invalid("reminder", None, "give the name of the reminder")
    return name


def _text(fields: Fields, field: str) -> str | None:
    value = fields.get(field)
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, _LongInteger):
        return value
    raise _invalid(field, value, "give text")


def _flag(fields: Fields, field: str) -> bool:
    value = fields.get(field, False)
    if isinstance(value, bool):
        return value
    raise _invalid(field, value, "give true or false")


def _version(fields: Fields) -> Version | None:
    value = _integer_of(fields, "if_version")
    return None if value is None else Version(value)


def _integer_of(fields: Fields, field: str) -> int | None:
    value = fields.get(field)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT64:
        return value
    raise _invalid(field, value, "give an integer of 64 bits")


def _instant(fields: Fields, field: str) -> EpochMs | None:
    value = fields.get(field)
    if value is None:
        return None
    try:
        return EpochMs(parse_instant(value))
    except TimeTextError as error:
        raise _invalid(field, value, str(error)) from error


def _duration(fields: Fields, field: str) -> DurationMs | None:
    value = fields.get(field)
    if value is None:
        return None
    try:
        return DurationMs(parse_duration(value))
    except TimeTextError as error:
        raise _invalid(field, value, str(error)) from error


def _interval(fields: Fields) -> tuple[DurationMs | None, int | None]:
    """Return period and number of occurrences; `R5/PT10S` tells both."""
    occurrences = _integer_of(fields, "occurrences")
    every, repeated = _every(fields, read_every) or (None, None)
    if repeated is None:
        return every, occurrences
    if "occurrences" not in fields:
        return every, repeated
    told = f"every = {fields['every']!r} tells it as well: give one"
    raise _invalid("occurrences", occurrences, told)


def _every(fields: Fields, read: Callable[[int | str], T]) -> T | None:
    value = fields.get("every")
    if value is None:
        return None
    if isinstance(value, bool | _LongInteger) or not isinstance(value, int | str):
        raise _invalid("every", value, "give a duration such as 15m, 36h or PT10S, or milliseconds")
    return read(value)


def _cron(fields: Fields) -> dict[str, Any]:
    given = {field: _text(fields, field) for field in ("cron", "zone", "gap", "overlap")}
    exclude = fields.get("exclude")
    if exclude is None:
        return given
    if not isinstance(exclude, list) or not all(type(day) is str for day in exclude):
        raise _invalid("exclude", exclude, "give a list of dates such as 2027-12-24")
    return {**given, "exclude": tuple(exclude)}


# --- Payload and headers -----------------------------------------------------------------------

_raw_fields = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]]).decode


def _payload(value: bytes, fields: Fields) -> tuple[bytes, str | None]:
    """Return the payload and its content type. A null is a payload, but no text and no base64."""
    given = [form for form in _PAYLOADS if form == "payload" or fields.get(form) is not None]
    given = [form for form in given if form in fields]
    if len(given) > 1:
        raise _invalid(given[1], fields[given[1]], f"give one of {', '.join(_PAYLOADS)}")
    content_type = _text(fields, "content_type")
    match given:
        case ["payload"]:
            return _compact(value), JSON_CONTENT_TYPE if content_type is None else content_type
        case ["payload_text"]:
            return (_text(fields, "payload_text") or "").encode(), content_type
        case ["payload_base64"]:
            return _base64("payload_base64", fields["payload_base64"]), content_type
        case _:
            return b"", content_type


def _compact(value: bytes) -> bytes:
    """Return the payload as it was written but for blanks: 1.10 stays 1.10, keys keep order."""
    raw = bytes(_raw_fields(value)["arm"]["payload"])
    return _BLANKS.sub(rb"\1", raw)


def _base64(field: str, value: object) -> bytes:
    if not isinstance(value, str) or isinstance(value, _LongInteger):
        raise _invalid(field, value, "give text in base64")
    try:
        decoded = b64decode(value, validate=True)
    except ValueError as error:
        raise _invalid(field, value, f"it is not base64: {error}") from error
    # What decodes in two ways would be one payload under two spellings.
    if b64encode(decoded).decode() != value:
        raise _invalid(field, value, "it is not base64: bits are left over at its end")
    return decoded


def _headers(fields: Fields) -> tuple[Header, ...]:
    given = fields.get("headers", {})
    if not isinstance(given, dict):
        raise _invalid("headers", given, "give an object of names and values")
    return tuple((name, _header_value(value)) for name, value in given.items())


def _header_value(value: object) -> bytes | None:
    match value:
        case None:
            return None
        case str() if not isinstance(value, _LongInteger):
            return value.encode()
        case {"base64": encoded, **rest} if not rest:
            return _base64("headers", encoded)
        case _:
            raise _invalid("headers", value, 'a value is text, null, or {"base64": text}')
