"""Deliveries that need an acknowledgement: one is outstanding per reminder, tried again with
back-off, and given up after its last attempt.

`done` for any attempt of the outstanding occurrence completes it; the rest counts only for the
newest attempt. What is for another version or occurrence is refused: the later decision wins.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tocsin.core.commands import Acknowledge, FireDue, Move
from tocsin.core.errors import Reason, Refusal
from tocsin.core.events import (
    Acknowledged,
    Completed,
    Event,
    Fired,
    GaveUp,
    Kind,
    Outcome,
    Paused,
)
from tocsin.core.recurrence import Slot, completion
from tocsin.core.reminder import Ack, Pending, Reminder, is_recurring
from tocsin.core.rules import check_duration, check_instant
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs, Offset

REASON_CHARS_MAX = 1024
_ID = re.compile(r"([0-9]{1,10}):([0-9]{1,19}):([0-9]{1,19})(?::a([0-9]{1,19}))?")
#: An attempt beyond which the back-off is the ceiling, whatever the factor.
_GROWING_MAX = 1_100


class DeliveryId(Struct, frozen=True):
    """A scheduled delivery, as its id tells it."""

    partition: int
    version: int
    occurrence: int
    attempt: int


def read_delivery_id(text: str) -> DeliveryId:
    """Return what the id of a scheduled delivery tells; raises Refusal."""
    found = _ID.fullmatch(text)
    if found is None:
        raise Refusal(
            Reason.INVALID,
            "delivery",
            text,
            "give the id of a scheduled delivery, such as 3:1041:0 or 3:1041:0:a2; a fire by hand "
            "needs no acknowledgement",
        )
    partition, version, occurrence, attempt = found.groups()
    return DeliveryId(int(partition), int(version), int(occurrence), int(attempt or 1))


def retry_at(ack: Ack, attempt: int, fired: int) -> EpochMs:
    """Return when an attempt that fired then is followed by the next, or given up."""
    wait = int(ack.timeout)
    if ack.attempts is None or attempt < ack.attempts:
        wait += _back_off(ack, attempt)
    return EpochMs(min(fired + wait, INSTANT_MS_MAX))


def look_again(
    reminder: Reminder, pending: Pending, ack: Ack, command: FireDue, now: EpochMs
) -> tuple[Event, ...]:
    """Return the next attempt of what was not acknowledged in time, or the end of it."""
    if ack.attempts is not None and pending.attempt >= ack.attempts:
        times = f"{pending.attempt} attempts" if pending.attempt > 1 else "its one attempt"
        error = f"not acknowledged after {times}"
        return give_up(reminder, pending, ack, now, error, command.next_command)
    attempt = pending.attempt + 1
    retry = retry_at(ack, attempt, now)
    return (_attempt(reminder, pending, attempt, now, command.next_command, retry),)


def acknowledge(
    reminders: Sequence[Reminder], command: Acknowledge, now: EpochMs, partition: int
) -> tuple[Event, ...]:
    """Return what an Acknowledge does; raises Refusal. For `reschedule` see `rescheduled`."""
    outcome = check(command)
    told = read_delivery_id(command.delivery)
    reminder, pending, ack = _outstanding(reminders, command, told, partition)
    newest = told.attempt == pending.attempt and pending.retry is not None
    if outcome not in (Outcome.DONE, Outcome.RESCHEDULE) and not newest:
        raise _superseded(command, f"the newest attempt is {pending.attempt}")
    asked_at = now if command.appended is None else command.appended
    retry: int | None = None
    match outcome:
        case Outcome.DONE | Outcome.RESCHEDULE:
            event = _acknowledged(reminder, pending, told, outcome, command, None)
            return (event, *_completed(reminder, pending, outcome))
        case Outcome.EXTEND:
            length = ack.timeout if command.after is None else command.after
            extended = replace(ack, timeout=length)
            retry = retry_at(extended, pending.attempt, asked_at)
        case Outcome.FAILED | Outcome.RETRY:
            if ack.attempts is not None and pending.attempt >= ack.attempts:
                said = command.reason or f"{outcome} at its last attempt"
                event = _acknowledged(reminder, pending, told, outcome, command, None)
                ended = give_up(reminder, pending, ack, now, said, command.offset)
                return (event, *ended)
            wait = _back_off(ack, pending.attempt) if command.after is None else command.after
            retry = min(asked_at + wait, INSTANT_MS_MAX)
    return (_acknowledged(reminder, pending, told, outcome, command, EpochMs(retry)),)


def rescheduled(reminder: Reminder, command: Acknowledge) -> Move:
    """Return the Move that done-and-reschedule-at is beside the acknowledgement."""
    return Move(
        offset=command.offset,
        appended=command.appended,
        reminder=reminder.spec.reminder,
        at=command.at,
        after=command.after,
    )


def meant(reminders: Sequence[Reminder], command: Acknowledge) -> list[Reminder]:
    """Return the reminder whose delivery this is, alone or none."""
    version = read_delivery_id(command.delivery).version
    return [reminder for reminder in reminders if reminder.spec.version == version]


def check(command: Acknowledge) -> Outcome:
    """Check everything that does not depend on what is outstanding; return the outcome."""
    try:
        outcome = Outcome(command.outcome)
    except ValueError:
        raise Refusal(
            Reason.INVALID, "outcome", command.outcome, f"give one of {', '.join(Outcome)}"
        ) from None
    if command.after is not None:
        check_duration("after", command.after)
        if outcome in (Outcome.DONE, Outcome.FAILED):
            raise Refusal(
                Reason.INVALID,
                "after",
                command.after,
                "after goes with retry, extend or reschedule: leave it out",
            )
    if command.at is not None:
        check_instant("at", command.at)
        if outcome is not Outcome.RESCHEDULE:
            raise Refusal(Reason.INVALID, "at", command.at, "at goes with reschedule: leave it out")
    if outcome is Outcome.RESCHEDULE and (command.at is None) == (command.after is None):
        raise Refusal(
            Reason.INVALID, "at", command.at, "reschedule needs at or after, and not both"
        )
    if command.reason is not None and len(command.reason) > REASON_CHARS_MAX:
        raise Refusal(
            Reason.LIMIT,
            "reason",
            len(command.reason),
            f"a reason has at most {REASON_CHARS_MAX} characters: put the rest elsewhere",
        )
    return outcome


def give_up(
    reminder: Reminder, pending: Pending, ack: Ack, now: EpochMs, error: str, command: Offset
) -> tuple[Event, ...]:
    """Return the end of an occurrence that nobody acknowledged."""
    spec = reminder.spec
    failures = 1 if reminder.acked is None else reminder.acked.failures + 1
    fired = _attempt(reminder, pending, pending.attempt, pending.fired, command, None)
    event = GaveUp(
        fired=fired,
        target=spec.to or "deliveries",
        error=error,
        failures=failures,
        listed=not is_recurring(spec),
    )
    if is_recurring(spec) and pending.last:
        return (event, *_completed(reminder, pending, Outcome.DONE))
    enough = ack.pause_after_failures is not None and failures >= ack.pause_after_failures
    if not enough or not is_recurring(spec):
        return (event,)
    paused = Paused(
        reminder=spec.reminder,
        version=spec.version,
        occurrence=reminder.occurrence,
        due=reminder.due,
        since=now if reminder.paused is None else reminder.paused.since,
        note=f"{failures} failures in a row",
    )
    return (event, paused)


def _outstanding(
    reminders: Sequence[Reminder], command: Acknowledge, told: DeliveryId, partition: int
) -> tuple[Reminder, Pending, Ack]:
    for reminder in reminders:
        if reminder.spec.version != told.version or told.partition != partition:
            continue
        acked, options = reminder.acked, reminder.spec.options
        if options is None or options.ack is None:
            raise _superseded(command, "its reminder needs no acknowledgement")
        if acked is None or acked.pending is None or acked.pending.occurrence != told.occurrence:
            raise _superseded(command, "that occurrence is not outstanding")
        if not 1 <= told.attempt <= acked.pending.attempt:
            raise _superseded(command, f"the newest attempt is {acked.pending.attempt}")
        return reminder, acked.pending, options.ack
    raise _superseded(
        command,
        "no reminder of the actor has this version: it is done, or was "
        "moved, replaced or cancelled",
    )


def _superseded(command: Acknowledge, why: str) -> Refusal:
    return Refusal(
        Reason.SUPERSEDED, "delivery", command.delivery, f"{why}; there is nothing left to do"
    )


def _back_off(ack: Ack, attempt: int) -> int:
    """Return how long after a failure of that attempt the next one goes out."""
    if attempt > _GROWING_MAX:
        return ack.ceiling
    try:
        return int(min(ack.ceiling, ack.initial * ack.factor ** (attempt - 1)))
    except OverflowError:
        return ack.ceiling


def _attempt(
    reminder: Reminder,
    pending: Pending,
    attempt: int,
    fired: EpochMs,
    next_command: Offset,
    retry: EpochMs | None,
) -> Fired:
    spec = reminder.spec
    return Fired(
        spec.reminder,
        spec.version,
        Kind.SCHEDULED,
        pending.occurrence,
        pending.due,
        fired,
        0,
        None,
        None if pending.last else reminder.occurrence,
        None if pending.last else reminder.due,
        next_command,
        None if pending.last else reminder.wake,
        None,
        attempt,
        retry,
    )


def _acknowledged(
    reminder: Reminder,
    pending: Pending,
    told: DeliveryId,
    outcome: Outcome,
    command: Acknowledge,
    retry: EpochMs | None,
) -> Acknowledged:
    return Acknowledged(
        reminder=reminder.spec.reminder,
        version=reminder.spec.version,
        occurrence=told.occurrence,
        due=pending.due,
        attempt=told.attempt,
        outcome=outcome,
        reason=command.reason,
        retry=retry,
        next_occurrence=None if pending.last else reminder.occurrence,
        next_due=None if pending.last else reminder.due,
    )


def _completed(reminder: Reminder, pending: Pending, outcome: Outcome) -> tuple[Completed, ...]:
    spec = reminder.spec
    if not (is_recurring(spec) and pending.last) or outcome is Outcome.RESCHEDULE:
        return ()
    return (
        Completed(
            reminder=spec.reminder,
            version=spec.version,
            occurrences=pending.occurrence + 1,
            reason=completion(spec, Slot(pending.occurrence, pending.due)),
        ),
    )
