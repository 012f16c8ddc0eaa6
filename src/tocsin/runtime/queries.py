"""Questions about what one partition has armed, answered from its committed store.

Any thread may ask; every answer is bounded. StoreClosed: the partition went to another worker.
Between two looks a step may be committed; what no longer fits together is left out.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from tocsin.codec.keys import PROGRESS, SPEC, actor_prefix, due_key, parse_key, record_key
from tocsin.codec.state import decode_reminder
from tocsin.core.reminder import Options, Reminder
from tocsin.core.schedule.values import Cron
from tocsin.core.values import EpochMs
from tocsin.ports import KeyValues
from tocsin.runtime.index import DUE, DUE_END, RECORD, read_checkpoint

#: Most that one question returns.
LIMIT_MAX = 1_000
#: How far a backlog is counted: a gauge that stands at it means "at least".
BACKLOG_MAX = 10_000


class Listed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One armed reminder, without its payload. Names as on the wire; instants are epoch ms."""

    actor: str
    reminder: str
    version: int
    due: int
    occurrence: int
    every: int | None = None
    cron: Cron | None = None
    #: Set while it is paused; `due` is that of the open slot, which waits.
    paused_since: int | None = None
    note: str | None = None
    content_type: str | None = None
    to: str | None = None


class Detail(Listed, frozen=True, kw_only=True, omit_defaults=True):
    """One armed reminder with all that was asked."""

    #: Due of occurrence 0.
    anchor: int
    #: When the open occurrence goes out, where jitter delays it.
    wake: int | None = None
    options: Options | None = None
    payload_base64: bytes
    #: Values are base64, or null.
    headers: tuple[tuple[str, bytes | None], ...] = ()
    traceparent: str | None = None


class Backlog(Struct, frozen=True):
    """What is due and has not fired."""

    count: int
    #: Due of the oldest; None without any.
    oldest: EpochMs | None


def reminders_of(store: KeyValues, actor: str, after: str | None, limit: int) -> list[Listed]:
    """Return up to `limit` reminders of `actor` in the order of their names, from `after` on."""
    prefix = RECORD + actor_prefix(actor) + SPEC
    start = prefix if after is None else RECORD + record_key(actor, SPEC, after) + b"\0"
    entries = store.scan(start, prefix + b"\xff", _bounded(limit))
    names = [parse_key(key[1:])[2] for key, _ in entries]
    return [
        _listed(actor, reminder)
        for reminder in _with_progress(
            store, ((actor, name, spec) for name, (_, spec) in zip(names, entries, strict=True))
        )
    ]


def reminder(store: KeyValues, actor: str, name: str) -> Detail | None:
    """Return the armed reminder of that exact name."""
    spec = store.get(RECORD + record_key(actor, SPEC, name))
    if spec is None:
        return None
    found = decode_reminder(spec, store.get(RECORD + record_key(actor, PROGRESS, name)))
    return Detail(
        **_common(actor, found),
        anchor=found.spec.anchor,
        wake=found.wake,
        options=found.spec.options,
        payload_base64=found.spec.payload,
        headers=found.spec.headers,
        traceparent=found.spec.traceparent,
    )


def upcoming(store: KeyValues, limit: int) -> list[Listed]:
    """Return the first `limit` reminders in the order in which they will fire."""
    entries = store.scan(_cursor(store), DUE_END, _bounded(limit))
    specs = store.get_many([RECORD + key for _, key in entries]) if entries else []
    armed = []
    for (_, key), spec in zip(entries, specs, strict=True):
        if spec is not None:
            actor, _, name = parse_key(key)
            armed.append((actor, name, spec))
    found = _with_progress(store, armed)
    listed = [_listed(actor, r) for (actor, _, _), r in zip(armed, found, strict=True)]
    # A fire between two looks gave some of them a later due.
    return sorted(listed, key=lambda one: (one.due, one.version))


def backlog(store: KeyValues, now: EpochMs) -> Backlog:
    """Return how many reminders are due, counted up to BACKLOG_MAX."""
    entries = store.scan(_cursor(store), DUE + due_key(now + 1, 0), BACKLOG_MAX)
    oldest = EpochMs(int.from_bytes(entries[0][0][1:9], "big")) if entries else None
    return Backlog(len(entries), oldest)


def armed(store: KeyValues) -> int:
    """Return how many reminders are armed."""
    checkpoint = read_checkpoint(store)
    return 0 if checkpoint is None else checkpoint.armed


def next_wake(store: KeyValues) -> EpochMs | None:
    """Return when the next reminder is due; None with nothing armed."""
    first = store.scan(_cursor(store), DUE_END, 1)
    return EpochMs(int.from_bytes(first[0][0][1:9], "big")) if first else None


def _cursor(store: KeyValues) -> bytes:
    checkpoint = read_checkpoint(store)
    return DUE if checkpoint is None else checkpoint.cursor


def _bounded(limit: int) -> int:
    return max(1, min(limit, LIMIT_MAX))


def _with_progress(store: KeyValues, specs: Iterable[tuple[str, str, bytes]]) -> list[Reminder]:
    wanted = list(specs)
    moved = (
        store.get_many([RECORD + record_key(actor, PROGRESS, name) for actor, name, _ in wanted])
        if wanted
        else []
    )
    return [
        decode_reminder(spec, progress)
        for (_, _, spec), progress in zip(wanted, moved, strict=True)
    ]


def _listed(actor: str, found: Reminder) -> Listed:
    return Listed(**_common(actor, found))


def _common(actor: str, found: Reminder) -> dict[str, Any]:
    spec, paused = found.spec, found.paused
    return {
        "actor": actor,
        "reminder": spec.reminder,
        "version": spec.version,
        "due": found.due,
        "occurrence": found.occurrence,
        "every": spec.every,
        "cron": spec.cron,
        "paused_since": None if paused is None else paused.since,
        "note": None if paused is None else paused.note,
        "content_type": spec.content_type,
        "to": spec.to,
    }
