"""Values as JSON documents for `--json`, with the names of semantics section 11. Pure.

Instants and durations are milliseconds. A payload is `payload` where it is compact JSON that comes
out the same, byte for byte, else `payload_text`, else `payload_base64`: nothing is lost.
"""

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, assert_never

from tocsin.client import Answer, DeadLetter, Handle, LoggedEvent, Received
from tocsin.codec.events import Stamp
from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Destroyed,
    Ended,
    Event,
    Expired,
    Fired,
    Kept,
    Moved,
    NothingCancelled,
    NothingResumed,
    Paused,
    Refused,
    Resumed,
    Skipped,
    Undeliverable,
)
from tocsin.core.reminder import Options, Spec
from tocsin.core.schedule.values import Cron
from tocsin.core.values import Header

Document = dict[str, Any]

JSON_CONTENT_TYPE = "application/json"


def handle_document(handle: Handle) -> Document:
    """Return what is known once a command is in the log."""
    return {
        "actor": handle.actor,
        "reminder": handle.reminder,
        "partition": handle.partition,
        "version": handle.version,
    }


def answer_document(answer: Answer) -> Document:
    """Return the event that answered a command."""
    return {
        "event": event_name(answer.event),
        "actor": answer.handle.actor,
        **body_document(answer.event),
        "partition": answer.handle.partition,
        **_stamp(answer.stamp),
    }


def event_document(logged: LoggedEvent) -> Document:
    """Return an event of the audit log and where it lies."""
    return {
        "event": event_name(logged.event),
        **_key("actor", logged.actor, logged.key),
        **body_document(logged.event),
        "partition": logged.partition,
        "offset": logged.offset,
        **_stamp(logged.stamp),
    }


def delivery_document(delivery: Received) -> Document:
    """Return a delivery, its metadata as in the header `tocsin`, and its lateness."""
    metadata = {
        name: getattr(delivery, name)
        for name in _METADATA
        if getattr(delivery, name) is not None and (name != "missed" or delivery.missed)
    }
    return {
        **metadata,
        "lateness": delivery.lateness_ms,
        **payload_fields(delivery.payload, delivery.content_type),
        "content_type": delivery.content_type,
        "headers": header_fields(delivery.headers),
        "traceparent": delivery.traceparent,
        "topic": delivery.topic,
        "partition": delivery.partition,
        "offset": delivery.offset,
    }


def letter_document(letter: DeadLetter) -> Document:
    """Return a dead letter, its record as received."""
    return {
        "reason": letter.reason,
        "error": letter.error,
        "source": letter.source,
        "target": letter.target,
        **_key("key", _text(letter.key), letter.key),
        **({"value": None} if letter.value is None else _bytes_fields("value", letter.value)),
        "headers": header_fields(letter.headers),
        "appended": letter.appended,
        "partition": letter.partition,
        "offset": letter.offset,
    }


def event_name(event: Event) -> str:
    """Return the event's name in snake case: nothing_cancelled."""
    name = type(event).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def body_document(event: Event) -> Document:
    """Return what the event says, without its stamp."""
    match event:
        case Armed(spec=spec, previous=previous, replaced=replaced):
            return {
                **spec_document(spec),
                "previous": None if previous is None else _ended(previous),
                "wake": event.wake,
                "tz": event.tz,
                "replaced": replaced,
            }
        case Moved():
            return {
                "reminder": event.reminder,
                "version": event.version,
                "due": event.anchor,
                "every": event.every,
                **cron_document(event.cron),
                "tz": event.tz,
                "previous": _ended(event.previous),
                "wake": event.wake,
            }
        case Kept():
            return {
                "reminder": event.reminder,
                "version": event.version,
                "occurrence": event.occurrence,
                "due": event.due,
                "reason": event.reason,
            }
        case Cancelled():
            return {
                "reminder": event.reminder,
                "version": event.version,
                "occurrence": event.occurrence,
                "due": event.due,
            }
        case Skipped():
            return {**_slots(event), "reason": event.reason, **_next(event)}
        case Expired():
            return {**_slots(event), "ttl": event.ttl, **_next(event)}
        case Completed():
            return {
                "reminder": event.reminder,
                "version": event.version,
                "occurrences": event.occurrences,
                "reason": event.reason,
            }
        case Paused() | Resumed():
            return {
                "reminder": event.reminder,
                "version": event.version,
                "occurrence": event.occurrence,
                "due": event.due,
                "paused_since": event.since,
                "note": event.note,
            }
        case NothingResumed():
            return {"reminder": event.reminder}
        case NothingCancelled():
            return {
                "reminder": event.reminder,
                "operation": event.operation,
                "prefix": event.prefix,
                "raw": event.raw,
            }
        case Fired():
            return _fired(event)
        case Undeliverable():
            return {**_fired(event.fired), "to": event.target, "error": event.error}
        case Destroyed():
            return {"reminders": event.reminders}
        case Refused():
            return {
                "reason": event.reason,
                "command_name": event.command,
                "reminder": event.reminder,
                "field": event.field,
                "value": event.value,
                "way_out": event.way_out,
            }
        case CommandsLost():
            return {"first": event.first, "last": event.last}
        case _:
            assert_never(event)


