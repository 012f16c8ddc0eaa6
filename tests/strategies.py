"""Arbitrary values of the core's types: as wide as the wire, wider than the rules allow."""

from hypothesis import strategies as st
from msgspec.structs import replace

from tocsin.codec.deliveries import Metadata
from tocsin.codec.events import Stamp
from tocsin.codec.state import StepRecord
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
from tocsin.core.reminder import Missed, Options, PauseInForce, Reminder, Spec
from tocsin.core.schedule.values import Cron, Gap, Overlap
from tocsin.core.time_text import DURATION_MS_MAX, INSTANT_MS_MAX, INSTANT_MS_MIN
from tocsin.core.values import DurationMs, EpochMs, Offset, Version

_NAME_CHARS_MAX = 191
_NASTY = "\0\x01\xff:/\\|@#\"'{} \n\t\u202e\U0001f514"

#: Text as UTF-8 can carry it, with the characters that break naive codecs.
texts = st.text() | st.text(alphabet=_NASTY, max_size=8)
actors = st.builds(str.__add__, texts.filter(bool), texts)
_operations = texts.map(lambda text: text.replace(":", "")).filter(bool)
#: Names that the rules allow: `operation`, or `operation:key`.
names = st.one_of(_operations, st.builds("{}:{}".format, _operations, texts.filter(bool))).filter(
    lambda name: len(name) <= _NAME_CHARS_MAX
)

instants = st.integers(INSTANT_MS_MIN, INSTANT_MS_MAX).map(EpochMs)
durations = st.integers(0, DURATION_MS_MAX).map(DurationMs)
offsets = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1)).map(Offset)
versions = offsets.map(Version)
steps = st.integers(0, 2**63 - 1)
occurrences = st.one_of(st.integers(0, 200), st.integers(0, 2**63 - 1))
payloads = st.binary(max_size=300)
#: Header names that the rules allow.
header_names = st.one_of(texts, st.sampled_from(("kind", "Content-Type", "x"))).filter(
    lambda name: (
        name != ""
        and "\0" not in name
        and name not in {"tocsin", "content-type", "traceparent"}
        and not name.startswith("ce_")
    )
)
headers = st.lists(st.tuples(header_names, st.none() | st.binary(max_size=20)), max_size=4).map(
    tuple
)
traceparents = st.none() | st.text(
    alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=60
)

options = st.builds(
    Options,
    missed=st.sampled_from(Missed),
    catch_up=st.none() | durations,
    ttl=st.none() | durations,
    until=st.none() | instants,
    occurrences=st.none() | occurrences,
    jitter=durations,
)
specs = st.builds(
    Spec,
    reminder=names,
    version=versions,
    anchor=instants,
    every=st.none() | durations,
    payload=payloads,
    content_type=st.none() | texts,
    headers=headers,
    to=st.none() | texts,
    traceparent=traceparents,
    after=st.none() | durations,
    at=st.none() | instants,
)
crons = st.builds(
    Cron,
    text=texts,
    zone=texts,
    gap=st.sampled_from(Gap),
    overlap=st.sampled_from(Overlap),
    exclude=st.lists(texts, max_size=3).map(tuple),
)
any_specs = st.builds(replace, specs, options=st.none() | options, cron=st.none() | crons)
#: Awake ones.
reminders = st.builds(Reminder, specs, occurrences, instants)
pauses = st.builds(PauseInForce, instants, st.none() | texts)
any_reminders = st.builds(
    Reminder, any_specs, occurrences, instants, st.none() | pauses, st.none() | instants
)
step_records = st.builds(
    StepRecord,
    step=steps,
    next_command=offsets,
    engine_time=instants,
    commands_id=texts,
    events_id=texts,
    state_id=texts,
)

