"""Arguments as services write them, as commands. Pure; raises Refusal naming the argument.

Never early: what is finer than a millisecond is rounded up.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypedDict

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
from tocsin.core.errors import Reason, Refusal
from tocsin.core.limits import Limits
from tocsin.core.rules import check_actor
from tocsin.core.rules_of_schedules import read_every, read_period
from tocsin.core.time_text import TimeTextError, parse_duration, parse_instant
from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version

#: A point in time: with a zone, ISO 8601 with an offset, or milliseconds since the epoch.
Instant = datetime | str | int
#: A length of time: `36h`, `P1DT12H`, or milliseconds.
Duration = timedelta | str | int
Headers = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]]

JSON_CONTENT_TYPE = "application/json"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
#: The log gives a command its place; what is sent has none yet.
_NOWHERE = Offset(-1)
_INT64_MAX = 2**63 - 1
#: The operator may allow longer keys; what no client could send is refused here.
_SENDABLE = Limits(actor_bytes_max=1024 * 1024)


class MoveOptions(TypedDict, total=False):
    """When, and under which condition."""

    #: Due at this instant. A past one means now.
    at: Instant | None
    #: Due this long after the broker took the command.
    after: Duration | None
    #: Due again and again, this far apart.
    every: Duration | None
    #: Due by the calendar: 5 fields, 6 with seconds first, or a nickname such as `@daily`.
    cron: str | None
    #: IANA zone of the cron, else UTC.
    zone: str | None
    #: Local times that do not exist: `after` (the default) or `skip`.
    gap: str | None
    #: Local times that come twice: `first` (the default), `second` or `both`.
    overlap: str | None
    #: Local dates without slots.
    exclude: Iterable[str | date] | None
    #: Only while this version is armed.
    if_version: int | None


class ArmOptions(MoveOptions, total=False):
    """All that a reminder can have."""

    #: Last instant of the schedule.
    until: Instant | None
    #: The schedule ends after so many.
    occurrences: int | None
    #: Longest delay of a fire after its due, the same for the same delivery.
    jitter: Duration | None
    #: What goes out of slots that were missed: `latest` (the default), `all` or `skip`.
    missed: str | None
    #: How far back that policy looks.
    catch_up: Duration | None
    #: What is later than that is not fired.
    ttl: Duration | None
    #: Bytes as they are, text as UTF-8, all else as compact JSON with its content type.
    #: None is an empty payload.
    payload: Any
    content_type: str | None
    headers: Headers | None
    #: Topic of its deliveries, one that the operator allows.
    to: str | None
    #: Only while nothing is armed under the name.
    if_absent: bool
    #: Only if the new due is earlier than the armed one: one alarm for a whole queue.
    if_earlier: bool
    #: Only if schedule, payload or options differ from what is armed: for start-up code.
    if_changed: bool
    #: W3C trace context that goes along with each delivery.
    traceparent: str | None


def arm(reminder: str, options: ArmOptions) -> Arm:
    """Return the command that arms."""
    payload, own_type = payload_of(options.get("payload"))
    content_type = options.get("content_type")
    every, occurrences = _interval(options.get("every"), options.get("occurrences"))
    return Arm(
        offset=_NOWHERE,
        appended=None,
        reminder=text_of("reminder", reminder),
        at=_optional_instant("at", options.get("at")),
        after=_optional_duration("after", options.get("after")),
        every=every,
        **_cron(options),
        payload=payload,
        content_type=own_type if content_type is None else text_of("content_type", content_type),
        headers=headers_of(options.get("headers")),
        to=_optional_text("to", options.get("to")),
        if_absent=bool(options.get("if_absent", False)),
        if_version=_version(options.get("if_version")),
        if_earlier=bool(options.get("if_earlier", False)),
        if_changed=bool(options.get("if_changed", False)),
        until=_optional_instant("until", options.get("until")),
        occurrences=occurrences,
        jitter=_optional_duration("jitter", options.get("jitter")),
        missed=_optional_text("missed", options.get("missed")),
        catch_up=_optional_duration("catch_up", options.get("catch_up")),
        ttl=_optional_duration("ttl", options.get("ttl")),
        traceparent=_optional_text("traceparent", options.get("traceparent")),
    )


def move(reminder: str, options: MoveOptions) -> Move:
    """Return the command that moves."""
    every = options.get("every")
    return Move(
        offset=_NOWHERE,
        appended=None,
        reminder=text_of("reminder", reminder),
        at=_optional_instant("at", options.get("at")),
        after=_optional_duration("after", options.get("after")),
        every=read_period(every) if isinstance(every, str) else _optional_duration("every", every),
        **_cron(options),
        if_version=_version(options.get("if_version")),
    )


def cancel(
    reminder: str | None,
    *,
    operation: str | None = None,
    prefix: str | None = None,
    raw: bool = False,
    all_of_actor: bool = False,
    if_version: int | None = None,
) -> Cancel:
    """Return the command that cancels."""
    return Cancel(
        offset=_NOWHERE,
        appended=None,
        reminder=_optional_text("reminder", reminder),
        operation=_optional_text("operation", operation),
        prefix=_optional_text("prefix", prefix),
        raw=raw,
        all=all_of_actor,
        if_version=_version(if_version),
    )


def fire(reminder: str) -> Fire:
    """Return the command that fires by hand."""
    return Fire(offset=_NOWHERE, appended=None, reminder=text_of("reminder", reminder))


def pause(reminder: str | None, *, all_of_actor: bool = False, note: str | None = None) -> Pause:
    """Return the command that pauses."""
    return Pause(
        offset=_NOWHERE,
        appended=None,
        reminder=_optional_text("reminder", reminder),
        all=all_of_actor,
        note=_optional_text("note", note),
    )


def resume(reminder: str | None, *, all_of_actor: bool = False, note: str | None = None) -> Resume:
    """Return the command that resumes."""
    return Resume(
        offset=_NOWHERE,
        appended=None,
        reminder=_optional_text("reminder", reminder),
        all=all_of_actor,
        note=_optional_text("note", note),
    )


def destroy() -> Destroy:
    """Return the command that ends an actor."""
    return Destroy(offset=_NOWHERE, appended=None)


def key_of(actor: object) -> bytes:
    """Return the record key that names the actor."""
    key = text_of("actor", actor).encode()
    check_actor(key, _SENDABLE)
    return key


def trace_of(command: ServiceCommand) -> str | None:
    """Return the trace context that travels beside the command."""
    return command.traceparent if isinstance(command, Arm) else None


def instant_of(field: str, value: Instant) -> EpochMs:
    """Return milliseconds since the epoch."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise Refusal(
                Reason.INVALID,
                field,
                value.isoformat(),
                "a datetime without a zone is not an instant: give it one, such as tzinfo=UTC",
            )
        return EpochMs(_milliseconds(value - _EPOCH))
    try:
        return EpochMs(parse_instant(value))
    except TimeTextError as error:
        raise Refusal(Reason.INVALID, field, value, str(error)) from error


