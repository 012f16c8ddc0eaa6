"""What one partition has armed and what is due when: the store on disk, and the step under way.

Kafka first, the store after: changes of a step are staged in memory, seen by every look-up and by
the due scan, and reach the disk once the transaction is committed. Rollback forgets them, and how
far the scan had come. The `r` part of the store is the state topic, byte for byte.

Layout: r + key of the state topic -> value; d + wake + version -> key of the spec; m -> checkpoint.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from tocsin.codec.keys import (
    PROGRESS,
    SPEC,
    STEP_KEY,
    actor_prefix,
    due_key,
    is_asleep,
    parse_key,
    record_key,
)
from tocsin.codec.state import (
    StepRecord,
    decode_reminder,
    decode_step,
    due_key_of,
    encode_progress,
    encode_spec,
    encode_step,
)
from tocsin.core.reminder import Reminder, is_recurring, next_due
from tocsin.core.values import EpochMs, Offset
from tocsin.dataflow import Change, Due
from tocsin.ports import KeyValues

RECORD = b"r"
DUE = b"d"
DUE_END = b"e"
CHECKPOINT = b"m"
#: Raised with every change of the layout; a store of another format is built anew.
FORMAT = 1
#: Entries that one look into the store returns at most.
PAGE_MAX = 1_000
#: Actors whose number of reminders is remembered.
COUNTED_ACTORS_MAX = 100_000

#: A record for the state topic; None is a tombstone.
StateRecord = tuple[bytes, bytes | None]


class Checkpoint(Struct, frozen=True, kw_only=True):
    """How far the store follows the state topic."""

    format: int
    state_id: str
    #: Offset of the state topic from which the store has yet to follow.
    offset: Offset
    #: When the store was last known to be at the end of the state topic.
    at_end: EpochMs
    #: No due entry lies below this key.
    cursor: bytes
    armed: int


class IndexBroken(Exception):
    """The store contradicts itself; it has to be built anew from the state topic."""


_encode_checkpoint = msgspec.msgpack.Encoder().encode
_decode_checkpoint = msgspec.msgpack.Decoder(Checkpoint).decode


def read_checkpoint(store: KeyValues) -> Checkpoint | None:
    """Return the store's checkpoint; None where it has none of this format."""
    data = store.get(CHECKPOINT)
    if data is None:
        return None
    try:
        checkpoint = _decode_checkpoint(data)
    except msgspec.DecodeError:
        return None
    return checkpoint if checkpoint.format == FORMAT else None


def plan(change: Change, step: int) -> list[StateRecord]:
    """Return the records that carry `change` into the state topic."""
    before, after = change.before, change.after
    had_progress = before is not None and _has_progress(before)
    same_spec = after is not None and before is not None and after.spec is before.spec
    if after is not None and same_spec and _has_progress(after):
        return [(record_key(change.actor, PROGRESS, change.name), encode_progress(after, step))]
    records: list[StateRecord] = [
        (
            record_key(change.actor, SPEC, change.name),
            None if after is None else encode_spec(after, step),
        )
    ]
    if had_progress:
        records.append((record_key(change.actor, PROGRESS, change.name), None))
    return records


