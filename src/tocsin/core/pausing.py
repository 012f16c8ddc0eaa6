"""Rest: a paused reminder has no due, and keeps version, slot and phase until it is resumed."""

from collections.abc import Sequence

from tocsin.core.commands import Pause, Resume
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import Event, NothingResumed, Paused, Resumed
from tocsin.core.evolve import evolve
from tocsin.core.limits import Limits
from tocsin.core.missed import skip_what_went_by
from tocsin.core.reminder import PauseInForce, Reminder
from tocsin.core.rules import check_pause
from tocsin.core.values import EpochMs


def pause(
    reminders: Sequence[Reminder], command: Pause, now: EpochMs, limits: Limits
) -> tuple[Event, ...]:
    """Return what a Pause does to those of `reminders` that it means; raises Refusal."""
    check_pause(command, limits)
    _check_any(reminders, command)
    return tuple(_paused(reminder, command, now) for reminder in reminders)


def resume(
    reminders: Sequence[Reminder],
    command: Resume,
    now: EpochMs,
    limits: Limits,
    partition: int,
) -> tuple[Event, ...]:
    """Return what a Resume does to those of `reminders` that it means; raises Refusal.

    What went by is decided once the reminder is awake, like after any downtime; only a schedule
    that skips does so at once, also when no more than one slot went by.
    """
    check_pause(command, limits)
    _check_any(reminders, command)
    resumed = tuple(
        event
        for reminder in reminders
        if reminder.paused is not None
        for event in _resumed(reminder, reminder.paused, command, now, partition)
    )
    return resumed or (NothingResumed(reminder=command.reminder),)


def _check_any(reminders: Sequence[Reminder], command: Pause | Resume) -> None:
    if reminders:
        return
    if command.reminder is None:
        raise Refusal(
            Reason.ABSENT,
            "all",
            True,  # noqa: FBT003  the field's value
            "the actor has no reminder: arm one",
        )
    raise Refusal(
        Reason.ABSENT, "reminder", command.reminder, "nothing is armed under this name: arm it"
    )


def _paused(reminder: Reminder, pause: Pause, now: EpochMs) -> Paused:
    return Paused(
        reminder=reminder.spec.reminder,
        version=reminder.spec.version,
        occurrence=reminder.occurrence,
        due=reminder.due,
        since=now if reminder.paused is None else reminder.paused.since,
        note=pause.note,
    )


def _resumed(
    reminder: Reminder, paused: PauseInForce, resume: Resume, now: EpochMs, partition: int
) -> tuple[Event, ...]:
    try:
        skipped = skip_what_went_by(reminder, now, partition)
    except Refusal:  # the zone is lost: awake, the reminder ends in the dead letters
        skipped = ()
    current: Reminder | None = reminder
    for event in skipped:
        current = evolve(current, event)
    if current is None:
        return skipped
    return (
        *skipped,
        Resumed(
            reminder=current.spec.reminder,
            version=current.spec.version,
            occurrence=current.occurrence,
            due=current.due,
            since=paused.since,
            note=resume.note,
        ),
    )
