"""Commands as they come from the log: Avro or JSON, from authors whom nobody checked.

Any bytes yield a command or a Refusal, with work and memory bounded by VALUE_BYTES_MAX.
"""

from typing import Any, Final, assert_never

from tocsin.codec.avro import (
    EMPTY,
    FALSE,
    NULL,
    blob,
    boolean,
    header_array,
    maybe_long,
    maybe_text,
    read_blob,
    read_boolean,
    read_header_array,
    read_maybe_long,
    read_maybe_text,
    read_text,
    read_text_array,
    text,
    text_array,
)
from tocsin.codec.errors import Undecodable
from tocsin.codec.framing import HEAD_SIZE, MAGIC, head, read
from tocsin.codec.json_commands import decode_json
from tocsin.codec.state import headers_of
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
from tocsin.core.errors import Reason, Refusal
from tocsin.core.values import DurationMs, EpochMs, Header, Offset

VALUE_BYTES_MAX: Final = 2 * 1024 * 1024
#: One of today is 55 characters long; the standard lets later ones be longer.
TRACEPARENT_BYTES_MAX: Final = 256
TRACEPARENT: Final = "traceparent"

ARM: Final = "tocsin.commands.Arm"

#: How an Arm ends that has no conditions and no options.
_NOTHING_ELSE: Final = FALSE + NULL + FALSE * 2 + NULL * 10 + EMPTY
_JSON_FIRST = b"{"
_WAY_OUT: Final = (
    "send Avro single-object encoding (it begins with C3 01) of a schema of tocsin.commands,"
    " or a JSON object (it begins with {, without BOM or blanks before it)"
)


def decode_command(
    value: bytes | None, headers: tuple[Header, ...], offset: Offset, appended: EpochMs | None
) -> ServiceCommand:
    """Return the command that a record is; raises Refusal and nothing else."""
    if value is None:
        raise Refusal(Reason.UNDECODABLE, "value", None, _WAY_OUT)
    if len(value) > VALUE_BYTES_MAX:
        raise Refusal(
            Reason.LIMIT, "value", f"{len(value)} bytes", f"the limit is {VALUE_BYTES_MAX} bytes"
        )
    traceparent = _traceparent(headers) if headers else None
    if value[:HEAD_SIZE] == head(ARM):
        return _decode_arm(value, traceparent, offset, appended)
    if value[:2] == MAGIC:
        return _decode_avro(value, traceparent, offset, appended)
    if value[:1] == _JSON_FIRST:
        return decode_json(value, traceparent, offset, appended)
    raise Refusal(Reason.UNDECODABLE, "value", value, _WAY_OUT)


def encode_command(command: ServiceCommand) -> bytes:
    """Return the value of a command record.

    `offset` and `appended` are not in it, they are the log's; nor is `traceparent`, a header.
    ValueError or OverflowError where text is no UTF-8 or a number has more than 64 bits.
    """
    match command:
        case Arm():
            return b"".join(
                (
                    head(ARM),
                    text(command.reminder),
                    maybe_long(command.at),
                    maybe_long(command.after),
                    maybe_long(command.every),
                    blob(command.payload),
                    maybe_text(command.content_type),
                    header_array(command.headers),
                    maybe_text(command.to),
                    boolean(command.if_absent),
                    maybe_long(command.if_version),
                    boolean(command.if_earlier),
                    boolean(command.if_changed),
                    _options(command),
                    _cron(command),
                )
            )
        case Move():
            return b"".join(
                (
                    head("tocsin.commands.Move"),
                    text(command.reminder),
                    maybe_long(command.at),
                    maybe_long(command.after),
                    maybe_long(command.every),
                    maybe_long(command.if_version),
                    _cron(command),
                )
            )
        case Cancel():
            return b"".join(
                (
                    head("tocsin.commands.Cancel"),
                    maybe_text(command.reminder),
                    maybe_text(command.operation),
                    maybe_text(command.prefix),
                    boolean(command.raw),
                    boolean(command.all),
                    maybe_long(command.if_version),
                )
            )
        case Fire():
            return head("tocsin.commands.Fire") + text(command.reminder)
        case Pause() | Resume():
            return b"".join(
                (
                    head(f"tocsin.commands.{type(command).__name__}"),
                    maybe_text(command.reminder),
                    boolean(command.all),
                    maybe_text(command.note),
                )
            )
        case Destroy():
            return head("tocsin.commands.Destroy")
        case _:
            assert_never(command)