def duration_of(field: str, value: Duration) -> DurationMs:
    """Return milliseconds, 0 to 1,000 years."""
    try:
        ms = _milliseconds(value) if isinstance(value, timedelta) else value
        return DurationMs(parse_duration(ms))
    except TimeTextError as error:
        raise Refusal(Reason.INVALID, field, value, str(error)) from error


def payload_of(value: object) -> tuple[bytes, str | None]:
    """Return the bytes that are delivered, and the content type where the value tells it."""
    match value:
        case None:
            return b"", None
        case bytes() | bytearray() | memoryview():
            return bytes(value), None
        case str():
            return text_of("payload", value).encode(), None
        case _:
            return _json_of(value), JSON_CONTENT_TYPE


def _json_of(value: object) -> bytes:
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Refusal(
            Reason.INVALID,
            "payload",
            value,
            f"give bytes, text, or a value that JSON can hold ({error})",
        ) from error


def headers_of(given: Headers | None) -> tuple[Header, ...]:
    """Return the headers of a delivery, in their order."""
    if given is None:
        return ()
    pairs = given.items() if isinstance(given, Mapping) else given
    return tuple((text_of("headers", name), _header_value(name, value)) for name, value in pairs)


def text_of(field: str, value: object) -> str:
    """Return `value`, which must be text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise Refusal(Reason.INVALID, field, value, "give text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            Reason.INVALID, field, value, "text must be UTF-8, without lone surrogates"
        ) from error
    return value


def _header_value(name: str, value: str | bytes | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return text_of(f"headers[{name!r}]", value).encode()


def _interval(every: Duration | None, occurrences: int | None) -> tuple[DurationMs | None, Any]:
    """Return period and number of occurrences; `R5/PT10S` tells both."""
    count = _count("occurrences", occurrences)
    if not isinstance(every, str):
        return _optional_duration("every", every), count
    period, repeated = read_every(every)
    if repeated is not None and count is not None:
        raise Refusal(
            Reason.INVALID, "occurrences", count, f"every = {every!r} tells it as well: give one"
        )
    return period, count if repeated is None else repeated


def _cron(options: MoveOptions) -> dict[str, Any]:
    exclude = options.get("exclude") or ()
    days = [exclude] if isinstance(exclude, str) else exclude
    return {
        "cron": _optional_text("cron", options.get("cron")),
        "zone": _optional_text("zone", options.get("zone")),
        "gap": _optional_text("gap", options.get("gap")),
        "overlap": _optional_text("overlap", options.get("overlap")),
        "exclude": tuple(
            day.isoformat() if isinstance(day, date) else text_of("exclude", day) for day in days
        ),
    }


def _optional_instant(field: str, value: Instant | None) -> EpochMs | None:
    return None if value is None else instant_of(field, value)


def _optional_duration(field: str, value: Duration | None) -> DurationMs | None:
    return None if value is None else duration_of(field, value)


def _optional_text(field: str, value: str | None) -> str | None:
    return None if value is None else text_of(field, value)


def _version(value: object) -> Version | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _INT64_MAX:
        raise Refusal(
            Reason.INVALID, "if_version", value, "give the version that an arm or move returned"
        )
    return Version(value)


def _count(field: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _INT64_MAX:
        raise Refusal(Reason.INVALID, field, value, "give a whole number, 1 or more")
    return value


def _milliseconds(length: timedelta) -> int:
    return -(-length // _MILLISECOND)
