"""The events of a partition, folded actor by actor with core.evolve: what is armed, and the step
that last changed it.

Memory is bounded by what is live. Where retention cut the log, a reminder that was armed before
the cut is adopted when the first event speaks of it; what that event does not tell stays unknown.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from tocsin.core.events import Armed, Destroyed, Event, Fired, Kind, Moved, Paused, Resumed
from tocsin.core.evolve import evolve
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.values import EpochMs, Offset, Version

#: Step of a change that lies before the cut.
STEP_UNKNOWN = 0


class Entry(Struct, frozen=True):
    """One live reminder."""

    reminder: Reminder
    #: Step of the event that last changed it.
    step: int
    #: Payload, headers and target are known.
    whole: bool = True
    #: Anchor and period are known.
    timed: bool = True
    #: Whether it is paused is known.
    posed: bool = True


def _tells_pause(event: Event) -> bool:
    """Return whether one knows after `event` whether the reminder is paused."""
    by_clock = isinstance(event, Fired) and event.kind is Kind.SCHEDULED
    return by_clock or isinstance(event, Armed | Paused | Resumed)


def _unknown(_actor: str, _name: str) -> Spec | None:
    return None


class Fold:
    """What is armed after the events so far."""

    def __init__(
        self, *, cut: bool = False, spec_of: Callable[[str, str], Spec | None] = _unknown
    ) -> None:
        #: Events before the first one are gone from the log.
        self.cut = cut
        #: The first command that a retained event tells of; versions below it may be older.
        self.first_command: Offset | None = None
        #: What the state says of a reminder whose Armed event is gone.
        self._spec_of = spec_of
        self._live: dict[str, dict[str, Entry]] = {}
        #: Armed before the cut and met since; and actors that ended with some never met.
        self._adopted: set[tuple[str, str]] = set()
        self._ended_actors: set[str] = set()

    def entry(self, actor: str, name: str) -> Entry | None:
        """Return the live reminder of that exact name."""
        named = self._live.get(actor)
        return None if named is None else named.get(name)

    def of_actor(self, actor: str) -> list[Entry]:
        """Return the actor's live reminders."""
        return list(self._live.get(actor, {}).values())

    def __iter__(self) -> Iterator[tuple[str, str, Entry]]:
        """Yield actor, name and entry of all that is live."""
        for actor, named in self._live.items():
            for name, entry in named.items():
                yield actor, name, entry

    def __len__(self) -> int:
        """Return how many reminders are live."""
        return sum(len(named) for named in self._live.values())

    def apply(self, actor: str, name: str | None, event: Event, step: int) -> None:
        """Take one event: about `name`, or about the whole actor."""
        if isinstance(event, Destroyed):
            gone = self._live.pop(actor, {})
            if self.cut and event.reminders > len(gone):
                self._ended_actors.add(actor)
            return
        if name is None:
            return
        before = self.entry(actor, name)
        old = None if before is None else before.reminder
        after = evolve(old, event)
        if after is old:
            return
        if after is None:
            named = self._live[actor]
            del named[name]
            if not named:
                del self._live[actor]
            return
        self._live.setdefault(actor, {})[name] = Entry(
            after,
            step,
            whole=isinstance(event, Armed) or (before is not None and before.whole),
            timed=isinstance(event, Armed | Moved) or (before is not None and before.timed),
            posed=_tells_pause(event) or (before is not None and before.posed),
        )

    # --- where retention cut the log

    def may_be_older(self, actor: str, name: str, version: Version) -> bool:
        """Whether this version may have been armed before the cut, and not been met since."""
        return (
            self.cut
            and (self.first_command is None or version < self.first_command)
            and (actor, name) not in self._adopted
            and actor not in self._ended_actors
        )

    def adopt(
        self, actor: str, name: str, version: Version, occurrence: int, due: EpochMs
    ) -> Entry:
        """Take as live, from before the cut, what an event tells of.

        The rest is the state's word while it has that version still, else it stays unknown.
        """
        known = self._spec_of(actor, name)
        if known is not None and known.version != version:
            known = None
        spec = known or Spec(
            reminder=name,
            version=version,
            anchor=due,
            every=None,
            payload=b"",
            content_type=None,
            headers=(),
            to=None,
            traceparent=None,
        )
        told = known is not None
        reminder = Reminder(spec, occurrence, due)
        entry = Entry(reminder, STEP_UNKNOWN, whole=told, timed=told, posed=False)
        self._adopted.add((actor, name))
        self._live.setdefault(actor, {})[name] = entry
        return entry
