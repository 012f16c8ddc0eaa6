"""State is a fold: evolve(reminder, event). It reads no clock and computes no recurrence."""

from typing import assert_never

from msgspec.structs import replace

from tocsin.core.events import (
    Acknowledged,
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Destroyed,
    Event,
    Expired,
    Fired,
    GaveUp,
    Kept,
    Kind,
    Moved,
    NothingCancelled,
    NothingResumed,
    Outcome,
    Paused,
    Refused,
    Resumed,
    Skipped,
    Undeliverable,
)
from tocsin.core.reminder import Acked, PauseInForce, Pending, Reminder
from tocsin.core.values import EpochMs


def evolve(reminder: Reminder | None, event: Event) -> Reminder | None:
    """Return what the reminder is after `event`; None: not armed.

    `event` concerns this reminder: by its name or, for Destroyed, as one of its actor's.
    """
    match event:
        case Fired():
            return _after_fire(reminder, event)
        case Armed(spec=spec, wake=wake):
            return Reminder(spec, 0, spec.anchor, None, wake)
        case Moved():
            return _moved(reminder, event)
        case Acknowledged():
            return _acknowledged(reminder, event)
        case GaveUp():
            return _gave_up(reminder, event)
        case Skipped() | Expired():
            return _after_slots(reminder, event)
        case Cancelled() | Destroyed() | Completed():
            return None
        case Undeliverable(fired=fired):
            return _after_fire(_without_pending(reminder, fired), fired)
        case Paused():
            assert reminder is not None, "only what is armed is paused"
            return replace(reminder, paused=PauseInForce(event.since, event.note))
        case Resumed():
            assert reminder is not None, "only what is armed is resumed"
            pending = None if reminder.acked is None else reminder.acked.pending
            acked = None if pending is None else Acked(pending, 0)
            return replace(reminder, paused=None, acked=acked)
        case Kept() | NothingCancelled() | NothingResumed() | Refused() | CommandsLost():
            return reminder
        case _:
            assert_never(event)


def _after_fire(reminder: Reminder | None, fired: Fired) -> Reminder | None:
    if reminder is None:
        return None
    if fired.retry is not None:
        return _outstanding(reminder, fired, fired.retry)
    if fired.next_due is None or fired.next_occurrence is None:
        return None
    if fired.next_occurrence == reminder.occurrence:  # by hand: the schedule did not move
        return reminder
    spec, acked = reminder.spec, reminder.acked
    return Reminder(spec, fired.next_occurrence, fired.next_due, None, fired.next_wake, acked)


def _without_pending(reminder: Reminder | None, fired: Fired) -> Reminder | None:
    """Return the reminder without the delivery of which no attempt will go out any more."""
    if reminder is None or reminder.acked is None or fired.kind is Kind.MANUAL:
        return reminder
    return replace(reminder, acked=None)


def _outstanding(reminder: Reminder, fired: Fired, retry: EpochMs) -> Reminder:
    failures = 0 if reminder.acked is None else reminder.acked.failures
    last = fired.next_occurrence is None or fired.next_due is None
    pending = Pending(fired.occurrence, fired.due, fired.attempt, fired.fired, retry, last)
    acked = Acked(pending, failures)
    if fired.next_occurrence is None or fired.next_due is None:
        return Reminder(reminder.spec, fired.occurrence, fired.due, None, None, acked)
    return Reminder(
        reminder.spec, fired.next_occurrence, fired.next_due, None, fired.next_wake, acked
    )


def _acknowledged(reminder: Reminder | None, event: Acknowledged) -> Reminder | None:
    assert reminder is not None, "only what is armed is acknowledged"
    acked = reminder.acked
    assert acked is not None, "something is outstanding"
    assert acked.pending is not None, "something is outstanding"
    if event.outcome is Outcome.RESCHEDULE:  # a new version follows
        return replace(reminder, acked=None)
    if event.outcome is Outcome.DONE:
        return None if acked.pending.last else replace(reminder, acked=None)
    pending = replace(acked.pending, retry=event.retry)
    return replace(reminder, acked=Acked(pending, acked.failures))


def _gave_up(reminder: Reminder | None, event: GaveUp) -> Reminder | None:
    assert reminder is not None, "only what is armed is given up"
    acked = reminder.acked
    assert acked is not None, "something is outstanding"
    assert acked.pending is not None, "something is outstanding"
    if event.listed:
        return replace(reminder, acked=Acked(replace(acked.pending, retry=None), event.failures))
    if acked.pending.last:
        return None
    return replace(reminder, acked=Acked(None, event.failures))


def _after_slots(reminder: Reminder | None, event: Skipped | Expired) -> Reminder | None:
    if reminder is None or event.next_due is None or event.next_occurrence is None:
        return None
    return Reminder(
        reminder.spec,
        event.next_occurrence,
        event.next_due,
        reminder.paused,
        event.next_wake,
        reminder.acked,
    )


def _moved(reminder: Reminder | None, moved: Moved) -> Reminder:
    assert reminder is not None, "only an armed reminder is moved"
    spec = replace(
        reminder.spec,
        version=moved.version,
        anchor=moved.anchor,
        every=moved.every,
        cron=moved.cron,
        after=moved.after,
        at=moved.at,
    )
    return Reminder(spec, 0, moved.anchor, reminder.paused, moved.wake)
