"""The client: asks the engine, and awaits its answer where the caller wants to know."""

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self, Unpack, overload

from tocsin.client import arguments
from tocsin.client.arguments import ArmOptions, MoveOptions
from tocsin.client.errors import NoAnswerError, refused_here, refused_there
from tocsin.client.handles import Answer, Handle
from tocsin.client.owners import Owners
from tocsin.client.ports import ClientLog, Web
from tocsin.client.reading import DeadLetter, LoggedEvent, Reader, Readers, Received
from tocsin.codec.commands import TRACEPARENT, encode_command
from tocsin.codec.errors import Undecodable
from tocsin.codec.events import decode_event
from tocsin.core.commands import ServiceCommand
from tocsin.core.errors import Refusal
from tocsin.core.events import Refused
from tocsin.core.partitioning import partition_of
from tocsin.core.values import Header, Offset, Version
from tocsin.ports import Clock, LogReader

#: How long `wait=True` waits.
WAIT_S = 10.0
#: Longest look for an answer at a time; short, so that Ctrl-C is heard.
SLICE_S = 0.2
BATCH = 500

#: False: the command is in the log. True or seconds: the engine has answered it.
#: (mypy counts False among the numbers, hence the ignored overlaps below.)
Wait = bool | float


class Client:
    """What a service has of Tocsin. Safe to use from several threads; close it, or use `with`.

    With `wait`, each command returns an Answer, and raises RefusedError or NoAnswerError; without,
    a Handle as soon as the brokers have it, and whether the engine agreed is in the events.
    """

    def __init__(
        self, log: ClientLog, web: Web, clock: Clock, *, prefix: str, token: str | None
    ) -> None:
        self._log = log
        self._clock = clock
        self._commands = f"{prefix}.commands"
        self._events = f"{prefix}.events"
        self._readers = Readers(log, clock, prefix)
        #: Readers between two waits; each wait takes one, or makes one.
        self._idle_readers: deque[LogReader] = deque()
        #: What the workers that own the partitions tell: what is armed, what is due next.
        self.owners = Owners(
            self._readers, web, lambda: log.partitions(self._commands), token=token
        )

    # --- Commands ------------------------------------------------------------------------------

    @overload
    def arm(  # type: ignore[overload-overlap]
        self,
        actor: str,
        reminder: str,
        *,
        wait: Literal[False] = ...,
        **options: Unpack[ArmOptions],
    ) -> Handle: ...
    @overload
    def arm(
        self, actor: str, reminder: str, *, wait: Wait, **options: Unpack[ArmOptions]
    ) -> Answer: ...
    def arm(
        self, actor: str, reminder: str, *, wait: Wait = False, **options: Unpack[ArmOptions]
    ) -> Handle | Answer:
        """Arm a reminder, or replace it whole. Due now, unless at, after or every say when."""
        return self._ask(actor, reminder, lambda: arguments.arm(reminder, options), wait)

    @overload
    def move(  # type: ignore[overload-overlap]
        self,
        actor: str,
        reminder: str,
        *,
        wait: Literal[False] = ...,
        **options: Unpack[MoveOptions],
    ) -> Handle: ...
    @overload
    def move(
        self, actor: str, reminder: str, *, wait: Wait, **options: Unpack[MoveOptions]
    ) -> Answer: ...
    def move(
        self, actor: str, reminder: str, *, wait: Wait = False, **options: Unpack[MoveOptions]
    ) -> Handle | Answer:
        """Change when an armed reminder is due; all else stays."""
        return self._ask(actor, reminder, lambda: arguments.move(reminder, options), wait)

    @overload
    def cancel(  # type: ignore[overload-overlap]
        self,
        actor: str,
        reminder: str | None = ...,
        *,
        operation: str | None = ...,
        prefix: str | None = ...,
        raw: bool = ...,
        all: bool = ...,
        if_version: int | None = ...,
        wait: Literal[False] = ...,
    ) -> Handle: ...
    @overload
    def cancel(
        self,
        actor: str,
        reminder: str | None = ...,
        *,
        operation: str | None = ...,
        prefix: str | None = ...,
        raw: bool = ...,
        all: bool = ...,
        if_version: int | None = ...,
        wait: Wait,
    ) -> Answer: ...
    def cancel(
        self,
        actor: str,
        reminder: str | None = None,
        *,
        operation: str | None = None,
        prefix: str | None = None,
        raw: bool = False,
        all: bool = False,  # noqa: A002  the name on the wire
        if_version: int | None = None,
        wait: Wait = False,
    ) -> Handle | Answer:
        """Disarm a reminder by its exact name, or several. Absent is no error.

        Several are those of an `operation`, those under a `prefix` (`raw`: those that begin with
        it), or `all` of the actor's.
        """
        return self._ask(
            actor,
            reminder,
            lambda: arguments.cancel(
                reminder,
                operation=operation,
                prefix=prefix,
                raw=raw,
                all_of_actor=all,
                if_version=if_version,
            ),
            wait,
        )

    @overload
    def fire(self, actor: str, reminder: str, *, wait: Literal[False] = ...) -> Handle: ...  # type: ignore[overload-overlap]
    @overload
    def fire(self, actor: str, reminder: str, *, wait: Wait) -> Answer: ...
    def fire(self, actor: str, reminder: str, *, wait: Wait = False) -> Handle | Answer:
        """Deliver an armed reminder now, on top of its schedule; a one-shot is done then."""
        return self._ask(actor, reminder, lambda: arguments.fire(reminder), wait)

    @overload
    def pause(  # type: ignore[overload-overlap]
        self,
        actor: str,
        reminder: str | None = ...,
        *,
        all: bool = ...,
        note: str | None = ...,
        wait: Literal[False] = ...,
    ) -> Handle: ...
    @overload
    def pause(
        self,
        actor: str,
        reminder: str | None = ...,
        *,
        all: bool = ...,
        note: str | None = ...,
        wait: Wait,
    ) -> Answer: ...
    def pause(
        self,
        actor: str,
        reminder: str | None = None,
        *,
        all: bool = False,  # noqa: A002  the name on the wire
        note: str | None = None,
        wait: Wait = False,
    ) -> Handle | Answer:
        """Let a reminder rest, or `all` that the actor has now: no due until it is resumed."""
        return self._ask(
            actor,
            reminder,
            lambda: arguments.pause(reminder, all_of_actor=all, note=note),
            wait,
        )

    @overload
    def resume(  # type: ignore[overload-overlap]
        self,
        actor: str,
        reminder: str | None = ...,
        *,
        all: bool = ...,
        note: str | None = ...,
        wait: Literal[False] = ...,
    ) -> Handle: ...
    @overload
    def resume(
        self,
        actor: str,
        reminder: str | None = ...,
        *,
        all: bool = ...,
        note: str | None = ...,
        wait: Wait,
    ) -> Answer: ...
    def resume(
        self,
        actor: str,
        reminder: str | None = None,
        *,
        all: bool = False,  # noqa: A002  the name on the wire
        note: str | None = None,
        wait: Wait = False,
    ) -> Handle | Answer:
        """End a pause; the missed policy decides about what went by meanwhile."""
        return self._ask(
            actor,
            reminder,
            lambda: arguments.resume(reminder, all_of_actor=all, note=note),
            wait,
        )

    @overload
    def destroy(self, actor: str, *, wait: Literal[False] = ...) -> Handle: ...  # type: ignore[overload-overlap]
    @overload
    def destroy(self, actor: str, *, wait: Wait) -> Answer: ...
    def destroy(self, actor: str, *, wait: Wait = False) -> Handle | Answer:
        """End the actor: everything it has goes."""
        return self._ask(actor, None, arguments.destroy, wait)

    # --- Reading -------------------------------------------------------------------------------

    def deliveries(
        self,
        *,
        topic: str | None = None,
        group: str | None = None,
        from_beginning: bool = False,
        to_end: bool = False,
        limit: int | None = None,
        idle: float | None = None,
    ) -> Reader[Received]:
        """Return a reader of deliveries: all of them, or with `group` the share of one member.

        Each delivery id appears once here. A handler that may crash between its effect and its
        next call sees the last one again: let it tell copies by `id`.
        """
        return self._readers.deliveries(
            topic=topic,
            group=group,
            from_beginning=from_beginning,
            to_end=to_end,
            limit=limit,
            idle=idle,
        )

    def events(
        self,
        actor: str | None = None,
        *,
        from_beginning: bool = False,
        to_end: bool = False,
        limit: int | None = None,
        idle: float | None = None,
    ) -> Reader[LoggedEvent]:
        """Return a reader of the audit log, of one actor or of all."""
        try:
            key = None if actor is None else arguments.key_of(actor)
        except Refusal as refusal:
            raise refused_here(refusal) from refusal
        return self._readers.events(
            key=key, from_beginning=from_beginning, to_end=to_end, limit=limit, idle=idle
        )

    def dead_letters(
        self,
        *,
        from_beginning: bool = False,
        to_end: bool = False,
        limit: int | None = None,
        idle: float | None = None,
    ) -> Reader[DeadLetter]:
        """Return a reader of the dead letters."""
        return self._readers.dead_letters(
            from_beginning=from_beginning, to_end=to_end, limit=limit, idle=idle
        )

    # --- Its life ------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the brokers."""
        while self._idle_readers:
            self._idle_readers.pop().close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        self.close()

    # --- How -----------------------------------------------------------------------------------

    def _ask(
        self, actor: str, reminder: str | None, build: Callable[[], ServiceCommand], wait: Wait
    ) -> Handle | Answer:
        try:
            key = arguments.key_of(actor)
            command = build()
        except Refusal as refusal:
            raise refused_here(refusal) from refusal
        if wait is False:
            return self._send(actor, reminder, key, command)
        return self._send_and_wait(
            actor, reminder, key, command, WAIT_S if wait is True else float(wait)
        )

    def _send(
        self, actor: str, reminder: str | None, key: bytes, command: ServiceCommand
    ) -> Handle:
        trace = arguments.trace_of(command)
        headers: list[Header] = [] if trace is None else [(TRACEPARENT, trace.encode())]
        written = self._log.write(self._commands, key, encode_command(command), headers)
        return Handle(actor, reminder, Version(written.offset), written.partition)

    def _send_and_wait(
        self, actor: str, reminder: str | None, key: bytes, command: ServiceCommand, seconds: float
    ) -> Answer:
        partition = partition_of(key, self._log.partitions(self._commands))
        # Before the command is sent: its answer cannot lie before the end as it is now.
        start = self._log.bounds(self._events, [partition])[partition].stable_end
        reader = self._idle_readers.pop() if self._idle_readers else self._log.reader()
        try:
            reader.seek(self._events, partition, start)
            handle = self._send(actor, reminder, key, command)
            answer = self._await(reader, handle, seconds)
        finally:
            reader.leave(self._events, partition)
            self._idle_readers.append(reader)
        if isinstance(answer.event, Refused):
            raise refused_there(answer.event, handle)
        return answer

    def _await(self, reader: LogReader, handle: Handle, seconds: float) -> Answer:
        until = self._clock.monotonic_ms() + round(seconds * 1000)
        while True:
            left_s = (until - self._clock.monotonic_ms()) / 1000
            for record in reader.read(min(max(left_s, 0), SLICE_S), BATCH):
                if record.topic != self._events or record.partition != handle.partition:
                    continue  # fetched for an earlier wait
                try:
                    event, stamp = decode_event(record.value or b"")
                except Undecodable:  # of a newer release; an answer to us we could read
                    continue
                if stamp.answer and stamp.command == Offset(handle.version):
                    return Answer(handle, event, stamp)
            if left_s <= 0:
                raise NoAnswerError(handle, seconds)
