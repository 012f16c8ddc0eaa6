"""What a command must satisfy, whatever is armed. Each check raises Refusal with the way out."""

from tocsin.core.commands import Arm, Cancel, Move, Pause, Resume
from tocsin.core.errors import Reason, Refusal
from tocsin.core.limits import Limits
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX, INSTANT_MS_MIN
from tocsin.core.values import DurationMs, EpochMs, Header

#: Of a content type; a command may carry much, but no field without a bound.
CONTENT_TYPE_CHARS_MAX = 256
#: Of the note of a pause.
NOTE_CHARS_MAX = 1024
#: Headers of a delivery that the engine writes itself; in Kafka letter case tells names apart.
RESERVED_HEADERS = frozenset({"tocsin", "content-type", "traceparent"})
RESERVED_HEADER_PREFIX = "ce_"


def check_actor(key: bytes | None, limits: Limits) -> str:
    """Return the actor that a record key names."""
    if not key:
        raise Refusal(
            Reason.INVALID, "actor", key, "the record key is the actor: send a non-empty key"
        )
    if len(key) > limits.actor_bytes_max:
        raise _over("actor", len(key), "actor_bytes_max", limits.actor_bytes_max)
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise Refusal(Reason.INVALID, "actor", key, "the record key must be UTF-8") from error


def check_name(name: str, limits: Limits) -> None:
    """Check a composed reminder name, `operation` or `operation:key`."""
    operation, colon, key = name.partition(":")
    if not operation:
        raise Refusal(
            Reason.INVALID, "reminder", name, "a name is operation or operation:key, neither empty"
        )
    if colon and not key:
        raise Refusal(
            Reason.INVALID,
            "reminder",
            name,
            "the key after the colon is empty: leave out the colon",
        )
    if len(name) > limits.name_chars_max:
        raise _over("reminder", len(name), "name_chars_max", limits.name_chars_max)


def check_arm(arm: Arm, limits: Limits) -> None:
    """Check everything in an Arm that does not depend on what is armed."""
    check_name(arm.reminder, limits)
    _check_when(arm, limits)
    if arm.if_absent and arm.if_version is not None:
        raise Refusal(
            Reason.INVALID,
            "if_version",
            arm.if_version,
            "if_absent and if_version exclude each other: give one",
        )
    if arm.if_absent and (arm.if_earlier or arm.if_changed):
        field = "if_earlier" if arm.if_earlier else "if_changed"
        raise Refusal(
            Reason.INVALID,
            field,
            True,  # noqa: FBT003  the field's value
            f"if_absent and {field} exclude each other: leave out if_absent",
        )
    if len(arm.payload) > limits.payload_bytes_max:
        raise _over("payload", len(arm.payload), "payload_bytes_max", limits.payload_bytes_max)
    if arm.content_type is not None and len(arm.content_type) > CONTENT_TYPE_CHARS_MAX:
        raise Refusal(
            Reason.LIMIT,
            "content_type",
            len(arm.content_type),
            f"a content type has at most {CONTENT_TYPE_CHARS_MAX} characters",
        )
    if arm.headers:
        check_headers(arm.headers, limits)
    if arm.to is not None and arm.to not in limits.targets:
        raise Refusal(
            Reason.TARGET_NOT_ALLOWED,
            "to",
            arm.to,
            "ask the operator to add this topic to the setting `targets`",
        )


def check_move(move: Move, limits: Limits) -> None:
    """Check everything in a Move that does not depend on what is armed."""
    check_name(move.reminder, limits)
    _check_when(move, limits)
    if move.at is None and move.after is None and move.every is None and move.cron is None:
        raise Refusal(Reason.INVALID, "at", None, "a move needs one of at, after, every, cron")


def check_cancel(cancel: Cancel, limits: Limits) -> None:
    """Check that a Cancel says what it means, once."""
    given = [
        field
        for field in ("reminder", "operation", "prefix", "all")
        if getattr(cancel, field) not in (None, False)
    ]
    if len(given) != 1:
        field = given[1] if given else "reminder"
        raise Refusal(
            Reason.INVALID,
            field,
            getattr(cancel, field),
            "a cancel needs one of reminder, operation, prefix, all",
        )
    if cancel.reminder is not None:
        check_name(cancel.reminder, limits)
    elif cancel.if_version is not None:
        raise Refusal(
            Reason.INVALID, "if_version", cancel.if_version, "if_version goes with an exact name"
        )
    if cancel.operation is not None:
        _check_operation(cancel.operation, limits)
    if cancel.prefix is not None:
        _check_prefix(cancel.prefix, limits)
    elif cancel.raw:
        raise Refusal(
            Reason.INVALID,
            "raw",
            True,  # noqa: FBT003  the field's value
            "raw goes with a prefix: leave it out, or give prefix",
        )


