"""The decisions: decide(reminder, command, now) -> events. Pure; `now` is an argument.

A well-formed command that loses is answered by a Refused event, not by an exception.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from tocsin.core.commands import (
    Arm,
    Cancel,
    Destroy,
    Fire,
    FireDue,
    Move,
    Pause,
    Resume,
    ServiceCommand,
)
from tocsin.core.conditions import asked, unchanged
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import (
    Armed,
    Cancelled,
    Destroyed,
    Ended,
    Event,
    Fired,
    Kept,
    Kind,
    Moved,
    NothingCancelled,
    Refused,
    Unchanged,
)
from tocsin.core.limits import Limits
from tocsin.core.missed import CATCH_UP_MS, look
from tocsin.core.naming import is_meant
from tocsin.core.pausing import pause, resume
from tocsin.core.recurrence import Slot, newest_due, slot_after, tz_of
from tocsin.core.reminder import Reminder, Spec, is_recurring
from tocsin.core.rules import check_arm, check_cancel, check_move, check_name
from tocsin.core.rules_of_options import check_end, options_of
from tocsin.core.rules_of_schedules import cron_of, first_slot
from tocsin.core.schedule.values import Cron
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs, Version
from tocsin.core.waking import wake_of

#: Characters of a refused name that its event repeats. Far above any limit on names: only what
#: would make the event larger than a topic takes is cut.
NAME_SHOWN_MAX = 1024


def decide(
    reminder: Reminder | None,
    command: ServiceCommand,
    now: EpochMs,
    limits: Limits,
    partition: int = 0,
) -> tuple[Event, ...]:
    """Return what `command` does to the one reminder that it names; never empty.

    `partition` is that of the commands; jitter depends on it.

    For Cancel, Pause and Resume of several and for Destroy, see `decide_all`.
    """
    try:
        match command:
            case Arm():
                return (_arm(reminder, command, now, limits, partition),)
            case Move():
                return (_move(reminder, command, now, limits, partition),)
            case Cancel():
                return (_cancel(reminder, command, limits),)
            case Fire():
                return (_fire(reminder, command, now, limits),)
            case Pause() | Resume() | Destroy():
                named = () if reminder is None else (reminder,)
                return decide_all(named, command, now, limits, partition)
            case _:
                assert_never(command)
    except Refusal as refusal:
        return (refused(refusal, command),)


def decide_all(
    reminders: Sequence[Reminder],
    command: Cancel | Pause | Resume | Destroy,
    now: EpochMs,
    limits: Limits,
    partition: int = 0,
) -> tuple[Event, ...]:
    """Return what `command` does to an actor with these `reminders`; never empty.

    A Cancel may be given only those whose names begin as `naming.beginning` says.
    """
    try:
        match command:
            case Cancel():
                return _cancel_several(reminders, command, limits)
            case Pause():
                return pause(reminders, command, now, limits)
            case Resume():
                return resume(reminders, command, now, limits, partition)
            case Destroy():
                return (Destroyed(reminders=len(reminders)),)
            case _:
                assert_never(command)
    except Refusal as refusal:
        return (refused(refusal, command),)


def decide_due(
    reminder: Reminder | None,
    command: FireDue,
    now: EpochMs,
    limits: Limits,
    partition: int = 0,
) -> tuple[Event, ...]:
    """Return the fire of the newest slot due at `now`; empty when there is nothing to fire.

    Where the reminder has options, what they make of the slots that went by: see `missed.look`.
    Never early: compares the due with the wall clock `now` alone.
    """
    if reminder is None or reminder.spec.version != command.version or reminder.due > now:
        return ()
    if reminder.paused is not None:
        return ()
    spec = reminder.spec
    if spec.options is not None or spec.cron is not None:
        if reminder.wake is not None and reminder.wake > now:
            return ()
        return look(reminder, command, now, limits, partition)
    # The same for all defaults, without what it costs: most reminders have no options.
    slot = newest_due(reminder, now)
    following = slot_after(spec, slot)
    if spec.every is not None and (following is None or now - reminder.due > CATCH_UP_MS):
        return look(reminder, command, now, limits, partition)
    missed = slot.occurrence - reminder.occurrence
    return (
        Fired(
            spec.reminder,
            command.version,
            Kind.SCHEDULED,
            slot.occurrence,
            slot.due,
            now,
            missed,
            reminder.due if missed else None,
            following.occurrence if following else None,
            following.due if following else None,
            command.next_command,
        ),
    )


def refused(refusal: Refusal, command: ServiceCommand | None) -> Refused:
    """Return the event that answers `command` with `refusal`."""
    name: str | None = getattr(command, "reminder", None)
    return Refused(
        reason=refusal.reason,
        command=type(command).__name__.lower() if command is not None else None,
        reminder=name[:NAME_SHOWN_MAX] if name is not None else None,
        field=refusal.field,
        value=refusal.value,
        way_out=refusal.way_out,
    )


def _arm(
    reminder: Reminder | None, arm: Arm, now: EpochMs, limits: Limits, partition: int
) -> Armed | Kept:
    check_arm(arm, limits)
    options = options_of(arm)
    if arm.if_absent and reminder is not None:
        raise Refusal(
            Reason.EXISTS,
            "reminder",
            arm.reminder,
            f"it is armed, version {reminder.spec.version}: leave out if_absent to replace it",
        )
    if arm.if_version is not None:
        if reminder is None:
            raise Refusal(
                Reason.OTHER_VERSION,
                "if_version",
                arm.if_version,
                "nothing is armed under this name: leave out if_version to arm it",
            )
        _check_version(reminder, arm.if_version)
    cron = cron_of(arm)
    due = _first_due(arm, cron, now)
    after, at = asked(arm, due)
    spec = Spec(
        reminder=arm.reminder,
        version=Version(arm.offset),
        anchor=due,
        every=arm.every,
        payload=arm.payload,
        content_type=arm.content_type,
        headers=arm.headers,
        to=arm.to,
        traceparent=arm.traceparent,
        after=after,
        at=at,
        options=options,
        cron=cron,
    )
    wake = None
    if options is not None:
        check_end("until", arm.until, spec)
        wake = wake_of(spec, Slot(0, due), partition)
    if reminder is None:
        return Armed(spec=spec, wake=wake, tz=tz_of(spec))
    if arm.if_earlier or arm.if_changed:
        reason = unchanged(reminder, arm, spec)
        if reason is not None:
            return _kept(reminder, reason)
    replaced = reminder.due != due
    return Armed(spec=spec, previous=_ended(reminder), wake=wake, tz=tz_of(spec), replaced=replaced)


def _move(
    reminder: Reminder | None, move: Move, now: EpochMs, limits: Limits, partition: int
) -> Moved:
    check_move(move, limits)
    armed = _check_armed(reminder, move.reminder)
    if move.if_version is not None:
        _check_version(armed, move.if_version)
    every, cron = armed.spec.every, armed.spec.cron
    if move.every is not None or move.cron is not None:
        every, cron = move.every, cron_of(move)
    due = _first_due(move, cron, now)
    after, at = asked(move, due)
    spec = replace(armed.spec, version=Version(move.offset), anchor=due, every=every, cron=cron)
    wake = None
    if spec.options is not None:
        check_end("at" if move.at is not None else "after", move.at or move.after, spec)
        wake = wake_of(spec, Slot(0, due), partition)
    return Moved(
        reminder=move.reminder,
        version=spec.version,
        anchor=due,
        every=every,
        previous=_ended(armed),
        after=after,
        at=at,
        wake=wake,
        cron=cron,
        tz=tz_of(spec),
    )


def _cancel(
    reminder: Reminder | None, cancel: Cancel, limits: Limits
) -> Cancelled | NothingCancelled:
    check_cancel(cancel, limits)
    if reminder is None:
        return NothingCancelled(reminder=cancel.reminder)
    if cancel.if_version is not None:
        _check_version(reminder, cancel.if_version)
    return _cancelled(reminder)


def _cancel_several(
    reminders: Sequence[Reminder], cancel: Cancel, limits: Limits
) -> tuple[Event, ...]:
    check_cancel(cancel, limits)
    meant = [reminder for reminder in reminders if is_meant(reminder.spec.reminder, cancel)]
    if meant:
        return tuple(_cancelled(reminder) for reminder in meant)
    return (
        NothingCancelled(
            reminder=None, operation=cancel.operation, prefix=cancel.prefix, raw=cancel.raw
        ),
    )


def _fire(reminder: Reminder | None, fire: Fire, now: EpochMs, limits: Limits) -> Fired:
    check_name(fire.reminder, limits)
    armed = _check_armed(reminder, fire.reminder)
    recurring = is_recurring(armed.spec)
    return Fired(
        fire.reminder,
        armed.spec.version,
        Kind.MANUAL,
        armed.occurrence,
        now,
        now,
        0,
        None,
        armed.occurrence if recurring else None,
        armed.due if recurring else None,
        fire.offset,
        armed.wake if recurring else None,
    )


def _first_due(command: Arm | Move, cron: Cron | None, now: EpochMs) -> EpochMs:
    """Return the due of occurrence 0, counted from the append time of the command.

    An instant that was past when the command was appended means that moment; one that the
    engine's own backlog let pass keeps its due, so that its lateness is told.
    """
    asked_at = command.appended if command.appended is not None else now
    if command.at is not None:
        return max(command.at, asked_at)
    if command.after is None and cron is not None:
        return first_slot(cron, asked_at)
    field, delay = (
        ("after", command.after) if command.after is not None else ("every", command.every or 0)
    )
    due = EpochMs(asked_at + delay)
    if due > INSTANT_MS_MAX:
        raise Refusal(
            Reason.INVALID, field, delay, "it ends after the year 9999: give a shorter one"
        )
    return due


def _check_armed(reminder: Reminder | None, name: str) -> Reminder:
    if reminder is None:
        raise Refusal(Reason.ABSENT, "reminder", name, "nothing is armed under this name: arm it")
    return reminder


def _check_version(armed: Reminder, version: Version) -> None:
    if armed.spec.version != version:
        raise Refusal(
            Reason.OTHER_VERSION,
            "if_version",
            version,
            f"the armed version is {armed.spec.version}: read it again and decide anew",
        )


def _ended(reminder: Reminder) -> Ended:
    return Ended(version=reminder.spec.version, occurrence=reminder.occurrence, due=reminder.due)


def _kept(reminder: Reminder, reason: Unchanged) -> Kept:
    return Kept(
        reminder=reminder.spec.reminder,
        version=reminder.spec.version,
        occurrence=reminder.occurrence,
        due=reminder.due,
        reason=reason,
    )


def _cancelled(reminder: Reminder) -> Cancelled:
    return Cancelled(
        reminder=reminder.spec.reminder,
        version=reminder.spec.version,
        occurrence=reminder.occurrence,
        due=reminder.due,
    )
