"""What becomes of slots that went by: the missed policy, the catch-up window, the time to live.

A slot that nothing but its own lateness speaks against goes out late; as soon as the next one is
due as well, what went by is missed, and the policy decides. Numbers keep their slot, and each slot
that does not go out is in exactly one event. Work is bounded whatever the downtime was.
"""

from msgspec import Struct

from tocsin.core.commands import FireDue
from tocsin.core.errors import Refusal
from tocsin.core.events import (
    Completed,
    Event,
    Expired,
    Fired,
    Kind,
    PassedOver,
    Skipped,
    Undeliverable,
)
from tocsin.core.limits import Limits
from tocsin.core.recurrence import Slot, Slots, completion, slot_after, tz_of
from tocsin.core.reminder import Missed, Options, Reminder, Spec, is_recurring
from tocsin.core.time_text import DAY_MS
from tocsin.core.values import DurationMs, EpochMs
from tocsin.core.waking import wake_of

#: How far back a schedule looks that does not say.
CATCH_UP_MS = DurationMs(365 * DAY_MS)
#: Fires of one reminder in one look, and bytes of their payloads; then others have their turn.
FIRES_PER_LOOK_MAX = 100
BYTES_PER_LOOK_MAX = 1024 * 1024
#: How the error of a fire begins whose schedule cannot be computed any more; it ends the reminder.
LOST_SCHEDULE = "schedule: "

_DEFAULTS = Options()


class _Next(Struct, frozen=True):
    """The slot that comes after what an event tells of; all None: there is none."""

    occurrence: int | None
    due: EpochMs | None
    wake: EpochMs | None


class _Look(Struct, frozen=True):
    """What is the same for all that one look at a reminder brings."""

    spec: Spec
    now: EpochMs
    partition: int
    command: FireDue


def look(
    reminder: Reminder, command: FireDue, now: EpochMs, limits: Limits, partition: int
) -> tuple[Event, ...]:
    """Return what becomes of the open slot of `reminder`, which woke, and of those behind it."""
    at = _Look(reminder.spec, now, partition, command)
    try:
        events = _looked(at, reminder, limits)
    except Refusal as refusal:  # the tz database has lost the zone
        return (_lost(at, reminder, refusal),)
    return (*events, *_completed(at.spec, events[-1]))


def skip_what_went_by(reminder: Reminder, now: EpochMs, partition: int) -> tuple[Event, ...]:
    """Return what a schedule that skips makes of the slots that went by in a pause.

    Raises Refusal when the tz database has lost the zone of a cron.
    """
    spec = reminder.spec
    options = spec.options or _DEFAULTS
    woke = reminder.due if reminder.wake is None else reminder.wake
    if options.missed is not Missed.SKIP or not is_recurring(spec) or woke > now:
        return ()
    opened = Slot(reminder.occurrence, reminder.due)
    last = _newest(spec, Slots(spec, opened), opened, now, partition)
    skipped = _skipped(spec, opened, last, PassedOver.POLICY, partition)
    return (skipped, *_completed(spec, skipped))


def _looked(at: _Look, reminder: Reminder, limits: Limits) -> list[Event]:
    spec, now, partition = at.spec, at.now, at.partition
    options = spec.options or _DEFAULTS
    opened = Slot(reminder.occurrence, reminder.due)
    slots = Slots(spec, opened)
    last = _newest(spec, slots, opened, now, partition)
    begin: Slot | None = opened
    events: list[Event] = []
    window = options.catch_up
    if window is None and is_recurring(spec):
        window = CATCH_UP_MS
    if window is not None and now - window > opened.due:
        begin = slots.first_from(now - window, last)
        end = last if begin is None else slots.before(begin)
        events.append(_skipped(spec, opened, end, PassedOver.CATCH_UP, partition))
    if begin is not None and options.ttl is not None and now - options.ttl > begin.due:
        alive = slots.first_from(now - options.ttl, last)
        end = last if alive is None else slots.before(alive)
        events.append(_expired(spec, begin, end, options.ttl, partition))
        begin = alive
    if begin is None:
        return events
    if options.missed is Missed.SKIP and last.occurrence > opened.occurrence:
        events.append(_skipped(spec, begin, last, PassedOver.POLICY, partition))
    elif options.missed is Missed.ALL:
        events += _each(at, slots, begin, last, limits)
    else:
        events.append(_fired(at, begin, last))
    return events


