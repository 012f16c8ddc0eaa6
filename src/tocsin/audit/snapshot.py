"""The state topic of a partition at its last step, and how it compares with the fold."""

from collections.abc import Iterable

from tocsin.audit.findings import Findings, Kind, Place
from tocsin.audit.fold import STEP_UNKNOWN, Entry, Fold
from tocsin.codec.errors import Undecodable
from tocsin.codec.keys import NO_WAKE, PROGRESS, SPEC, STEP_KEY, due_key, parse_key, record_key
from tocsin.codec.state import (
    StepRecord,
    decode_reminder,
    decode_step,
    due_key_of,
    step_of,
)
from tocsin.core.reminder import Reminder, Spec, next_due
from tocsin.core.values import Offset
from tocsin.dataflow import Record

#: Of a due key, where the version begins.
_VERSION_AT = 8


class Snapshot:
    """The newest record under each key. Memory: what is live."""

    def __init__(self, topic: str, records: Iterable[Record], findings: Findings) -> None:
        self._topic = topic
        self._findings = findings
        self._values: dict[bytes, tuple[bytes, Offset]] = {}
        for record in records:
            if record.key is None:
                place = Place(topic, record.offset)
                findings.add(Kind.UNDECODABLE, place, "a state record without a key")
            elif record.value is None:
                self._values.pop(record.key, None)
            else:
                self._values[record.key] = (record.value, record.offset)
        self.step_offset: Offset | None = None
        self.step = self._read_step()

    def __len__(self) -> int:
        """Return how many keys have a value."""
        return len(self._values)

    def _read_step(self) -> StepRecord | None:
        value, self.step_offset = self._values.pop(STEP_KEY, (None, None))
        if value is None:
            return None
        try:
            return decode_step(value)
        except Undecodable as error:
            place = Place(self._topic, self.step_offset)
            self._findings.add(Kind.UNDECODABLE, place, f"the step record: {error}")
            return None

    def spec(self, actor: str, name: str) -> Spec | None:
        """Return what the state says was asked for; None where it says nothing readable."""
        value, _ = self._values.get(record_key(actor, SPEC, name), (None, None))
        try:
            return None if value is None else decode_reminder(value, None).spec
        except Undecodable:
            return None

    def compare(self, fold: Fold, first_step: int | None) -> int:
        """Add a finding for each difference; return how many reminders nothing can be said of.

        `first_step`: of the events that are left; what it or an earlier one wrote may have its
        events before the cut.
        """
        unproved = 0
        for key, (value, offset) in self._values.items():
            try:
                actor, kind, name = parse_key(key)
            except Undecodable as error:
                place = Place(self._topic, offset)
                self._findings.add(Kind.UNDECODABLE, place, str(error))
                continue
            place = Place(self._topic, offset, actor, name)
            try:
                if kind == SPEC:
                    unproved += self._compare_one(place, fold, value, first_step)
                elif kind == PROGRESS:
                    self._check_progress(place, value)
                else:
                    text = f"a record of kind {kind!r}, which this release does not write"
                    self._findings.add(Kind.STATE_EXTRA, place, text)
            except Undecodable as error:
                self._findings.add(Kind.UNDECODABLE, place, str(error))
        for actor, name, entry in fold:
            if record_key(actor, SPEC, name) not in self._values:
                text = f"{_said(entry.reminder)} is armed by the events, the state has none"
                self._findings.add(Kind.STATE_MISSING, Place(self._topic, None, actor, name), text)
        return unproved

    def _compare_one(self, place: Place, fold: Fold, value: bytes, first_step: int | None) -> int:
        assert place.actor is not None, "its key was read"
        assert place.reminder is not None, "its key was read"
        progress = self._progress_for(place.actor, place.reminder, value)
        stored = decode_reminder(value, progress)
        newest = value if progress is None else progress
        step = step_of(newest)
        entry = fold.entry(place.actor, place.reminder)
        if entry is not None:
            self._compare_with(place, entry, stored, step)
            self._check_due_key(place, stored, newest)
            return 0
        cut = first_step is None or step <= first_step
        if cut and fold.may_be_older(place.actor, place.reminder, stored.spec.version):
            return 1
        text = f"{_said(stored)} is in the state, by the events it is not armed"
        self._findings.add(Kind.STATE_EXTRA, place, text)
        return 0

    def _progress_for(self, actor: str, name: str, spec: bytes) -> bytes | None:
        """Return the progress record of the spec's version."""
        progress, _ = self._values.get(record_key(actor, PROGRESS, name), (None, None))
        if progress is None:
            return None
        of_version = due_key_of(progress)[_VERSION_AT:] == due_key_of(spec)[_VERSION_AT:]
        return progress if of_version else None

    def _compare_with(self, place: Place, entry: Entry, stored: Reminder, step: int) -> None:
        differing = [
            f"{field} is {_short(stored_value)}, by the events {_short(folded_value)}"
            for field, stored_value, folded_value in _fields(stored, entry)
            if stored_value != folded_value
        ]
        if differing:
            self._findings.add(Kind.STATE_DIFFERS, place, "; ".join(differing))
        if entry.step not in (step, STEP_UNKNOWN):
            text = f"written by step {step}, last changed by step {entry.step}"
            self._findings.add(Kind.STATE_STEP, place, text)

    def _check_due_key(self, place: Place, stored: Reminder, newest: bytes) -> None:
        due = next_due(stored)
        expected = due_key(NO_WAKE if due is None else due, stored.spec.version)
        if due_key_of(newest) != expected:
            text = f"its due key {due_key_of(newest).hex()} is not that of {_said(stored)}"
            self._findings.add(Kind.STATE_DIFFERS, place, text)

    def _check_progress(self, place: Place, value: bytes) -> None:
        assert place.actor is not None, "its key was read"
        assert place.reminder is not None, "its key was read"
        spec, _ = self._values.get(record_key(place.actor, SPEC, place.reminder), (None, None))
        if spec is None or due_key_of(spec)[_VERSION_AT:] != due_key_of(value)[_VERSION_AT:]:
            text = "a moving part without a reminder of its version"
            self._findings.add(Kind.STATE_EXTRA, place, text)


def _fields(stored: Reminder, entry: Entry) -> Iterable[tuple[str, object, object]]:
    """Yield what is known of both: field, in the state, by the events."""
    folded = entry.reminder
    yield "occurrence", stored.occurrence, folded.occurrence
    yield "due", stored.due, folded.due
    if entry.timed:
        yield "wake", stored.wake, folded.wake
    if entry.posed:
        yield "paused", stored.paused, folded.paused
    known = {"reminder", "version"}
    if entry.timed:
        known |= {"anchor", "every", "cron", "after", "at"}
    for field in folded.spec.__struct_fields__:
        if entry.whole or field in known:
            yield field, getattr(stored.spec, field), getattr(folded.spec, field)


def _short(value: object, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} long)"


def _said(reminder: Reminder) -> str:
    version = reminder.spec.version
    return f"occurrence {reminder.occurrence} of version {version}, due at {reminder.due}"
