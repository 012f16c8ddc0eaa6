"""Each occurrence of each version is in exactly one event, or still open; none fires early, off its
grid, after its end, or twice.

The fold holds the open occurrence of each live version; an event must begin there. How versions
ended is remembered for the last of them alone: it only makes the words of a finding better.
"""

from collections import OrderedDict
from typing import assert_never

from msgspec import Struct

from tocsin.audit.findings import Findings, Kind, Place
from tocsin.audit.fold import Entry, Fold
from tocsin.codec.events import Stamp
from tocsin.core.commands import Cancel
from tocsin.core.errors import Reason
from tocsin.core.events import (
    Acknowledged,
    Armed,
    Cancelled,
    CommandsLost,
    Completed,
    Destroyed,
    Ended,
    Event,
    Expired,
    Fired,
    GaveUp,
    Kept,
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
from tocsin.core.events import Kind as FireKind
from tocsin.core.missed import LOST_SCHEDULE
from tocsin.core.naming import is_meant
from tocsin.core.reminder import Acked, Pending, Reminder, Spec, is_recurring, next_due
from tocsin.core.schedule.slots import next_slot, passed
from tocsin.core.schedule.zones import tz_version
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs, Offset, Version

#: Ended versions that are remembered.
ENDED_MAX = 10_000
#: How the error of a fire begins that our own code failed to decide; it ends the reminder.
FAULT = "fault: "


class _End(Struct, frozen=True):
    """How the last version of a name ended."""

    version: Version
    #: The last occurrence that went out; None: none did, at the end.
    fired: int | None
    how: str


class Occurrences:
    """Checks each event against what is armed, then folds it."""

    def __init__(self, fold: Fold, findings: Findings) -> None:
        self._fold = fold
        self._findings = findings
        #: Step, due and version of the last fire by the clock.
        self._last_due = (0, 0, 0)
        #: Step and version of the last event by the clock.
        self._last_look = (0, 0)
        self._ended: OrderedDict[tuple[str, str], _End] = OrderedDict()

    def take(self, place: Place, event: Event, stamp: Stamp) -> Entry | None:
        """Check and fold one event; return what it found armed, if it is in force."""
        actor, name = place.actor, place.reminder
        if actor is None:
            return None
        before = None if name is None else self._fold.entry(actor, name)
        match event:
            case Fired():
                before = self._fire(place, actor, before, event, stamp.step)
            case Undeliverable(fired=fired):
                fault = event.error.startswith((FAULT, LOST_SCHEDULE))
                before = self._fire(place, actor, before, fired, stamp.step, may_end=fault)
            case Acknowledged():
                before = self._acknowledge(place, actor, before, event)
            case GaveUp():
                before = self._give_up(place, actor, before, event)
            case Skipped() | Expired():
                before = self._pass_over(place, actor, before, event, stamp)
            case Completed():
                self._complete(place, actor, before, event)
                return None
            case Armed():
                self._arm(place, actor, before, event, stamp)
            case Moved():
                before = self._move(place, actor, before, event, stamp)
            case Cancelled():
                before = self._cancel(place, actor, before, event)
            case Paused() | Resumed():
                before = self._pause(place, actor, before, event)
            case NothingResumed():
                self._nothing_resumed(place, actor, before)
                return None
            case Destroyed():
                self._destroy(place, actor, event)
            case Kept():
                self._keep(place, actor, before, event)
                return None
            case NothingCancelled():
                self._nothing(place, actor, before, event)
                return None
            case Refused():
                self._refuse(place, before, event)
                return None
            case CommandsLost():
                return None
            case _:
                assert_never(event)
        if before is not None or isinstance(event, Armed | Destroyed):
            self._fold.apply(actor, name, event, stamp.step)
        return before

    # --- fires

    def _fire(
        self,
        place: Place,
        actor: str,
        before: Entry | None,
        fired: Fired,
        step: int,
        *,
        may_end: bool = False,
    ) -> Entry | None:
        """Check a fire; return what it fired, None when the fold must not follow it."""
        if fired.kind is FireKind.SCHEDULED and fired.fired < fired.due:
            early = fired.due - fired.fired
            self._add(Kind.EARLY, place, f"fired at {fired.fired}, {early} ms before its due")
        if fired.missed < 0:
            self._add(Kind.TILING, place, f"it passed over {fired.missed} occurrences")
            return None
        if before is None:
            before = self._adopt_for_fire(actor, fired)
        if before is None or before.reminder.spec.version != fired.version:
            self._fire_of_what_is_not_armed(place, actor, before, fired)
            return None
        if fired.kind is FireKind.MANUAL:
            self._by_hand(place, before, fired)
        elif fired.attempt > 1:
            if self._is_unmet(actor, before, _outstanding_before(fired)):
                before = self._adopt_outstanding(actor, _outstanding_before(fired))
            if not self._again(place, before, fired):
                return None
            self._check_due_order(place, before, step, known=before.counted)
        elif not self._scheduled(place, before, fired, may_end=may_end):
            return None
        else:
            self._check_due_order(place, before, step, known=before.woken)
        if fired.retry is None and (fired.next_occurrence is None or fired.next_due is None):
            if fired.kind is FireKind.MANUAL:
                self._remember(actor, fired.reminder, fired.version, None, "was fired by hand")
            else:
                self._remember(actor, fired.reminder, fired.version, fired.occurrence, "was done")
        return before

    def _fire_of_what_is_not_armed(
        self, place: Place, actor: str, now_armed: Entry | None, fired: Fired
    ) -> None:
        version = fired.version
        end = self._ended.get((actor, fired.reminder))
        if end is not None and end.version == version:
            again = end.fired is not None and fired.occurrence <= end.fired
            if again and fired.kind is FireKind.SCHEDULED:
                text = f"occurrence {fired.occurrence} of version {version} fired again"
                self._add(Kind.DUPLICATE_FIRE, place, text)
            else:
                text = f"version {version} fired although it {end.how} before"
                self._add(Kind.FIRE_AFTER_END, place, text)
        elif now_armed is not None and version < now_armed.reminder.spec.version:
            armed = now_armed.reminder.spec.version
            text = f"version {version} fired although version {armed} took its place before"
            self._add(Kind.FIRE_AFTER_END, place, text)
        else:
            self._add(Kind.UNARMED, place, f"version {version} fired, but it is not armed")

    def _by_hand(self, place: Place, before: Entry, fired: Fired) -> None:
        reminder = before.reminder
        if fired.missed or fired.missed_due is not None or fired.due != fired.fired:
            self._add(
                Kind.TILING, place, "a fire by hand is due when it fires, and passes over none"
            )
        if fired.occurrence != reminder.occurrence:
            text = f"fired by hand at occurrence {fired.occurrence}, open is {reminder.occurrence}"
            self._add(Kind.TILING, place, text)
        if before.timed:
            follows = (
                (reminder.occurrence, reminder.due) if is_recurring(reminder.spec) else (None, None)
            )
            self._check_follows(place, fired, follows)

    def _scheduled(self, place: Place, before: Entry, fired: Fired, *, may_end: bool) -> bool:
        """Check a fire by the clock; return whether the fold can follow it."""
        reminder = before.reminder
        if before.posed and reminder.paused is not None:
            text = f"version {fired.version} fired although it is paused"
            self._add(Kind.FIRE_PAUSED, place, text)
        first, last = fired.occurrence - fired.missed, fired.occurrence
        if last < reminder.occurrence:
            text = f"occurrence {last} of version {fired.version} fired again"
            self._add(Kind.DUPLICATE_FIRE, place, text)
            return False
        if reminder.acked is not None and reminder.acked.pending is not None:
            self._add(Kind.TILING, place, "it fired while another delivery is outstanding")
        if first < reminder.occurrence:
            text = f"occurrences {first} to {last} overlap: {reminder.occurrence} was open"
            self._add(Kind.TILING, place, text)
        elif first > reminder.occurrence:
            text = f"occurrences {reminder.occurrence} to {first - 1} are in no event"
            self._add(Kind.TILING, place, text)
        self._check_grid(place, before, fired, first)
        if reminder.wake is not None and fired.fired < reminder.wake:
            text = f"fired at {fired.fired}, before it woke at {reminder.wake}"
            self._add(Kind.EARLY, place, text)
        if _is_told(before, fired) and not (may_end and fired.next_occurrence is None):
            self._check_follows(place, fired, _slot_after(reminder.spec, last, fired.due, fired))
        self._check_wake(place, before, fired)
        return True

    def _again(self, place: Place, before: Entry, fired: Fired) -> bool:
        """Check a further attempt; return whether the fold can follow it."""
        reminder = before.reminder
        pending = None if reminder.acked is None else reminder.acked.pending
        told = f"attempt {fired.attempt} of occurrence {fired.occurrence}"
        if pending is None or pending.occurrence != fired.occurrence:
            if before.counted:
                self._add(Kind.DUPLICATE_FIRE, place, f"{told}, which is not outstanding")
            return False
        if fired.attempt != pending.attempt + 1 or pending.retry is None:
            text = f"{told} follows attempt {pending.attempt}"
            self._add(Kind.DUPLICATE_FIRE, place, text)
            return False
        if fired.fired < pending.retry:
            text = f"{told} fired at {fired.fired}, before {pending.retry}"
            self._add(Kind.EARLY, place, text)
        if before.posed and reminder.paused is not None:
            self._add(Kind.FIRE_PAUSED, place, f"{told} fired although it is paused")
        if fired.due != pending.due:
            self._add(Kind.GRID, place, f"{told} is due at {fired.due}, it was {pending.due}")
        follows = (None, None) if pending.last else (reminder.occurrence, reminder.due)
        self._check_follows(place, fired, follows)
        return True

    def _acknowledge(
        self, place: Place, actor: str, before: Entry | None, event: Acknowledged
    ) -> Entry | None:
        """Check that what is acknowledged is outstanding."""
        if self._is_unmet(actor, before, event):
            return self._adopt_outstanding(actor, event)
        pending = self._pending(place, before, event.version, event.occurrence)
        if before is None or pending is None:
            return None
        if not 1 <= event.attempt <= pending.attempt:
            text = f"attempt {event.attempt} is acknowledged, the newest is {pending.attempt}"
            self._add(Kind.CONTRADICTION, place, text)
        if event.outcome is Outcome.DONE and pending.last:
            self._remember(actor, event.reminder, event.version, event.occurrence, "was done")
        return before

    def _give_up(
        self, place: Place, actor: str, before: Entry | None, event: GaveUp
    ) -> Entry | None:
        """Check that what is given up is outstanding, and how often that happened in a row."""
        fired = event.fired
        if self._is_unmet(actor, before, _outstanding_before(fired)):
            return self._adopt_outstanding(actor, _outstanding_before(fired))
        pending = self._pending(place, before, fired.version, fired.occurrence)
        if before is None or pending is None:
            return None
        failures = 0 if before.reminder.acked is None else before.reminder.acked.failures
        if fired.attempt != pending.attempt or (before.counted and event.failures != failures + 1):
            text = f"attempt {fired.attempt}, failure {event.failures} in a row, is given up; it is"
            self._add(
                Kind.CONTRADICTION, place, f"{text} attempt {pending.attempt}, {failures + 1}"
            )
        if pending.last:
            self._remember(actor, fired.reminder, fired.version, fired.occurrence, "was given up")
        return before

    def _pending(
        self, place: Place, before: Entry | None, version: Version, occurrence: int
    ) -> Pending | None:
        """Return the outstanding delivery that an event speaks of."""
        if before is None or before.reminder.spec.version != version:
            self._add(Kind.UNARMED, place, f"version {version} is not armed")
            return None
        acked = before.reminder.acked
        pending = None if acked is None else acked.pending
        if pending is None or pending.occurrence != occurrence:
            if before.counted:
                text = f"occurrence {occurrence} of version {version} is not outstanding"
                self._add(Kind.CONTRADICTION, place, text)
            return None
        return pending

    def _pass_over(
        self,
        place: Place,
        actor: str,
        before: Entry | None,
        event: Skipped | Expired,
        stamp: Stamp,
    ) -> Entry | None:
        """Check that the slots that do not go out begin with the open one, and what follows."""
        opened = Ended(version=event.version, occurrence=event.first, due=event.first_due)
        before = self._check_ended(place, actor, event.reminder, before, opened)
        if before is None or event.version != before.reminder.spec.version:
            return None
        reminder, spec = before.reminder, before.reminder.spec
        if event.last < event.first:
            self._add(Kind.TILING, place, f"slots {event.first} to {event.last} are none")
            return None
        if before.timed:
            due = _due_of(reminder, event.last, event.last_due, event.tz)
            if event.last_due != due:
                text = f"occurrence {event.last} is said to be due at {event.last_due}, it is {due}"
                self._add(Kind.GRID, place, text)
        if _is_told(before, event):
            self._check_follows(place, event, _slot_after(spec, event.last, event.last_due, event))
        self._check_wake(place, before, event)
        if stamp.command is None:
            self._check_due_order(place, before, stamp.step, known=before.woken)
        if event.next_occurrence is None:
            self._remember(actor, event.reminder, event.version, None, "was done")
        return before

    def _complete(self, place: Place, actor: str, before: Entry | None, event: Completed) -> None:
        """Check that a schedule that came to its end had come to it."""
        end = self._ended.get((actor, event.reminder))
        if before is not None:
            text = f"completed, but {_said(before.reminder)} is open"
            self._add(Kind.CONTRADICTION, place, text)
        elif end is not None and end.version != event.version:
            text = f"version {event.version} completed, but version {end.version} was the last"
            self._add(Kind.CONTRADICTION, place, text)

    def _check_wake(self, place: Place, before: Entry, event: Fired | Skipped | Expired) -> None:
        """Check that jitter delays the next slot by no more than was asked."""
        due, wake = event.next_due, event.next_wake
        if not before.timed or not before.whole or wake is None:
            return
        options = before.reminder.spec.options
        longest = 0 if options is None else options.jitter
        if due is None or not due <= wake <= due + longest:
            text = f"it goes out at {wake}, due at {due}, with a jitter of {longest} ms"
            self._add(Kind.GRID, place, text)

    def _check_due_order(self, place: Place, before: Entry, step: int, *, known: bool) -> None:
        """Check that, within a step, what woke first fired first, then what was armed first.

        What one look at a reminder brought counts once.
        """
        reminder = before.reminder
        look = (step, reminder.spec.version)
        again, self._last_look = look == self._last_look, look
        if again or not known:
            return
        woke = next_due(reminder)
        due, version = max(reminder.due if woke is None else woke, 0), reminder.spec.version
        last = self._last_due
        if last[0] == step and (due, version) < last[1:]:
            text = f"due at {due}, version {version}, it fired after what was due at {last[1]}"
            self._add(Kind.ORDER, place, f"{text}, version {last[2]}")
        self._last_due = (step, due, version)

    def _check_grid(self, place: Place, before: Entry, fired: Fired, first: int) -> None:
        reminder, spec = before.reminder, before.reminder.spec
        open_due = reminder.due if first == reminder.occurrence else None
        if before.timed:
            due = _due_of(reminder, fired.occurrence, fired.due, fired.tz)
            fits = fired.due == due and (is_recurring(spec) or fired.occurrence == 0)
            expected = f"it is {due}"
        else:
            fits = fired.missed > 0 or open_due is None or fired.due == open_due
            expected = f"it was {open_due}"
        if not fits:
            text = f"occurrence {fired.occurrence} is said to be due at {fired.due}, {expected}"
            self._add(Kind.GRID, place, text)
        missed_due = open_due if fired.missed else None
        if fired.missed_due != missed_due and (open_due is not None or not fired.missed):
            text = f"the first it passed over is said to be due at {fired.missed_due}"
            self._add(Kind.GRID, place, f"{text}, it is {missed_due}")

    def _check_follows(
        self,
        place: Place,
        event: Fired | Skipped | Expired,
        follows: tuple[int | None, EpochMs | None],
    ) -> None:
        told = (event.next_occurrence, event.next_due)
        if told != follows:
            text = f"occurrence {told[0]} at {told[1]} is said to come next, it is {follows[0]}"
            self._add(Kind.NEXT_OCCURRENCE, place, f"{text} at {follows[1]}")

    def _adopt_for_fire(self, actor: str, fired: Fired) -> Entry | None:
        """Take as armed, before the cut, what a fire tells of."""
        if not self._fold.may_be_older(actor, fired.reminder, fired.version):
            return None
        if fired.attempt > 1:
            return self._adopt_outstanding(actor, _outstanding_before(fired))
        if fired.kind is FireKind.MANUAL and fired.next_due is not None:
            occurrence, due = fired.occurrence, fired.next_due
        else:
            occurrence = fired.occurrence - fired.missed
            due = fired.due if fired.missed_due is None else fired.missed_due
        return self._fold.adopt(actor, fired.reminder, fired.version, occurrence, due)

    def _is_unmet(self, actor: str, before: Entry | None, event: Acknowledged) -> bool:
        """Return whether what is outstanding was delivered before the cut, and not met since."""
        if before is None:
            return self._fold.may_be_older(actor, event.reminder, event.version)
        acked = before.reminder.acked
        if before.counted or before.reminder.spec.version != event.version:
            return False
        pending = None if acked is None else acked.pending
        return pending is None or pending.occurrence != event.occurrence

    def _adopt_outstanding(self, actor: str, event: Acknowledged) -> Entry:
        """Take as armed and outstanding, before the cut, what an event tells of."""
        last = event.next_occurrence is None or event.next_due is None
        retry = event.due if event.retry is None else event.retry
        pending = Pending(event.occurrence, event.due, event.attempt, event.due, retry, last)
        occurrence, due = event.occurrence, event.due
        if event.next_occurrence is not None and event.next_due is not None:
            occurrence, due = event.next_occurrence, event.next_due
        acked = Acked(pending, 0)
        return self._fold.adopt(actor, event.reminder, event.version, occurrence, due, acked)

    # --- what services asked for

    def _arm(
        self, place: Place, actor: str, before: Entry | None, armed: Armed, stamp: Stamp
    ) -> None:
        name, version = armed.spec.reminder, armed.spec.version
        self._check_version(place, version, stamp)
        if armed.previous is not None:
            before = self._check_ended(place, actor, name, before, armed.previous)
            self._remember(actor, name, armed.previous.version, None, "was replaced")
        elif before is not None:
            text = f"armed as if the name were free: {_said(before.reminder)} is in no event"
            self._add(Kind.TILING, place, text)
        replaced = armed.previous is not None and armed.previous.due != armed.spec.anchor
        if armed.replaced != replaced:
            self._add(Kind.CONTRADICTION, place, f"replaced is {armed.replaced}, not {replaced}")

    def _move(
        self, place: Place, actor: str, before: Entry | None, moved: Moved, stamp: Stamp
    ) -> Entry | None:
        self._check_version(place, moved.version, stamp)
        before = self._check_ended(place, actor, moved.reminder, before, moved.previous)
        self._remember(actor, moved.reminder, moved.previous.version, None, "was moved")
        return before

    def _cancel(
        self, place: Place, actor: str, before: Entry | None, cancelled: Cancelled
    ) -> Entry | None:
        ended = Ended(version=cancelled.version, occurrence=cancelled.occurrence, due=cancelled.due)
        before = self._check_ended(place, actor, cancelled.reminder, before, ended)
        self._remember(actor, cancelled.reminder, cancelled.version, None, "was cancelled")
        return before

    def _pause(
        self, place: Place, actor: str, before: Entry | None, event: Paused | Resumed
    ) -> Entry | None:
        opened = Ended(version=event.version, occurrence=event.occurrence, due=event.due)
        before = self._check_ended(place, actor, event.reminder, before, opened)
        if before is not None and before.posed:
            paused = before.reminder.paused
            since = None if paused is None else paused.since
            if since != event.since and (since is not None or isinstance(event, Resumed)):
                text = f"paused since {event.since}, by the events before since {since}"
                self._add(Kind.CONTRADICTION, place, text)
        return before

    def _nothing_resumed(self, place: Place, actor: str, before: Entry | None) -> None:
        live = self._fold.of_actor(actor)
        if place.reminder is not None:
            live = [] if before is None else [before]
        if any(entry.posed and entry.reminder.paused is not None for entry in live):
            self._add(Kind.CONTRADICTION, place, "a resume found nothing paused, but something is")

    def _destroy(self, place: Place, actor: str, event: Destroyed) -> None:
        live = self._fold.of_actor(actor)
        unmet = self._fold.cut and event.reminders > len(live)
        if event.reminders != len(live) and not unmet:
            text = f"{event.reminders} reminders are said to have gone, {len(live)} were armed"
            self._add(Kind.TILING, place, text)
        for entry in live:
            spec = entry.reminder.spec
            self._remember(actor, spec.reminder, spec.version, None, "was destroyed")

    def _keep(self, place: Place, actor: str, before: Entry | None, kept: Kept) -> None:
        """Check that a condition was held against what is armed."""
        armed = Ended(version=kept.version, occurrence=kept.occurrence, due=kept.due)
        if before is None and self._fold.may_be_older(actor, kept.reminder, kept.version):
            self._fold.adopt(actor, kept.reminder, kept.version, kept.occurrence, kept.due)
        elif before is None or armed != _open(before.reminder):
            said = "nothing is" if before is None else _said(before.reminder)
            text = f"kept as if occurrence {kept.occurrence} of version {kept.version}, due at "
            self._add(Kind.CONTRADICTION, place, f"{text}{kept.due}, were armed: {said}")

    def _nothing(
        self, place: Place, actor: str, before: Entry | None, event: NothingCancelled
    ) -> None:
        armed = [before] if before is not None else []
        if place.reminder is None:
            asked = Cancel(
                offset=Offset(0),
                appended=None,
                operation=event.operation,
                prefix=event.prefix,
                raw=event.raw,
            )
            live = self._fold.of_actor(actor)
            armed = [entry for entry in live if is_meant(entry.reminder.spec.reminder, asked)]
        if armed:
            text = f"a cancel found nothing, but {_said(armed[0].reminder)} is armed"
            self._add(Kind.CONTRADICTION, place, text)

    def _refuse(self, place: Place, before: Entry | None, event: Refused) -> None:
        if event.reason is Reason.ABSENT and before is not None:
            text = f"refused as absent, but {_said(before.reminder)} is armed"
            self._add(Kind.CONTRADICTION, place, text)
        if event.reason is Reason.EXISTS and before is None and not self._fold.cut:
            self._add(Kind.CONTRADICTION, place, "refused as armed, but nothing is")

    def _check_ended(
        self, place: Place, actor: str, name: str, before: Entry | None, ended: Ended
    ) -> Entry | None:
        """Check that an event ends what is open; return what it ends."""
        if before is None and self._fold.may_be_older(actor, name, ended.version):
            return self._fold.adopt(actor, name, ended.version, ended.occurrence, ended.due)
        if before is None:
            text = f"it ends version {ended.version}, which is not armed"
            self._add(Kind.UNARMED, place, text)
            return None
        reminder = before.reminder
        if ended != _open(reminder):
            text = f"it ends occurrence {ended.occurrence} of version {ended.version}, due at "
            self._add(Kind.TILING, place, f"{text}{ended.due}; open is {_said(reminder)}")
        return before

    def _check_version(self, place: Place, version: Version, stamp: Stamp) -> None:
        if stamp.command is None or int(version) != stamp.command or not stamp.answer:
            text = f"version {version} was made by the command at offset {stamp.command}"
            self._add(Kind.VERSION, place, text)

    def _remember(
        self, actor: str, name: str, version: Version, fired: int | None, how: str
    ) -> None:
        self._ended[actor, name] = _End(version, fired, how)
        self._ended.move_to_end((actor, name))
        if len(self._ended) > ENDED_MAX:
            self._ended.popitem(last=False)

    def _add(self, kind: Kind, place: Place, text: str) -> None:
        self._findings.add(kind, place, text)


def _is_told(before: Entry, event: Fired | Skipped | Expired) -> bool:
    """Return whether it is known what must follow `event`; where the schedule ends is an option."""
    return before.timed and (before.whole or event.next_occurrence is not None)


def _slot_after(
    spec: Spec, occurrence: int, due: EpochMs, event: Fired | Skipped | Expired
) -> tuple[int | None, EpochMs | None]:
    """Return what must follow; of a cron that another tz database computed, what is said to."""
    end, count = INSTANT_MS_MAX, None
    if spec.options is not None:
        end = min(end, INSTANT_MS_MAX if spec.options.until is None else spec.options.until)
        count = spec.options.occurrences
    following: int | None = None
    if spec.every is not None:
        following = due + spec.every
    elif spec.cron is not None and event.tz == tz_version():
        slot = next_slot(spec.cron, due)
        following = None if slot is None else slot.due
    elif spec.cron is not None:
        following = event.next_due
        if following is not None and following <= due:
            following = due + 1
    if following is None or following > end or (count is not None and occurrence + 1 >= count):
        return None, None
    return occurrence + 1, EpochMs(following)


def _due_of(reminder: Reminder, occurrence: int, told: EpochMs, tz: str | None) -> int:
    """Return when an occurrence is due; of a cron that another tz database computed, as told."""
    spec = reminder.spec
    if spec.cron is None:
        return spec.anchor + occurrence * (spec.every or 0)
    if occurrence == reminder.occurrence:
        return reminder.due
    if tz != tz_version():
        return told
    passed_over = passed(spec.cron, reminder.due, told)
    right = passed_over.count == occurrence - reminder.occurrence and passed_over.newest == told
    return told if right else -1


def _outstanding_before(fired: Fired) -> Acknowledged:
    """Return how the attempt before `fired` stood, or that which was given up."""
    return Acknowledged(
        reminder=fired.reminder,
        version=fired.version,
        occurrence=fired.occurrence,
        due=fired.due,
        attempt=fired.attempt if fired.retry is None else fired.attempt - 1,
        outcome=Outcome.FAILED,
        reason=None,
        retry=fired.fired,
        next_occurrence=fired.next_occurrence,
        next_due=fired.next_due,
    )


def _open(reminder: Reminder) -> Ended:
    return Ended(version=reminder.spec.version, occurrence=reminder.occurrence, due=reminder.due)


def _said(reminder: Reminder) -> str:
    version = reminder.spec.version
    return f"occurrence {reminder.occurrence} of version {version}, due at {reminder.due}"