def _newest(spec: Spec, slots: Slots, opened: Slot, now: EpochMs, partition: int) -> Slot:
    """Return the newest slot that woke; jitter may still hold back one that is due.

    A slot wakes before the next one is due, so all before it woke as well.
    """
    newest = slots.newest(now)
    if newest.occurrence == opened.occurrence:
        return opened
    wake = wake_of(spec, newest, partition)
    return newest if wake is None or wake <= now else slots.before(newest)


def _each(at: _Look, slots: Slots, begin: Slot, last: Slot, limits: Limits) -> list[Event]:
    """Return the fires of one look, oldest first; the next look goes on behind them."""
    waiting = last.occurrence - begin.occurrence + 1
    coalesced = max(0, waiting - max(1, limits.catch_up_fires_max))
    payload = len(at.spec.payload)
    fires_max = min(FIRES_PER_LOOK_MAX, max(1, BYTES_PER_LOOK_MAX // (payload + 1)))
    slot: Slot | None = slots.later(begin, coalesced, last.due)
    events: list[Event] = []
    while slot is not None and slot.occurrence <= last.occurrence and len(events) < fires_max:
        events.append(_fired(at, slot if events else begin, slot))
        slot = slot_after(at.spec, slot)
    return events


def _lost(at: _Look, reminder: Reminder, refusal: Refusal) -> Undeliverable:
    """Return the end of a reminder whose next slot nobody can tell."""
    spec = at.spec
    fired = Fired(
        spec.reminder,
        spec.version,
        Kind.SCHEDULED,
        reminder.occurrence,
        reminder.due,
        at.now,
        0,
        None,
        None,
        None,
        at.command.next_command,
        None,
        tz_of(spec),
    )
    return Undeliverable(
        fired=fired, target=spec.to or "deliveries", error=f"{LOST_SCHEDULE}{refusal}"
    )


def _next_of(spec: Spec, slot: Slot, partition: int) -> _Next:
    following = slot_after(spec, slot)
    if following is None:
        return _Next(None, None, None)
    return _Next(following.occurrence, following.due, wake_of(spec, following, partition))


def _fired(at: _Look, begin: Slot, slot: Slot) -> Fired:
    """Return the fire of `slot`, in which those from `begin` on coalesce."""
    spec = at.spec
    following = _next_of(spec, slot, at.partition)
    missed = slot.occurrence - begin.occurrence
    return Fired(
        spec.reminder,
        spec.version,
        Kind.SCHEDULED,
        slot.occurrence,
        slot.due,
        at.now,
        missed,
        begin.due if missed else None,
        following.occurrence,
        following.due,
        at.command.next_command,
        following.wake,
        tz_of(spec),
    )


def _skipped(spec: Spec, first: Slot, last: Slot, reason: PassedOver, partition: int) -> Skipped:
    following = _next_of(spec, last, partition)
    return Skipped(
        reminder=spec.reminder,
        version=spec.version,
        first=first.occurrence,
        last=last.occurrence,
        first_due=first.due,
        last_due=last.due,
        reason=reason,
        next_occurrence=following.occurrence,
        next_due=following.due,
        next_wake=following.wake,
        tz=tz_of(spec),
    )


def _expired(spec: Spec, first: Slot, last: Slot, ttl: DurationMs, partition: int) -> Expired:
    following = _next_of(spec, last, partition)
    return Expired(
        reminder=spec.reminder,
        version=spec.version,
        first=first.occurrence,
        last=last.occurrence,
        first_due=first.due,
        last_due=last.due,
        ttl=ttl,
        next_occurrence=following.occurrence,
        next_due=following.due,
        next_wake=following.wake,
        tz=tz_of(spec),
    )


def _completed(spec: Spec, event: Event) -> tuple[Completed, ...]:
    """Return the event that a schedule ended with `event`, if it did."""
    if not is_recurring(spec):
        return ()
    match event:
        case Fired(occurrence=occurrence, due=due, next_occurrence=None):
            last = Slot(occurrence, due)
        case Skipped(last=occurrence, last_due=due, next_occurrence=None):
            last = Slot(occurrence, due)
        case Expired(last=occurrence, last_due=due, next_occurrence=None):
            last = Slot(occurrence, due)
        case _:
            return ()
    return (
        Completed(
            reminder=spec.reminder,
            version=spec.version,
            occurrences=last.occurrence + 1,
            reason=completion(spec, last),
        ),
    )
