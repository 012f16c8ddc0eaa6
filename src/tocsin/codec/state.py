"""Records of the state topic: an armed reminder, its moving part, the step record.

A fire of a recurring reminder writes its moving part (Progress) alone, so that the payload is not
written to the log again; Progress counts only beside a spec of the same version.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from tocsin.codec.avro import (
    EMPTY,
    NULL,
    SOME,
    after_long,
    blob,
    boolean,
    double,
    header_array,
    long,
    maybe_long,
    maybe_text,
    often,
    read_blob,
    read_boolean,
    read_double,
    read_header_array,
    read_instant,
    read_long,
    read_maybe_long,
    read_maybe_text,
    read_some,
    read_text,
    read_text_array,
    text,
    text_array,
)
from tocsin.codec.errors import Undecodable
from tocsin.codec.framing import HEAD_SIZE, MAGIC, head, read
from tocsin.codec.keys import DUE_KEY_SIZE, NO_WAKE, due_key
from tocsin.codec.schemas import Record
from tocsin.core.reminder import (
    Ack,
    Acked,
    Missed,
    Options,
    PauseInForce,
    Pending,
    Reminder,
    Spec,
    next_due,
)
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version

REMINDER: Final = "tocsin.state.Reminder"
PROGRESS: Final = "tocsin.state.Progress"
STEP: Final = "tocsin.state.Step"

_DUE_KEY_END = HEAD_SIZE + DUE_KEY_SIZE
#: Neither pause nor wake nor acknowledgement.
_AWAKE = NULL * 3
_AWAKE_SIZE = len(_AWAKE)
#: How a record ends whose spec has no content type, headers, target, trace context, past
#: instant, options, cron: the most do.
_NOTHING_ELSE = NULL + EMPTY + NULL * 5


class StepRecord(Struct, frozen=True, kw_only=True):
    """How far the engine of a partition has come; ends each transaction (design: step record)."""

    step: int
    next_command: Offset
    engine_time: EpochMs
    #: Topic ids: another one means that the topic was made anew.
    commands_id: str
    events_id: str
    state_id: str


def encode_spec(reminder: Reminder, step: int) -> bytes:
    """Return the whole record of an armed reminder, written when its spec is new."""
    return b"".join(
        (
            head(REMINDER),
            _due_key(reminder),
            often(step),
            often(reminder.occurrence),
            often(reminder.due),
            _rest(reminder),
            spec_body(reminder.spec),
        )
    )


def encode_progress(reminder: Reminder, step: int) -> bytes:
    """Return the record of the moving part, written when the spec stays."""
    return b"".join(
        (
            head(PROGRESS),
            _due_key(reminder),
            often(step),
            long(reminder.spec.version),
            often(reminder.occurrence),
            often(reminder.due),
            _rest(reminder),
        )
    )


def due_key_of(value: bytes) -> bytes:
    """Return the due key of either record, without decoding it."""
    key = value[HEAD_SIZE:_DUE_KEY_END]
    if value[:2] != MAGIC or len(key) != DUE_KEY_SIZE:
        raise Undecodable("it is no state record")
    return key


def decode_reminder(spec: bytes, progress: bytes | None) -> Reminder:
    """Return the reminder that the two records make."""
    armed = _decode_spec(spec)
    if progress is not None:
        version, occurrence, due, rest = _decode_progress(progress)
        if version == armed.spec.version:
            if rest is _NOTHING:
                return Reminder(armed.spec, occurrence, due)
            return Reminder(armed.spec, occurrence, due, rest.paused, rest.wake, rest.acked)
    return armed


def step_of(value: bytes) -> int:
    """Return the step that wrote any state record."""
    name, record = read(value)
    if not name.startswith("tocsin.state.") or "step" not in record:
        raise Undecodable(f"a {name} is no state record")
    step: int = record["step"]
    return step


def encode_step(step: StepRecord) -> bytes:
    """Return the step record."""
    return b"".join(
        (
            head(STEP),
            often(step.step),
            often(step.next_command),
            often(step.engine_time),
            text(step.commands_id),
            text(step.events_id),
            text(step.state_id),
        )
    )


def decode_step(value: bytes) -> StepRecord:
    """Return the step record that `value` is."""
    return StepRecord(**_read_as(STEP, value))


def spec_body(spec: Spec) -> bytes:
    """Return the body of a tocsin.state.Spec, which the Armed event holds as well.

    The last one is remembered: what is armed is written to both, one right after the other.
    """
    global _last_body  # noqa: PLW0603  a cache of one, a tuple: safe between threads
    last, body = _last_body
    if last is not spec:
        body = _spec_body(spec)
        _last_body = (spec, body)
    return body


_last_body: tuple[Spec | None, bytes] = (None, b"")


def _spec_body(spec: Spec) -> bytes:
    return b"".join(
        (
            text(spec.reminder),
            long(spec.version),
            often(spec.anchor),
            maybe_long(spec.every),
            NULL if spec.after is None else maybe_long(spec.after),
            blob(spec.payload),
            _others(spec),
        )
    )


def _others(spec: Spec) -> bytes:
    """Return what follows the payload; most specs have nothing of it."""
    if (
        spec.content_type is None
        and not spec.headers
        and spec.to is None
        and spec.traceparent is None
        and spec.at is None
        and spec.options is None
        and spec.cron is None
    ):
        return _NOTHING_ELSE
    return b"".join(
        (
            maybe_text(spec.content_type),
            header_array(spec.headers),
            maybe_text(spec.to),
            maybe_text(spec.traceparent),
            maybe_long(spec.at),
            NULL if spec.options is None else SOME + _options(spec.options),
            maybe_cron(spec.cron),
        )
    )


def spec_of(record: Record) -> Spec:
    """Return the Spec that a tocsin.state.Spec is, as fastavro returns it."""
    options = record["options"]
    if options is not None:
        ack = options.pop("ack")
        options["ack"] = None if ack is None else Ack(**ack)
        options = _known(options.pop("missed"), **options)
    others = {
        "headers": headers_of(record["headers"]),
        "options": options,
        "cron": cron_of(record["cron"]),
    }
    return Spec(**{**record, **others})


def maybe_cron(cron: Cron | None) -> bytes:
    """Return a ["null", "tocsin.state.Cron"]."""
    if cron is None:
        return NULL
    return b"".join(
        (
            SOME,
            text(cron.text),
            text(cron.zone),
            text(cron.gap),
            text(cron.overlap),
            text_array(cron.exclude),
        )
    )


def cron_of(record: Record | None) -> Cron | None:
    """Return the Cron that a tocsin.state.Cron is, as fastavro returns it."""
    if record is None:
        return None
    return _known_cron(
        record["text"], record["zone"], record["gap"], record["overlap"], record["exclude"]
    )


def _read_cron(value: bytes, at: int) -> tuple[Cron | None, int]:
    if not read_some(value, at):
        return None, at + 1
    expression, at = read_text(value, at + 1)
    zone, at = read_text(value, at)
    gap, at = read_text(value, at)
    overlap, at = read_text(value, at)
    exclude, at = read_text_array(value, at)
    return _known_cron(expression, zone, gap, overlap, exclude), at


def _known_cron(expression: str, zone: str, gap: str, overlap: str, exclude: Sequence[str]) -> Cron:
    try:
        return Cron(
            text=expression,
            zone=zone,
            gap=Gap(gap),
            overlap=Overlap(overlap),
            exclude=tuple(exclude),
        )
    except ValueError as error:  # a word that this release does not know
        raise Undecodable(f"the cron cannot be read: {error}") from error


def _options(options: Options) -> bytes:
    """Return a tocsin.state.Options."""
    return b"".join(
        (
            text(options.missed),
            maybe_long(options.catch_up),
            maybe_long(options.ttl),
            maybe_long(options.until),
            maybe_long(options.occurrences),
            long(options.jitter),
            NULL if options.ack is None else SOME + _ack(options.ack),
        )
    )


def _ack(ack: Ack) -> bytes:
    """Return a tocsin.state.Ack."""
    return b"".join(
        (
            long(ack.timeout),
            long(ack.initial),
            double(ack.factor),
            long(ack.ceiling),
            maybe_long(ack.attempts),
            maybe_long(ack.pause_after_failures),
        )
    )


def _read_ack(value: bytes, at: int) -> tuple[Ack | None, int]:
    if not read_some(value, at):
        return None, at + 1
    timeout, at = read_long(value, at + 1)
    initial, at = read_long(value, at)
    factor, at = read_double(value, at)
    ceiling, at = read_long(value, at)
    attempts, at = read_maybe_long(value, at)
    pause_after, at = read_maybe_long(value, at)
    ack = Ack(
        timeout=DurationMs(timeout),
        initial=DurationMs(initial),
        factor=factor,
        ceiling=DurationMs(ceiling),
        attempts=attempts,
        pause_after_failures=pause_after,
    )
    return ack, at


def _read_options(value: bytes, at: int) -> tuple[Options | None, int]:
    if not read_some(value, at):
        return None, at + 1
    missed, at = read_text(value, at + 1)
    catch_up, at = read_maybe_long(value, at)
    ttl, at = read_maybe_long(value, at)
    until, at = read_maybe_long(value, at)
    occurrences, at = read_maybe_long(value, at)
    jitter, at = read_long(value, at)
    ack, at = _read_ack(value, at)
    options = _known(
        missed,
        catch_up=catch_up,
        ttl=ttl,
        until=until,
        occurrences=occurrences,
        jitter=jitter,
        ack=ack,
    )
    return options, at


def _known(missed: str, **others: Any) -> Options:  # noqa: ANN401  fields as they were read
    try:
        return Options(missed=Missed(missed), **others)
    except ValueError as error:  # a word that this release does not know
        raise Undecodable(f"the options cannot be read: {error}") from error


def headers_of(records: list[Record]) -> tuple[Header, ...]:
    """Return the headers that an array of tocsin.commands.Header is, as fastavro returns it."""
    return tuple((header["name"], header["value"]) for header in records)


def _due_key(reminder: Reminder) -> bytes:
    wake = next_due(reminder)
    return due_key(NO_WAKE if wake is None else wake, reminder.spec.version)


def _rest(reminder: Reminder) -> bytes:
    """Return pause, wake and acknowledgement, which few reminders have."""
    paused, wake, acked = reminder.paused, reminder.wake, reminder.acked
    if paused is None and acked is None:
        return _AWAKE if wake is None else NULL + maybe_long(wake) + NULL
    return b"".join(
        (
            NULL if paused is None else SOME + often(paused.since) + maybe_text(paused.note),
            maybe_long(wake),
            NULL if acked is None else SOME + _acked(acked),
        )
    )


def _acked(acked: Acked) -> bytes:
    """Return a tocsin.state.Acked."""
    pending = acked.pending
    if pending is None:
        return NULL + long(acked.failures)
    return b"".join(
        (
            SOME,
            long(pending.occurrence),
            often(pending.due),
            long(pending.attempt),
            often(pending.fired),
            maybe_long(pending.retry),
            boolean(pending.last),
            long(acked.failures),
        )
    )


class _Rest(Struct, frozen=True):
    """What few reminders have of a moving part."""

    paused: PauseInForce | None = None
    wake: EpochMs | None = None
    acked: Acked | None = None


_NOTHING = _Rest()


def _read_rest(value: bytes, at: int) -> tuple[_Rest, int]:
    paused: PauseInForce | None = None
    acked: Acked | None = None
    if read_some(value, at):
        since, at = read_instant(value, at + 1)
        note, at = read_maybe_text(value, at)
        paused = PauseInForce(EpochMs(since), note)
    else:
        at += 1
    wake, at = read_maybe_long(value, at)
    if read_some(value, at):
        acked, at = _read_acked(value, at + 1)
    else:
        at += 1
    return _Rest(paused, _instant(wake), acked), at


def _read_acked(value: bytes, at: int) -> tuple[Acked, int]:
    pending: Pending | None = None
    if read_some(value, at):
        occurrence, at = read_long(value, at + 1)
        due, at = read_instant(value, at)
        attempt, at = read_long(value, at)
        fired, at = read_instant(value, at)
        retry, at = read_maybe_long(value, at)
        last, at = read_boolean(value, at)
        pending = Pending(occurrence, EpochMs(due), attempt, EpochMs(fired), _instant(retry), last)
    else:
        at += 1
    failures, at = read_long(value, at)
    return Acked(pending, failures), at


def _rest_of(record: Record) -> _Rest:
    """Return what fastavro read of it."""
    acked = record["acked"]
    if acked is not None:
        pending = acked["pending"]
        acked = Acked(None if pending is None else Pending(**pending), acked["failures"])
    return _Rest(_pause_of(record["paused"]), record["wake"], acked)


def _pause_of(record: Record | None) -> PauseInForce | None:
    return None if record is None else PauseInForce(**record)


def _decode_spec(value: bytes) -> Reminder:
    if value[:HEAD_SIZE] != head(REMINDER):
        record = _read_as(REMINDER, value)
        rest = _rest_of(record)
        return Reminder(
            spec_of(record["spec"]),
            record["occurrence"],
            record["due"],
            rest.paused,
            rest.wake,
            rest.acked,
        )
    try:
        at = after_long(value, _DUE_KEY_END)  # the step
        occurrence, at = read_long(value, at)
        due, at = read_instant(value, at)
        if value[at : at + _AWAKE_SIZE] == _AWAKE:
            rest = _NOTHING
            at += _AWAKE_SIZE
        else:
            rest, at = _read_rest(value, at)
        spec, at = _read_spec(value, at)
    except (IndexError, UnicodeDecodeError) as error:
        raise Undecodable(f"the body is no {REMINDER}: {error}") from error
    if at != len(value):
        raise Undecodable(f"the body of a {REMINDER} ends at {at}, not at {len(value)}")
    if rest is _NOTHING:
        return Reminder(spec, occurrence, EpochMs(due))
    return Reminder(spec, occurrence, EpochMs(due), rest.paused, rest.wake, rest.acked)


def _read_spec(value: bytes, at: int) -> tuple[Spec, int]:
    name, at = read_text(value, at)
    version, at = read_long(value, at)
    anchor, at = read_instant(value, at)
    every, at = read_maybe_long(value, at)
    after: int | None = None
    if value[at] == 0:  # spelled out, as most have none: 0.05 µs instead of 0.15
        at += 1
    else:
        after, at = read_maybe_long(value, at)
    payload, at = read_blob(value, at)
    content_type = target = traceparent = asked = None
    options: Options | None = None
    cron: Cron | None = None
    armed_headers: tuple[Header, ...] = ()
    if value[at:] == _NOTHING_ELSE:
        at += len(_NOTHING_ELSE)
    else:
        content_type, at = read_maybe_text(value, at)
        armed_headers, at = read_header_array(value, at)
        target, at = read_maybe_text(value, at)
        traceparent, at = read_maybe_text(value, at)
        asked, at = read_maybe_long(value, at)
        options, at = _read_options(value, at)
        cron, at = _read_cron(value, at)
    spec = Spec(
        reminder=name,
        version=Version(version),
        anchor=EpochMs(anchor),
        every=None if every is None else DurationMs(every),
        payload=payload,
        content_type=content_type,
        headers=armed_headers,
        to=target,
        traceparent=traceparent,
        after=None if after is None else DurationMs(after),
        at=None if asked is None else EpochMs(asked),
        options=options,
        cron=cron,
    )
    return spec, at


def _decode_progress(value: bytes) -> tuple[int, int, EpochMs, _Rest]:
    """Return version, occurrence, due, and what few reminders have."""
    if value[:HEAD_SIZE] != head(PROGRESS):
        record = _read_as(PROGRESS, value)
        return record["version"], record["occurrence"], record["due"], _rest_of(record)
    try:
        at = after_long(value, _DUE_KEY_END)  # the step
        version, at = read_long(value, at)
        occurrence, at = read_long(value, at)
        due, at = read_instant(value, at)
        if value[at:] == _AWAKE:
            return version, occurrence, EpochMs(due), _NOTHING
        rest, at = _read_rest(value, at)
    except (IndexError, UnicodeDecodeError) as error:
        raise Undecodable(f"the body is no {PROGRESS}: {error}") from error
    if at != len(value):
        raise Undecodable(f"the body of a {PROGRESS} ends at {at}, not at {len(value)}")
    return version, occurrence, EpochMs(due), rest


def _instant(value: int | None) -> EpochMs | None:
    return None if value is None else EpochMs(value)


def _read_as(expected: str, value: bytes) -> Record:
    name, record = read(value)
    if name != expected:
        raise Undecodable(f"a {name} is no {expected}")
    return record