class TimerIndex:
    """A View of one partition, with the step under way on top of the store."""

    def __init__(self, store: KeyValues, checkpoint: Checkpoint) -> None:
        self._store = store
        self._checkpoint = checkpoint
        self._counts: dict[str, int] = {}
        self._head: EpochMs | None = None
        self._head_known = False
        self._forget()

    def _forget(self) -> None:
        self._staged: dict[str, dict[str, Reminder | None]] = {}
        self._records: dict[bytes, bytes | None] = {}
        self._due_added: dict[bytes, bytes] = {}
        self._due_gone: set[bytes] = set()
        self._armed_change = 0
        self._cursor = self._checkpoint.cursor

    # --- what is armed

    @property
    def checkpoint(self) -> Checkpoint:
        """How far the store follows the state topic."""
        return self._checkpoint

    def reminder(self, actor: str, name: str) -> Reminder | None:
        """Return the armed reminder of that exact name."""
        staged = self._staged.get(actor)
        if staged is not None and name in staged:
            return staged[name]
        spec = self._store.get(RECORD + record_key(actor, SPEC, name))
        return None if spec is None else self._decode(spec, actor, name)

    def reminders(self, actor: str, beginning: str = "") -> list[Reminder]:
        """Return all reminders of the actor whose names begin so, by name."""
        found: dict[str, Reminder | None] = {}
        for key, value in self._entries(RECORD + record_key(actor, SPEC, beginning)):
            name = parse_key(key[1:])[2]
            found[name] = self._decode(value, actor, name)
        staged = self._staged.get(actor, {})
        found.update((name, staged[name]) for name in staged if name.startswith(beginning))
        return [reminder for _, reminder in sorted(found.items()) if reminder is not None]

    def armed(self, actor: str) -> int:
        """Return how many reminders the actor has."""
        count = self._counts.get(actor)
        if count is None:
            if len(self._counts) >= COUNTED_ACTORS_MAX:
                self._counts.clear()
            count = self._counts[actor] = self._count(actor)
        return count

    def _count(self, actor: str) -> int:
        prefix = RECORD + actor_prefix(actor) + SPEC
        names = {parse_key(key[1:])[2] for key, _ in self._entries(prefix)}
        for name, staged in self._staged.get(actor, {}).items():
            if staged is None:
                names.discard(name)
            else:
                names.add(name)
        return len(names)

    def _entries(self, prefix: bytes) -> Iterable[tuple[bytes, bytes]]:
        start, end = prefix, prefix + b"\xff"  # no byte of UTF-8 is 0xff
        while True:
            page = self._store.scan(start, end, PAGE_MAX)
            yield from page
            if len(page) < PAGE_MAX:
                return
            start = page[-1][0] + b"\0"

    def _decode(self, spec: bytes, actor: str, name: str) -> Reminder:
        reminder = decode_reminder(spec, None)
        if not is_recurring(reminder.spec):
            return reminder
        progress = self._store.get(RECORD + record_key(actor, PROGRESS, name))
        return reminder if progress is None else decode_reminder(spec, progress)

    # --- what is due

    def due(self, now: EpochMs, limit: int) -> list[Due]:
        """Return the first `limit` reminders due at `now`, by due, then by age of the version."""
        bound = DUE + due_key(now + 1, 0)
        on_disk = self._store.scan(self._cursor, bound, limit + len(self._due_gone))
        entries = [entry for entry in on_disk if entry[0] not in self._due_gone]
        added = [entry for entry in self._due_added.items() if entry[0] < bound]
        if added:
            entries = sorted(entries + added)
        self._cursor = entries[limit][0] if len(entries) > limit else bound
        if len(on_disk) == limit + len(self._due_gone):
            self._cursor = min(self._cursor, on_disk[-1][0] + b"\0")
        return self._load(entries[:limit])

    def _load(self, entries: Sequence[tuple[bytes, bytes]]) -> list[Due]:
        specs = self._store.get_many([RECORD + key for _, key in entries]) if entries else []
        found: list[Due] = []
        for (due, key), spec in zip(entries, specs, strict=True):
            actor, _, name = parse_key(key)
            staged = self._staged.get(actor)
            if staged is not None and name in staged:
                reminder = staged[name]
            else:
                reminder = None if spec is None else self._decode(spec, actor, name)
            if reminder is None or _index_key(reminder) != due:
                raise IndexBroken(f"due entry {due.hex()} of {actor!r} {name!r} has no reminder")
            found.append(Due(actor, reminder))
        return found

    def put_back(self, due: Due) -> None:
        """Make sure that the next scan sees `due` again: the step had no room for it."""
        key = _index_key(due.reminder)
        assert key is not None, "it was found by its key"
        self._cursor = min(self._cursor, key)

    def head(self) -> EpochMs | None:
        """Return when the next reminder is due; None with nothing armed. Between steps only."""
        if not self._head_known:
            first = self._store.scan(self._cursor, DUE_END, 1)
            self._head = EpochMs(int.from_bytes(first[0][0][1:9], "big")) if first else None
            self._head_known = True
        return self._head

    # --- the step under way

    def stage(self, change: Change, records: Iterable[StateRecord]) -> None:
        """Take `change` into the step; `records` is what `plan` made of it. Cannot fail."""
        actor, before, after = change.actor, change.before, change.after
        self._staged.setdefault(actor, {})[change.name] = after
        self._records.update(records)
        if before is not None:
            self._remove_due(_index_key(before))
        if after is not None:
            self._add_due(_index_key(after), record_key(actor, SPEC, change.name))
        growth = (after is not None) - (before is not None)
        self._armed_change += growth
        if growth and actor in self._counts:
            self._counts[actor] += growth

    def _remove_due(self, key: bytes | None) -> None:
        if key is not None and self._due_added.pop(key, None) is None:
            self._due_gone.add(key)

    def _add_due(self, key: bytes | None, record: bytes) -> None:
        if key is None:
            return
        if key in self._due_gone:  # paused and resumed: the entry on disk is in force again
            self._due_gone.discard(key)
        else:
            self._due_added[key] = record
        self._cursor = min(self._cursor, key)

    def commit(self, step: StepRecord, offset: Offset, now: EpochMs) -> None:
        """Write the step, committed in the log up to `offset` of the state topic, to the store."""
        checkpoint = msgspec.structs.replace(
            self._checkpoint,
            offset=offset,
            at_end=now,
            cursor=self._cursor,
            armed=self._checkpoint.armed + self._armed_change,
        )
        self._records[STEP_KEY] = encode_step(step)
        self._write(checkpoint)

    def rollback(self) -> None:
        """Forget the step under way, and how far its scan had come."""
        for actor in self._staged:
            self._counts.pop(actor, None)
        self._forget()

    def _write(self, checkpoint: Checkpoint) -> None:
        puts = [(RECORD + key, value) for key, value in self._records.items() if value is not None]
        puts += self._due_added.items()
        puts.append((CHECKPOINT, _encode_checkpoint(checkpoint)))
        deletes = [RECORD + key for key, value in self._records.items() if value is None]
        deletes += self._due_gone
        self._store.write(puts, deletes)
        self._checkpoint = checkpoint
        self._head_known = False
        self._forget()

    # --- following the state topic

    def step_record(self) -> StepRecord | None:
        """Return the last step that the store knows of."""
        data = self._store.get(RECORD + STEP_KEY)
        return None if data is None else decode_step(data)

    def absorb(self, records: Iterable[StateRecord], offset: Offset) -> None:
        """Follow the state topic by `records`; `offset` is the one that comes next."""
        self._records = dict(records)
        specs = list(self._specs_touched())
        old = self._store.get_many([RECORD + key for key in specs])
        progress = self._progress_of(specs, old)
        cursor, growth = self._cursor, 0
        for key, old_spec, old_progress in zip(specs, old, progress, strict=True):
            new_spec = self._records.get(key, old_spec)
            new_progress = self._records.get(_progress_key(key), old_progress)
            before, after = _wake(old_spec, old_progress), _wake(new_spec, new_progress)
            growth += (new_spec is not None) - (old_spec is not None)
            if before == after:
                continue
            if before is not None:
                self._due_gone.add(DUE + before)
            if after is not None:
                self._due_added[DUE + after] = key
                cursor = min(cursor, DUE + after)
        self._write(
            msgspec.structs.replace(
                self._checkpoint,
                offset=offset,
                cursor=cursor,
                armed=self._checkpoint.armed + growth,
            )
        )

    def at_end(self, offset: Offset, now: EpochMs) -> None:
        """Note that the store has come to the end of the state topic, `offset`, at `now`."""
        self._write(msgspec.structs.replace(self._checkpoint, offset=offset, at_end=now))

    def _specs_touched(self) -> Iterable[bytes]:
        seen = set()
        for key in self._records:
            if key == STEP_KEY:
                continue
            spec = _spec_key(key)
            if spec not in seen:
                seen.add(spec)
                yield spec

    def _progress_of(
        self, specs: Sequence[bytes], old: Sequence[bytes | None]
    ) -> list[bytes | None]:
        """Read the progress on disk, of those that were on disk at all."""
        known = [key for key, spec in zip(specs, old, strict=True) if spec is not None]
        values = self._store.get_many([RECORD + _progress_key(key) for key in known])
        found = dict(zip(known, values, strict=True))
        return [found.get(key) for key in specs]


def _index_key(reminder: Reminder) -> bytes | None:
    """Return the place in the due index; None: nothing wakes it."""
    due = next_due(reminder)
    return None if due is None else DUE + due_key(due, reminder.spec.version)


def _has_progress(reminder: Reminder) -> bool:
    """Return whether the moving part is, or would be, a record of its own.

    A one-shot has none: whatever changes of it is written as a whole.
    """
    if not is_recurring(reminder.spec):
        return False
    return reminder.occurrence > 0 or reminder.paused is not None


def _wake(spec: bytes | None, progress: bytes | None) -> bytes | None:
    """Return the due key that is in force: the progress's, if it is of the spec's version.

    None: nothing wakes it.
    """
    if spec is None:
        return None
    wake = due_key_of(spec)
    if progress is not None:
        moved = due_key_of(progress)
        if moved[8:] == wake[8:]:
            wake = moved
    return None if is_asleep(wake) else wake


def _spec_key(key: bytes) -> bytes:
    actor, kind, name = parse_key(key)
    return key if kind == SPEC else record_key(actor, SPEC, name)


def _progress_key(spec: bytes) -> bytes:
    actor, _, name = parse_key(spec)
    return record_key(actor, PROGRESS, name)
