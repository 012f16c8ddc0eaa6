"""The audit of one partition: the events folded and held against state, deliveries and commands.

State comes first and says at which step N it stands; events after N are left out, so that a live
system can be audited. Pure: records in, a report out.
"""

from collections.abc import Iterable

from msgspec import Struct

from tocsin.audit.deliveries import DeliveryLogs, DeliveryMatch
from tocsin.audit.findings import Finding, Findings, Kind, Place
from tocsin.audit.fold import Fold
from tocsin.audit.occurrences import Occurrences
from tocsin.audit.sequence import CommandLog, Sequence
from tocsin.audit.snapshot import Snapshot
from tocsin.codec.errors import Undecodable
from tocsin.codec.events import Stamp, decode_event
from tocsin.core.events import (
    CommandsLost,
    Event,
    Fired,
    Refused,
    Undeliverable,
    name_of,
)
from tocsin.core.time_text import INSTANT_MS_MAX
from tocsin.core.values import EpochMs
from tocsin.dataflow import Record

#: Findings that a report spells out; the rest is counted.
FINDINGS_MAX = 20


class Report(Struct, frozen=True, kw_only=True):
    """What was proved of one partition, and what not."""

    partition: int
    #: The steps that the report is about; both 0 without any.
    first_step: int
    last_step: int
    #: Retention cut the events: what was armed before `first_step` is known in part.
    cut: bool
    events: int
    fires: int
    #: Deliveries that were held against their event.
    deliveries: int
    live: int
    #: The first differences.
    findings: tuple[Finding, ...]
    #: How many differences of each kind there are.
    counts: dict[str, int]
    #: What cannot be proved, in words; no differences.
    unproved: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether no difference was found."""
        return not self.counts


def verify_partition(
    partition: int,
    events: Iterable[Record],
    state: Iterable[Record],
    *,
    deliveries: DeliveryLogs | None = None,
    commands: Iterable[Record] | None = None,
    events_start: int = 0,
    topic_ids: tuple[str, str, str] | None = None,
    findings_max: int = FINDINGS_MAX,
) -> Report:
    """Return what the log of `partition` proves.

    `state` and then `events` are read to their ends, each once and in the order of the log; the
    events must contain each step up to the last that the state tells. `events_start` is where the
    log of events starts now: above 0 retention cut it. `topic_ids` are those of commands, events
    and state now.
    """
    audit = _Audit(partition, state, deliveries, commands, events_start, findings_max)
    for record in events:
        audit.take(record)
    return audit.finish(topic_ids)


class _Audit:
    def __init__(
        self,
        partition: int,
        state: Iterable[Record],
        deliveries: DeliveryLogs | None,
        commands: Iterable[Record] | None,
        events_start: int,
        findings_max: int,
    ) -> None:
        self._partition = partition
        self._cut = cut = events_start > 0
        self._findings = findings = Findings(partition, findings_max)
        self._snapshot = Snapshot("state", state, findings)
        self._fold = Fold(cut=cut, spec_of=self._snapshot.spec)
        self._commands = CommandLog(commands, findings, cut=cut)
        self._sequence = Sequence(findings, self._commands, cut=cut)
        self._occurrences = Occurrences(self._fold, findings)
        self._deliveries = DeliveryMatch(partition, deliveries, findings)
        self._events = self._fires = 0
        self._beyond: int | None = None
        self._place = Place("events", None)

    def take(self, record: Record) -> None:
        """Take one event, in the order of the log."""
        actor = None if record.key is None else record.key.decode(errors="replace")
        place = Place("events", record.offset, actor)
        try:
            event, stamp = decode_event(record.value or b"")
        except Undecodable as error:
            self._findings.add(Kind.UNDECODABLE, place, str(error))
            return
        place = Place("events", record.offset, actor, name_of(event))
        if self._is_beyond(place, stamp):
            return
        if not isinstance(event, Refused | CommandsLost) and not _is_text(record.key):
            self._findings.add(Kind.UNDECODABLE, place, f"its key {record.key!r} is no actor")
            return
        self._events += 1
        self._place = place
        self._sequence.check(place, event, stamp)
        if self._cut and self._events == 1:
            self._deliveries.begin_at(stamp.engine_time)
        if self._fold.first_command is None and stamp.command is not None:
            self._fold.first_command = stamp.command
        self._follow(place, event, stamp)

    def _is_beyond(self, place: Place, stamp: Stamp) -> bool:
        """Whether the event is of a later step than the state that was read."""
        last = self._snapshot.step
        if last is None:
            return False
        if stamp.step > last.step:
            self._beyond = stamp.step
            return True
        if self._beyond is not None:
            text = f"an event of step {stamp.step} follows step {self._beyond}"
            self._findings.add(Kind.ORDER, place, text)
            self._beyond = None
        return False

    def _follow(self, place: Place, event: Event, stamp: Stamp) -> None:
        fired_upon = self._occurrences.take(place, event, stamp)
        if isinstance(event, Undeliverable):
            self._fires += 1
        if not isinstance(event, Fired):
            return
        self._fires += 1
        if fired_upon is None:
            self._deliveries.tolerate(event)
        elif fired_upon.whole:
            self._deliveries.expect(place, fired_upon.reminder.spec, event)
        else:
            self._deliveries.pass_over(place, event)

    # --- the end

    def finish(self, topic_ids: tuple[str, str, str] | None) -> Report:
        """Compare the ends."""
        self._sequence.finish(self._place)
        self._check_step_record(topic_ids)
        if self._sequence.next_command is not None:
            self._commands.finish(self._sequence.next_command)
        if self._cut and not self._events:
            self._deliveries.begin_at(EpochMs(INSTANT_MS_MAX))
        self._deliveries.finish()
        unknown = self._snapshot.compare(self._fold, self._sequence.first_step)
        findings = self._findings
        return Report(
            partition=self._partition,
            first_step=self._sequence.first_step or 0,
            last_step=self._sequence.step,
            cut=self._cut,
            events=self._events,
            fires=self._fires,
            deliveries=self._deliveries.matched,
            live=len(self._fold),
            findings=tuple(findings.first),
            counts={kind.value: count for kind, count in sorted(findings.counts.items())},
            unproved=tuple(self._unproved(unknown)),
        )

    def _check_step_record(self, topic_ids: tuple[str, str, str] | None) -> None:
        step, sequence = self._snapshot.step, self._sequence
        place = Place("state", self._snapshot.step_offset)
        if step is None:
            if sequence.first_step is not None or len(self._snapshot):
                self._add(
                    place,
                    "the state has no step record: the topic was recreated or lost its end; "
                    "`tocsin state rebuild`, in a later release, folds the events into it",
                )
            return
        nothing_left = self._cut and sequence.first_step is None
        if step.step != sequence.step and not nothing_left:
            self._add(place, f"the state is of step {step.step}, events end at {sequence.step}")
        elif not nothing_left:
            if sequence.next_command not in (None, step.next_command):
                text = f"command {step.next_command} is said to come next, by the events "
                self._add(place, f"{text}{sequence.next_command}")
            if step.engine_time != sequence.engine_time:
                text = f"engine time is {step.engine_time}, of the events "
                self._add(place, f"{text}{sequence.engine_time}")
        wrote = (step.commands_id, step.events_id, step.state_id)
        if topic_ids is not None and wrote != topic_ids:
            text = f"it was written for the topics {wrote}, which now are {topic_ids}"
            self._add(place, f"{text}: a topic was recreated")

    def _add(self, place: Place, text: str) -> None:
        self._findings.add(Kind.STEP_RECORD, place, text)

    def _unproved(self, unknown: int) -> Iterable[str]:
        first = self._sequence.first_step
        if self._cut and first is None:
            yield "no events are left: nothing can be proved"
        elif self._cut:
            yield f"retention cut the events: proved from step {(first or 0) + 1} on"
        if unknown:
            yield f"{unknown} reminders armed before the events that are left"
        if self._deliveries.unproved:
            yield (
                f"{self._deliveries.unproved} fires or deliveries whose other half is older than "
                "what is left"
            )


def _is_text(key: bytes | None) -> bool:
    try:
        return key is not None and key.decode() is not None
    except UnicodeDecodeError:
        return False
