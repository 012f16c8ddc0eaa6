"""Events and their stamp: when, in which step, and because of which command they were decided."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, assert_never

from msgspec import Struct

from tocsin.codec.avro import (
    FALSE,
    NULL,
    SOME,
    TRUE,
    boolean,
    long,
    maybe_long,
    maybe_text,
    often,
    text,
)
from tocsin.codec.errors import Undecodable
from tocsin.codec.framing import head, read
from tocsin.codec.schemas import Record
from tocsin.codec.state import cron_of, maybe_cron, spec_body, spec_of
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Completion,
    Destroyed,
    Ended,
    Event,
    Expired,
    Fired,
    Kept,
    Kind,
    Moved,
    NothingCancelled,
    NothingResumed,
    PassedOver,
    Paused,
    Refused,
    Resumed,
    Skipped,
    Unchanged,
    Undeliverable,
)
from tocsin.core.values import EpochMs, Offset

#: Symbols of tocsin.events.Kind in the order of the schema, as they are written.
KINDS: Final[Mapping[Kind, bytes]] = {Kind.SCHEDULED: long(0), Kind.MANUAL: long(1)}


class Stamp(Struct, frozen=True):
    """What each event says of its decision."""

    engine_time: EpochMs
    step: int
    #: Offset of the command that caused it; None: the clock did.
    command: Offset | None
    #: It is the last event of that command.
    answer: bool


def encode_event(event: Event, stamp: Stamp) -> bytes:
    """Return the value of a record of the events topic."""
    stamped = _stamp(stamp)
    return b"".join((_head(type(event)), stamped, _body(event, stamped)))


def decode_event(data: bytes) -> tuple[Event, Stamp]:
    """Return what `encode_event` was given; Undecodable for anything else."""
    name, record = read(data)
    build = _BUILD.get(name)
    if build is None:
        raise Undecodable(f"a {name} is no event")
    stamp = _take_stamp(record)
    try:
        return build(record), stamp
    except ValueError as error:  # a word that this release does not know
        raise Undecodable(f"the body is no {name}: {error}") from error


@cache
def _head(event: type[Event]) -> bytes:
    return head(f"tocsin.events.{event.__name__}")


def _stamp(stamp: Stamp) -> bytes:
    command = stamp.command
    return b"".join(
        (
            often(stamp.engine_time),
            often(stamp.step),
            NULL if command is None else SOME + often(command),
            TRUE if stamp.answer else FALSE,
        )
    )


def _body(event: Event, stamped: bytes) -> bytes:
    match event:
        case Fired():
            return _fired(event)
        case Armed():
            previous = NULL if event.previous is None else SOME + _ended(event.previous)
            return b"".join(
                (
                    spec_body(event.spec),
                    previous,
                    maybe_long(event.wake),
                    maybe_text(event.tz),
                    boolean(event.replaced),
                )
            )
        case Moved():
            return b"".join(
                (
                    text(event.reminder),
                    long(event.version),
                    often(event.anchor),
                    maybe_long(event.every),
                    _ended(event.previous),
                    maybe_long(event.after),
                    maybe_long(event.at),
                    maybe_long(event.wake),
                    maybe_cron(event.cron),
                    maybe_text(event.tz),
                )
            )
        case Kept():
            return text(event.reminder) + _ended(event) + text(event.reason)
        case Cancelled():
            return text(event.reminder) + _ended(event)
        case Skipped():
            return _span(event) + text(event.reason) + _next(event)
        case Expired():
            return _span(event) + long(event.ttl) + _next(event)
        case Completed():
            return b"".join(
                (
                    text(event.reminder),
                    long(event.version),
                    long(event.occurrences),
                    text(event.reason),
                )
            )
        case Paused() | Resumed():
            return b"".join(
                (text(event.reminder), _ended(event), often(event.since), maybe_text(event.note))
            )
        case NothingResumed():
            return maybe_text(event.reminder)
        case NothingCancelled():
            return b"".join(
                (
                    maybe_text(event.reminder),
                    maybe_text(event.operation),
                    maybe_text(event.prefix),
                    boolean(event.raw),
                )
            )
        case Undeliverable():
            return b"".join((stamped, _fired(event.fired), text(event.target), text(event.error)))
        case Destroyed():
            return long(event.reminders)
        case Refused():
            return b"".join(
                (
                    text(event.reason),
                    maybe_text(event.command),
                    maybe_text(event.reminder),
                    text(event.field),
                    text(event.value),
                    text(event.way_out),
                )
            )
        case CommandsLost():
            return long(event.first) + long(event.last)
        case _:
            assert_never(event)


def _fired(fired: Fired) -> bytes:
    return b"".join(
        (
            text(fired.reminder),
            long(fired.version),
            KINDS[fired.kind],
            often(fired.occurrence),
            often(fired.due),
            often(fired.fired),
            often(fired.missed),
            NULL if fired.missed_due is None else maybe_long(fired.missed_due),
            NULL if fired.next_occurrence is None else maybe_long(fired.next_occurrence),
            NULL if fired.next_due is None else maybe_long(fired.next_due),
            often(fired.next_command),
            NULL if fired.next_wake is None else maybe_long(fired.next_wake),
            NULL if fired.tz is None else maybe_text(fired.tz),
        )
    )


def _ended(ended: Ended | Cancelled | Kept | Paused | Resumed) -> bytes:
    return long(ended.version) + often(ended.occurrence) + often(ended.due)


def _span(event: Skipped | Expired) -> bytes:
    return b"".join(
        (
            text(event.reminder),
            long(event.version),
            long(event.first),
            long(event.last),
            long(event.first_due),
            long(event.last_due),
        )
    )


def _next(event: Skipped | Expired) -> bytes:
    return b"".join(
        (
            maybe_long(event.next_occurrence),
            maybe_long(event.next_due),
            maybe_long(event.next_wake),
            maybe_text(event.tz),
        )
    )


def _take_stamp(record: Record) -> Stamp:
    return Stamp(
        record.pop("engine_time"), record.pop("step"), record.pop("command"), record.pop("answer")
    )


def _armed(record: Record) -> Armed:
    previous = record["previous"]
    return Armed(
        spec=spec_of(record["spec"]),
        previous=None if previous is None else Ended(**previous),
        wake=record["wake"],
        tz=record["tz"],
        replaced=record["replaced"],
    )


def _moved(record: Record) -> Moved:
    cron, previous = cron_of(record["cron"]), Ended(**record["previous"])
    return Moved(**{**record, "cron": cron, "previous": previous})


def _kept(record: Record) -> Kept:
    return Kept(**{**record, "reason": Unchanged(record["reason"])})


def _fired_of(record: Record) -> Fired:
    return Fired(**{**record, "kind": Kind(record["kind"])})


def _undeliverable(record: Record) -> Undeliverable:
    _take_stamp(record["fired"])
    return Undeliverable(**{**record, "fired": _fired_of(record["fired"])})


def _refused(record: Record) -> Refused:
    # In the record `command` is the offset of the stamp.
    name = record.pop("command_name")
    return Refused(**{**record, "reason": Reason(record["reason"]), "command": name})


_BUILD: Final[Mapping[str, Callable[[Any], Event]]] = {
    "tocsin.events.Armed": _armed,
    "tocsin.events.Moved": _moved,
    "tocsin.events.Kept": _kept,
    "tocsin.events.Cancelled": lambda record: Cancelled(**record),
    "tocsin.events.Skipped": lambda record: Skipped(
        **{**record, "reason": PassedOver(record["reason"])}
    ),
    "tocsin.events.Expired": lambda record: Expired(**record),
    "tocsin.events.Completed": lambda record: Completed(
        **{**record, "reason": Completion(record["reason"])}
    ),
    "tocsin.events.Paused": lambda record: Paused(**record),
    "tocsin.events.Resumed": lambda record: Resumed(**record),
    "tocsin.events.NothingResumed": lambda record: NothingResumed(**record),
    "tocsin.events.NothingCancelled": lambda record: NothingCancelled(**record),
    "tocsin.events.Fired": _fired_of,
    "tocsin.events.Undeliverable": _undeliverable,
    "tocsin.events.Destroyed": lambda record: Destroyed(**record),
    "tocsin.events.Refused": _refused,
    "tocsin.events.CommandsLost": lambda record: CommandsLost(**record),
}