def _options(arm: Arm) -> bytes:
    """Return the fields of an Arm that few commands have."""
    return b"".join(
        (
            maybe_text(arm.missed),
            maybe_long(arm.catch_up),
            maybe_long(arm.ttl),
            maybe_long(arm.until),
            maybe_long(arm.occurrences),
            maybe_long(arm.jitter),
        )
    )


def _cron(command: Arm | Move) -> bytes:
    """Return the fields of a schedule by a calendar."""
    return b"".join(
        (
            maybe_text(command.cron),
            maybe_text(command.zone),
            maybe_text(command.gap),
            maybe_text(command.overlap),
            text_array(command.exclude),
        )
    )


def _decode_arm(
    value: bytes, traceparent: str | None, offset: Offset, appended: EpochMs | None
) -> Arm:
    """Return what `_decode_avro` returns for the current Arm, in half the time."""
    try:
        reminder, at = read_text(value, HEAD_SIZE)
        due, at = read_maybe_long(value, at)
        after, at = read_maybe_long(value, at)
        every, at = read_maybe_long(value, at)
        payload, at = read_blob(value, at)
        content_type, at = read_maybe_text(value, at)
        armed, at = read_header_array(value, at)
        target, at = read_maybe_text(value, at)
        plain = value[at:] == _NOTHING_ELSE
        others = {} if plain else _read_others(value, at)
    except (IndexError, UnicodeDecodeError, Undecodable) as error:
        raise _undecodable(value, error) from error
    return Arm(
        offset=offset,
        appended=appended,
        reminder=reminder,
        at=None if due is None else EpochMs(due),
        after=None if after is None else DurationMs(after),
        every=None if every is None else DurationMs(every),
        payload=payload,
        content_type=content_type,
        headers=armed,
        to=target,
        traceparent=traceparent,
        **others,
    )


def _read_others(value: bytes, at: int) -> dict[str, Any]:
    """Read the conditions and options of an Arm, which the most do not have."""
    others: dict[str, Any] = {}
    others["if_absent"], at = read_boolean(value, at)
    others["if_version"], at = read_maybe_long(value, at)
    others["if_earlier"], at = read_boolean(value, at)
    others["if_changed"], at = read_boolean(value, at)
    others["missed"], at = read_maybe_text(value, at)
    for field in ("catch_up", "ttl", "until", "occurrences", "jitter"):
        others[field], at = read_maybe_long(value, at)
    for field in ("cron", "zone", "gap", "overlap"):
        others[field], at = read_maybe_text(value, at)
    others["exclude"], at = read_text_array(value, at)
    if at != len(value):
        raise Undecodable(f"the body of a {ARM} ends at {at}, not at {len(value)}")
    return others


def _decode_avro(
    value: bytes, traceparent: str | None, offset: Offset, appended: EpochMs | None
) -> ServiceCommand:
    try:
        name, record = read(value)
    except Undecodable as error:
        raise _undecodable(value, error) from error
    match name:
        case "tocsin.commands.Arm":
            return Arm(
                offset=offset,
                appended=appended,
                traceparent=traceparent,
                **{
                    **record,
                    "headers": headers_of(record["headers"]),
                    "exclude": tuple(record["exclude"]),
                },
            )
        case "tocsin.commands.Move":
            exclude = tuple(record.pop("exclude"))
            return Move(offset=offset, appended=appended, exclude=exclude, **record)
        case "tocsin.commands.Cancel":
            return Cancel(offset=offset, appended=appended, **record)
        case "tocsin.commands.Fire":
            return Fire(offset=offset, appended=appended, **record)
        case "tocsin.commands.Pause":
            return Pause(offset=offset, appended=appended, **record)
        case "tocsin.commands.Resume":
            return Resume(offset=offset, appended=appended, **record)
        case "tocsin.commands.Destroy":
            return Destroy(offset=offset, appended=appended)
        case _:
            raise _undecodable(value, f"a {name} is no command")


def _undecodable(value: bytes, why: object) -> Refusal:
    return Refusal(Reason.UNDECODABLE, "value", value, f"{why}; {_WAY_OUT}")


def _traceparent(headers: tuple[Header, ...]) -> str | None:
    """Return the trace context that came with the command; the last one counts, as in Kafka."""
    found = None
    for name, value in headers:
        if name == TRACEPARENT:
            found = value
    if found is None:
        return None
    if len(found) > TRACEPARENT_BYTES_MAX or not (found.isascii() and found.decode().isprintable()):
        raise Refusal(
            Reason.INVALID,
            TRACEPARENT,
            found,
            f"a trace context is at most {TRACEPARENT_BYTES_MAX} printable ASCII characters",
        )
    return found.decode()
