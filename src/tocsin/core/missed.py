"""What becomes of slots that went by: the missed policy, the catch-up window, the time to live.

A slot that nothing but its own lateness speaks against goes out late; as soon as the next one is
due as well, what went by is missed, and the policy decides. Numbers keep their slot, and each slot
that does not go out is in exactly one event. Work is bounded whatever the downtime was.
"""

from msgspec import Struct

from tocsin.core.commands import FireDue
from tocsin.core.events import Completed, Event, Expired, Fired, Kind, PassedOver, Skipped
from tocsin.core.limits import Limits
from tocsin.core.recurrence import (
    Slot,
    completion,
    first_slot_from,
    last_occurrence,
    slot_after,
    slot_at,
)
from tocsin.core.reminder import Missed, Options, Reminder, Spec
from tocsin.core.time_text import DAY_MS
from tocsin.core.values import DurationMs, EpochMs
from tocsin.core.waking import wake_of

#: How far back a schedule looks that does not say.
CATCH_UP_MS = DurationMs(365 * DAY_MS)
#: Fires of one reminder in one look, and bytes of their payloads; then others have their turn.
FIRES_PER_LOOK_MAX = 100
BYTES_PER_LOOK_MAX = 1024 * 1024

_DEFAULTS = Options()


class Next(Struct, frozen=True):
    """The slot that comes after what an event tells of; all None: there is none."""

    occurrence: int | None
    due: EpochMs | None
    wake: EpochMs | None


def next_of(spec: Spec, slot: Slot, partition: int) -> Next:
    """Return what comes after `slot`."""
    following = slot_after(spec, slot)
    if following is None:
        return Next(None, None, None)
    return Next(following.occurrence, following.due, wake_of(spec, following, partition))


def look(
    reminder: Reminder, command: FireDue, now: EpochMs, limits: Limits, partition: int
) -> tuple[Event, ...]:
    """Return what becomes of the open slot of `reminder`, which woke, and of those behind it."""
    spec = reminder.spec
    options = spec.options or _DEFAULTS
    first, last = reminder.occurrence, _newest(reminder, now, partition)
    events: list[Event] = []
    begin = min(max(first, _within(spec, options, now)), last + 1)
    if begin > first:
        events.append(_skipped(spec, first, begin - 1, PassedOver.CATCH_UP, partition))
    if options.ttl is not None:
        alive = min(max(begin, first_slot_from(spec, now - options.ttl)), last + 1)
        if alive > begin:
            events.append(_expired(spec, begin, alive - 1, options.ttl, partition))
            begin = alive
    if begin <= last:
        if options.missed is Missed.SKIP and last > first:
            events.append(_skipped(spec, begin, last, PassedOver.POLICY, partition))
        elif options.missed is Missed.ALL:
            events += _each(spec, begin, last, command, now, limits, partition)
        else:
            events.append(_fired(spec, begin, last, command, now, partition))
    return (*events, *_completed(spec, events[-1]))


def skip_what_went_by(reminder: Reminder, now: EpochMs, partition: int) -> tuple[Event, ...]:
    """Return what a schedule that skips makes of the slots that went by in a pause."""
    spec = reminder.spec
    options = spec.options or _DEFAULTS
    woke = reminder.due if reminder.wake is None else reminder.wake
    if options.missed is not Missed.SKIP or spec.every is None or woke > now:
        return ()
    last = _newest(reminder, now, partition)
    skipped = _skipped(spec, reminder.occurrence, last, PassedOver.POLICY, partition)
    return (skipped, *_completed(spec, skipped))


def _newest(reminder: Reminder, now: EpochMs, partition: int) -> int:
    """Return the number of the newest slot that woke; jitter may still hold back one that is due.

    A slot wakes before the next one is due, so all before it woke as well.
    """
    spec = reminder.spec
    newest = min(first_slot_from(spec, now + 1) - 1, last_occurrence(spec))
    if newest <= reminder.occurrence:
        return reminder.occurrence
    wake = wake_of(spec, slot_at(spec, newest), partition)
    return newest if wake is None or wake <= now else newest - 1


def _within(spec: Spec, options: Options, now: EpochMs) -> int:
    """Return the number of the first slot within the catch-up window."""
    window = options.catch_up
    if window is None:
        if spec.every is None:
            return 0
        window = CATCH_UP_MS
    return first_slot_from(spec, now - window)


def _each(
    spec: Spec,
    begin: int,
    last: int,
    command: FireDue,
    now: EpochMs,
    limits: Limits,
    partition: int,
) -> list[Event]:
    """Return the fires of one look, oldest first; the next look goes on behind them."""
    coalesced = max(0, last - begin + 1 - max(1, limits.catch_up_fires_max))
    fires_max = min(FIRES_PER_LOOK_MAX, max(1, BYTES_PER_LOOK_MAX // (len(spec.payload) + 1)))
    start = begin + coalesced
    return [
        _fired(
            spec, begin if occurrence == start else occurrence, occurrence, command, now, partition
        )
        for occurrence in range(start, min(last, start + fires_max - 1) + 1)
    ]


def _fired(
    spec: Spec, begin: int, occurrence: int, command: FireDue, now: EpochMs, partition: int
) -> Fired:
    """Return the fire of `occurrence`, in which those from `begin` on coalesce."""
    slot = slot_at(spec, occurrence)
    following = next_of(spec, slot, partition)
    return Fired(
        spec.reminder,
        spec.version,
        Kind.SCHEDULED,
        occurrence,
        slot.due,
        now,
        occurrence - begin,
        slot_at(spec, begin).due if occurrence > begin else None,
        following.occurrence,
        following.due,
        command.next_command,
        following.wake,
    )


def _skipped(spec: Spec, first: int, last: int, reason: PassedOver, partition: int) -> Skipped:
    following = next_of(spec, slot_at(spec, last), partition)
    return Skipped(
        reminder=spec.reminder,
        version=spec.version,
        first=first,
        last=last,
        first_due=slot_at(spec, first).due,
        last_due=slot_at(spec, last).due,
        reason=reason,
        next_occurrence=following.occurrence,
        next_due=following.due,
        next_wake=following.wake,
    )


def _expired(spec: Spec, first: int, last: int, ttl: DurationMs, partition: int) -> Expired:
    following = next_of(spec, slot_at(spec, last), partition)
    return Expired(
        reminder=spec.reminder,
        version=spec.version,
        first=first,
        last=last,
        first_due=slot_at(spec, first).due,
        last_due=slot_at(spec, last).due,
        ttl=ttl,
        next_occurrence=following.occurrence,
        next_due=following.due,
        next_wake=following.wake,
    )


def _completed(spec: Spec, event: Event) -> tuple[Completed, ...]:
    """Return the event that a schedule ended with `event`, if it did."""
    match event:
        case Fired(occurrence=last, next_occurrence=None) if spec.every is not None:
            return (completed(spec, slot_at(spec, last)),)
        case Skipped(last=last, next_occurrence=None) if spec.every is not None:
            return (completed(spec, slot_at(spec, last)),)
        case Expired(last=last, next_occurrence=None) if spec.every is not None:
            return (completed(spec, slot_at(spec, last)),)
        case _:
            return ()


def completed(spec: Spec, last: Slot) -> Completed:
    """Return the event that a schedule has no slot after `last`."""
    return Completed(
        reminder=spec.reminder,
        version=spec.version,
        occurrences=last.occurrence + 1,
        reason=completion(spec, last),
    )