def spec_document(spec: Spec) -> Document:
    """Return what is armed."""
    return {
        "reminder": spec.reminder,
        "version": spec.version,
        "due": spec.anchor,
        "every": spec.every,
        **cron_document(spec.cron),
        **payload_fields(spec.payload, spec.content_type),
        "content_type": spec.content_type,
        "headers": header_fields(spec.headers),
        "to": spec.to,
        "traceparent": spec.traceparent,
        **options_document(spec.options),
    }


def cron_document(cron: Cron | None) -> Document:
    """Return a schedule by a calendar; without one, nothing."""
    if cron is None:
        return {}
    return {
        "cron": cron.text,
        "zone": cron.zone,
        "gap": cron.gap,
        "overlap": cron.overlap,
        "exclude": list(cron.exclude),
    }


def options_document(options: Options | None) -> Document:
    """Return the options that were asked for; without any, nothing."""
    if options is None:
        return {}
    return {
        "missed": options.missed,
        "catch_up": options.catch_up,
        "ttl": options.ttl,
        "until": options.until,
        "occurrences": options.occurrences,
        "jitter": options.jitter,
    }


def payload_fields(payload: bytes, content_type: str | None) -> Document:
    """Return the one field that gives the payload without loss."""
    if content_type == JSON_CONTENT_TYPE:
        try:
            value = json.loads(payload)
            again = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            if again.encode() == payload:
                return {"payload": value}
        except (ValueError, RecursionError):
            pass  # whatever it claims to be, it is shown as it is
    return _bytes_fields("payload", payload)


def header_fields(headers: Iterable[Header]) -> list[Document]:
    """Return headers in their order; a name may come twice."""
    return [
        {"name": name, **({"value": None} if value is None else _bytes_fields("value", value))}
        for name, value in headers
    ]


def _bytes_fields(field: str, value: bytes) -> Document:
    text = _text(value)
    if text is not None:
        return {f"{field}_text": text}
    return {f"{field}_base64": b64encode(value).decode()}


def _key(field: str, text: str | None, raw: bytes | None) -> Document:
    if text is None and raw is not None:
        return {field: None, f"{field}_base64": b64encode(raw).decode()}
    return {field: text}


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _stamp(stamp: Stamp) -> Document:
    return {
        "engine_time": stamp.engine_time,
        "step": stamp.step,
        "command": stamp.command,
        "answer": stamp.answer,
    }


def _ended(ended: Ended) -> Document:
    return {"version": ended.version, "occurrence": ended.occurrence, "due": ended.due}


def _fired(fired: Fired) -> Document:
    return {
        "reminder": fired.reminder,
        "version": fired.version,
        "kind": fired.kind,
        "occurrence": fired.occurrence,
        "due": fired.due,
        "fired": fired.fired,
        "missed": fired.missed,
        "missed_due": fired.missed_due,
        "next_occurrence": fired.next_occurrence,
        "next_due": fired.next_due,
        "next_wake": fired.next_wake,
        "tz": fired.tz,
        "next_command": fired.next_command,
    }


def _slots(event: Skipped | Expired) -> Document:
    return {
        "reminder": event.reminder,
        "version": event.version,
        "first": event.first,
        "last": event.last,
        "first_due": event.first_due,
        "last_due": event.last_due,
    }


def _next(event: Skipped | Expired) -> Document:
    return {
        "next_occurrence": event.next_occurrence,
        "next_due": event.next_due,
        "next_wake": event.next_wake,
        "tz": event.tz,
    }


_METADATA = (
    "id",
    "actor",
    "reminder",
    "operation",
    "key",
    "kind",
    "due",
    "fired",
    "first_due",
    "period",
    "version",
    "occurrence",
    "missed",
)