stamps = st.builds(Stamp, instants, steps, st.none() | offsets, st.booleans())
ended = st.builds(Ended, version=versions, occurrence=occurrences, due=instants)
fired = st.builds(
    Fired,
    names,
    versions,
    st.sampled_from(Kind),
    occurrences,
    instants,
    instants,
    occurrences,
    st.none() | instants,
    st.none() | occurrences,
    st.none() | instants,
    offsets,
    st.none() | instants,
    st.none() | texts,
)
_spans = {
    "reminder": names,
    "version": versions,
    "first": occurrences,
    "last": occurrences,
    "first_due": instants,
    "last_due": instants,
    "next_occurrence": st.none() | occurrences,
    "next_due": st.none() | instants,
    "next_wake": st.none() | instants,
    "tz": st.none() | texts,
}
events: st.SearchStrategy[Event] = st.one_of(
    fired,
    st.builds(
        Armed,
        spec=any_specs,
        previous=st.none() | ended,
        wake=st.none() | instants,
        tz=st.none() | texts,
        replaced=st.booleans(),
    ),
    st.builds(Skipped, reason=st.sampled_from(PassedOver), **_spans),
    st.builds(Expired, ttl=durations, **_spans),
    st.builds(
        Completed,
        reminder=names,
        version=versions,
        occurrences=occurrences,
        reason=st.sampled_from(Completion),
    ),
    st.builds(
        Moved,
        reminder=names,
        version=versions,
        anchor=instants,
        every=st.none() | durations,
        previous=ended,
        after=st.none() | durations,
        at=st.none() | instants,
        wake=st.none() | instants,
        cron=st.none() | crons,
        tz=st.none() | texts,
    ),
    st.builds(
        Kept,
        reminder=names,
        version=versions,
        occurrence=occurrences,
        due=instants,
        reason=st.sampled_from(Unchanged),
    ),
    st.builds(Cancelled, reminder=names, version=versions, occurrence=occurrences, due=instants),
    *(
        st.builds(
            kind,
            reminder=names,
            version=versions,
            occurrence=occurrences,
            due=instants,
            since=instants,
            note=st.none() | texts,
        )
        for kind in (Paused, Resumed)
    ),
    st.builds(NothingResumed, reminder=st.none() | names),
    st.builds(
        NothingCancelled,
        reminder=st.none() | names,
        operation=st.none() | texts,
        prefix=st.none() | texts,
        raw=st.booleans(),
    ),
    st.builds(Undeliverable, fired=fired, target=texts, error=texts),
    st.builds(Destroyed, reminders=st.integers(0, 10_000)),
    st.builds(
        Refused,
        reason=st.sampled_from(Reason),
        command=st.none() | texts,
        reminder=st.none() | texts,
        field=texts,
        value=texts,
        way_out=texts,
    ),
    st.builds(CommandsLost, first=offsets, last=offsets),
)

_appended = st.none() | instants
_longs = st.integers(-(2**63), 2**63 - 1)
_maybe_instant = st.none() | instants | _longs.map(EpochMs)
_maybe_duration = st.none() | durations | _longs.map(DurationMs)
_calendar = {
    "cron": st.none() | texts,
    "zone": st.none() | texts,
    "gap": st.none() | st.sampled_from(Gap).map(str) | texts,
    "overlap": st.none() | texts,
    "exclude": st.lists(texts, max_size=3).map(tuple),
}
arms = st.builds(
    Arm,
    **_calendar,
    offset=offsets,
    appended=_appended,
    reminder=names | texts,
    at=_maybe_instant,
    after=_maybe_duration,
    every=_maybe_duration,
    payload=payloads,
    content_type=st.none() | texts,
    headers=headers,
    to=st.none() | texts,
    if_absent=st.booleans(),
    if_version=st.none() | versions,
    if_earlier=st.booleans(),
    if_changed=st.booleans(),
    until=_maybe_instant,
    occurrences=st.none() | _longs,
    jitter=_maybe_duration,
    missed=st.none() | st.sampled_from(Missed).map(str) | texts,
    catch_up=_maybe_duration,
    ttl=_maybe_duration,
    traceparent=traceparents,
)
#: Commands as they may come; not all are within the rules.
commands: st.SearchStrategy[ServiceCommand] = st.one_of(
    arms,
    st.builds(
        Move,
        **_calendar,
        offset=offsets,
        appended=_appended,
        reminder=names | texts,
        at=_maybe_instant,
        after=_maybe_duration,
        every=_maybe_duration,
        if_version=st.none() | versions,
    ),
    st.builds(
        Cancel,
        offset=offsets,
        appended=_appended,
        reminder=st.none() | names | texts,
        operation=st.none() | texts,
        prefix=st.none() | texts,
        raw=st.booleans(),
        all=st.booleans(),
        if_version=st.none() | versions,
    ),
    st.builds(Fire, offset=offsets, appended=_appended, reminder=names | texts),
    *(
        st.builds(
            kind,
            offset=offsets,
            appended=_appended,
            reminder=st.none() | names | texts,
            all=st.booleans(),
            note=st.none() | texts,
        )
        for kind in (Pause, Resume)
    ),
    st.builds(Destroy, offset=offsets, appended=_appended),
)

metadata = st.builds(
    Metadata,
    texts,
    actors,
    names,
    texts,
    st.sampled_from(("scheduled", "manual", "breached")),
    instants,
    instants,
    instants,
    versions,
    st.none() | texts,
    st.none() | durations,
    st.none() | occurrences,
    occurrences,
)


@st.composite
def mutated(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were valid until a few cuts, insertions, replacements and repetitions."""
    data = bytearray(draw(valid))
    junk = st.binary(max_size=4) | st.sampled_from(
        (
            b"\x00",
            b"\x01",
            b"\xff",
            b"\xfe" + b"\xff" * 8 + b"\x01",
            b"\xff" * 10,
            b"[",
            b'"',
            b"\\",
        )
    )
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 8)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at:end] = draw(junk)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = data[at:end]
            case _:
                data[at:at] = draw(junk)
    return bytes(data)
