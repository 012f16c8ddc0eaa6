"""State is a fold: evolve(reminder, event). It reads no clock and computes no recurrence."""

from typing import assert_never

from msgspec.structs import replace

from tocsin.core.events import (
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Destroyed,
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
from tocsin.core.reminder import PauseInForce, Reminder


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
        case Skipped() | Expired():
            return _after_slots(reminder, event)
        case Cancelled() | Destroyed() | Completed():
            return None
        case Undeliverable(fired=fired):
            return _after_fire(reminder, fired)
        case Paused():
            assert reminder is not None, "only what is armed is paused"
            return replace(reminder, paused=PauseInForce(event.since, event.note))
        case Resumed():
            assert reminder is not None, "only what is armed is resumed"
            return replace(reminder, paused=None)
        case Kept() | NothingCancelled() | NothingResumed() | Refused() | CommandsLost():
            return reminder
        case _:
            assert_never(event)


def _after_fire(reminder: Reminder | None, fired: Fired) -> Reminder | None:
    if reminder is None or fired.next_due is None or fired.next_occurrence is None:
        return None
    if fired.next_occurrence == reminder.occurrence:  # by hand: the schedule did not move
        return reminder
    return Reminder(reminder.spec, fired.next_occurrence, fired.next_due, None, fired.next_wake)


def _after_slots(reminder: Reminder | None, event: Skipped | Expired) -> Reminder | None:
    if reminder is None or event.next_due is None or event.next_occurrence is None:
        return None
    return Reminder(
        reminder.spec, event.next_occurrence, event.next_due, reminder.paused, event.next_wake
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
