"""What holds from one event to the next, whatever is armed: offsets, steps, engine time, answers.

Steps go up by exactly one and engine time never goes back; answered commands go up, each has one
answer, its events are in one step, and a fire names the command that comes after the last answer.
"""

from collections.abc import Iterable, Iterator

from tocsin.audit.findings import Findings, Kind, Place
from tocsin.codec.events import Stamp
from tocsin.core.events import CommandsLost, Event, Fired, Undeliverable
from tocsin.core.events import Kind as FireKind
from tocsin.core.values import EpochMs, Offset
from tocsin.dataflow import Record


class Sequence:
    """How far the events have come."""

    def __init__(self, findings: Findings, commands: "CommandLog", *, cut: bool) -> None:
        self._findings = findings
        self._commands = commands
        self._cut = cut
        self._offset = -1
        self.first_step: int | None = None
        self.step = 0
        self.engine_time = EpochMs(0)
        #: Engine time of the first event, above that of all that was cut off.
        self.first_engine_time: EpochMs | None = None
        #: The command that comes next; None: no event told yet.
        self.next_command: Offset | None = None
        self._unfinished: Offset | None = None

    def check(self, place: Place, event: Event, stamp: Stamp) -> None:
        """Take one event, in the order of the log."""
        self._check_offset(place)
        self._check_step(place, stamp)
        self._check_engine_time(place, event, stamp)
        if isinstance(event, CommandsLost):
            self._check_lost(place, event)
        elif stamp.command is not None:
            self._check_command(place, stamp.command, answer=stamp.answer)
        fired = event.fired if isinstance(event, Undeliverable) else event
        if isinstance(fired, Fired):
            self._check_next(place, fired, stamp)

    def finish(self, place: Place) -> None:
        """Take note that no more events come."""
        self._check_finished(place)

    def _check_offset(self, place: Place) -> None:
        offset = place.offset
        if offset is None:
            return
        if offset <= self._offset:
            self._findings.add(Kind.ORDER, place, f"it comes after offset {self._offset}")
        self._offset = offset

    def _check_step(self, place: Place, stamp: Stamp) -> None:
        if self.first_step is None:
            self.first_step, self.first_engine_time = stamp.step, stamp.engine_time
            if self._cut:
                self.step = stamp.step
                return
        if stamp.step == self.step:
            return
        self._check_finished(place)
        if stamp.step < self.step:
            self._findings.add(
                Kind.ORDER, place, f"an event of step {stamp.step} follows step {self.step}"
            )
            return
        if stamp.step != self.step + 1:
            self._findings.add(
                Kind.STEP_GAP,
                place,
                f"step {stamp.step} follows step {self.step}: what lies between is gone",
            )
        self.step = stamp.step

    def _check_engine_time(self, place: Place, event: Event, stamp: Stamp) -> None:
        if stamp.engine_time < self.engine_time:
            self._findings.add(
                Kind.ENGINE_TIME,
                place,
                f"engine time {stamp.engine_time} follows {self.engine_time}",
            )
        self.engine_time = max(self.engine_time, stamp.engine_time)
        fired = event.fired if isinstance(event, Undeliverable) else event
        if isinstance(fired, Fired) and fired.fired > stamp.engine_time:
            self._findings.add(
                Kind.ENGINE_TIME,
                place,
                f"fired at {fired.fired}, when engine time was {stamp.engine_time}",
            )

    def _check_command(self, place: Place, command: Offset, *, answer: bool) -> None:
        expected = self.next_command
        if self._unfinished is not None and command != self._unfinished:
            self._check_finished(place)
        elif expected is not None and command < expected and self._unfinished is None:
            self._findings.add(
                Kind.ANSWER,
                place,
                f"command {command} after the answer to command {expected - 1}: "
                "each is answered once, in order",
            )
        self._unfinished = None if answer else command
        if expected is None or command >= expected:
            self.next_command = Offset(command + 1)
        if answer:
            self._commands.answered(command)

    def _check_finished(self, place: Place) -> None:
        if self._unfinished is not None:
            self._findings.add(
                Kind.ANSWER, place, f"the last event of command {self._unfinished} is not there"
            )
            self._unfinished = None

    def _check_lost(self, place: Place, lost: CommandsLost) -> None:
        expected = self.next_command
        if expected is not None and lost.first != expected:
            self._findings.add(
                Kind.NEXT_COMMAND,
                place,
                f"commands are lost from {lost.first} on, but {expected} was to come next",
            )
        self.next_command = Offset(lost.last + 1)
        self._commands.lost(lost.last)

    def _check_next(self, place: Place, fired: Fired, stamp: Stamp) -> None:
        if fired.kind is FireKind.MANUAL:
            if stamp.command != fired.next_command or not stamp.answer:
                self._findings.add(
                    Kind.NEXT_COMMAND,
                    place,
                    f"fired by command {fired.next_command}, yet it answers {stamp.command}",
                )
            return
        if stamp.command is not None:
            self._findings.add(
                Kind.ANSWER, place, f"a fire by the clock that answers command {stamp.command}"
            )
        if self.next_command is not None and fired.next_command != self.next_command:
            self._findings.add(
                Kind.NEXT_COMMAND,
                place,
                f"it says that command {fired.next_command} came next, after the answers it is "
                f"{self.next_command}",
            )
        if self.next_command is None:
            self.next_command = fired.next_command


class CommandLog:
    """The commands that are still in the log, held against their answers."""

    def __init__(
        self, records: Iterable[Record] | None, findings: Findings, *, cut: bool = False
    ) -> None:
        self._records: Iterator[Record] = iter(records or ())
        self._ahead: Record | None = None
        self._findings = findings
        #: Commands before the first answer may have had theirs in what was cut off.
        self._excused = cut

    def answered(self, command: Offset) -> None:
        """Take the answer to `command`: all commands before it had theirs."""
        self._pass(Offset(command), silent=self._excused)
        self._excused = False
        self._pass(Offset(command + 1), silent=True)

    def lost(self, last: Offset) -> None:
        """Take that the log lost the commands up to `last`."""
        self._excused = False
        self._pass(Offset(last + 1), silent=True)

    def finish(self, next_command: Offset) -> None:
        """Take that every command before `next_command` was answered."""
        self._pass(next_command, silent=self._excused)

    def _pass(self, end: Offset, *, silent: bool) -> None:
        while True:
            record = self._ahead or next(self._records, None)
            self._ahead = record
            if record is None or record.offset >= end:
                return
            self._ahead = None
            if not silent:
                actor = (record.key or b"").decode(errors="replace")
                self._findings.add(
                    Kind.UNANSWERED,
                    Place(record.topic, record.offset, actor),
                    "the engine passed over this command without an event",
                )