def _check_operation(operation: str, limits: Limits) -> None:
    if not operation or ":" in operation:
        raise Refusal(
            Reason.INVALID,
            "operation",
            operation,
            "an operation is what stands before the colon of a name: give it without key and "
            "colon, or use prefix",
        )
    if len(operation) > limits.name_chars_max:
        raise _over("operation", len(operation), "name_chars_max", limits.name_chars_max)


def _check_prefix(prefix: str, limits: Limits) -> None:
    if not prefix:
        raise Refusal(
            Reason.INVALID, "prefix", prefix, "an empty prefix means everything: say all instead"
        )
    if len(prefix) > limits.name_chars_max:
        raise _over("prefix", len(prefix), "name_chars_max", limits.name_chars_max)


def check_pause(command: Pause | Resume, limits: Limits) -> None:
    """Check that a Pause or Resume names exactly one thing."""
    word = type(command).__name__.lower()
    if command.all == (command.reminder is not None):
        raise Refusal(
            Reason.INVALID, "reminder", command.reminder, f"a {word} needs one of reminder, all"
        )
    if command.reminder is not None:
        check_name(command.reminder, limits)
    if command.note is not None and len(command.note) > NOTE_CHARS_MAX:
        raise Refusal(
            Reason.LIMIT,
            "note",
            len(command.note),
            f"a note has at most {NOTE_CHARS_MAX} characters: put the rest elsewhere",
        )


def check_room(armed: int, limits: Limits) -> None:
    """Check that an actor with `armed` reminders may have one more."""
    if armed >= limits.reminders_per_actor_max:
        raise _over(
            "reminders of this actor",
            armed + 1,
            "reminders_per_actor_max",
            limits.reminders_per_actor_max,
        )


def check_headers(headers: tuple[Header, ...], limits: Limits) -> None:
    """Check the names, number and size of the headers that a delivery is to carry."""
    if len(headers) > limits.headers_max:
        raise _over("headers", len(headers), "headers_max", limits.headers_max)
    size = 0
    for name, value in headers:
        size += len(_header_name(name)) + len(value or b"")
    if size > limits.headers_bytes_max:
        raise _over("headers", size, "headers_bytes_max", limits.headers_bytes_max)


def _header_name(name: str) -> bytes:
    if not name or "\0" in name:
        raise Refusal(
            Reason.INVALID, "headers", name, "a header name is not empty and has no NUL: rename it"
        )
    if name in RESERVED_HEADERS or name.startswith(RESERVED_HEADER_PREFIX):
        raise Refusal(
            Reason.INVALID,
            "headers",
            name,
            "the engine writes this header itself: leave it out; content_type is a field of the "
            "command, traceparent a header of its record",
        )
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            Reason.INVALID, "headers", name, "a header name must be UTF-8, without lone surrogates"
        ) from error


def _check_when(command: Arm | Move, limits: Limits) -> None:
    if command.at is not None:
        if command.after is not None:
            raise Refusal(Reason.INVALID, "after", command.after, "give at or after, not both")
        check_instant("at", command.at)
    elif command.after is not None:
        check_duration("after", command.after)
        if command.after and command.appended is None:
            raise Refusal(
                Reason.INVALID,
                "after",
                command.after,
                "a delay counts from the broker's append time: set "
                "message.timestamp.type=LogAppendTime on the commands topic, or give `at`",
            )
    if command.every is not None:
        check_duration("every", command.every)
        floor = max(limits.every_ms_min, 1)
        if command.every < floor:
            raise Refusal(
                Reason.INVALID,
                "every",
                command.every,
                f"the smallest period, every_ms_min, is {floor} ms: give a longer one",
            )


def check_instant(field: str, value: EpochMs) -> None:
    """Check that an instant is one that the engine can hold."""
    if not INSTANT_MS_MIN <= value <= INSTANT_MS_MAX:
        raise Refusal(Reason.INVALID, field, value, "an instant lies in the years 1 to 9999")


def check_duration(field: str, value: DurationMs) -> None:
    """Check that a length of time is one that the engine can hold."""
    if not 0 <= value <= DURATION_MS_MAX:
        raise Refusal(Reason.INVALID, field, value, "a duration is from 0 to 1,000 years")


def _over(field: str, value: int, setting: str, limit: int) -> Refusal:
    return Refusal(
        Reason.LIMIT,
        field,
        value,
        f"the limit {setting} is {limit}: stay within it, or ask the operator to raise it",
    )
