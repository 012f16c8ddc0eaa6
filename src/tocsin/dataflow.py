"""The words of the map: topics, stores, processors; and the effects that processors return.

A processor is a function of what came, of the state it may see and of the turn it acts in. It
returns effects; the runtime puts them into one transaction and only then into the store.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct, field

from tocsin.core.commands import ServiceCommand
from tocsin.core.errors import Refusal
from tocsin.core.events import Event, Fired, Refused
from tocsin.core.limits import Limits
from tocsin.core.reminder import Reminder, Spec
from tocsin.core.values import EpochMs, Header, Offset, Version

# --- The map -----------------------------------------------------------------------------------


class Spread(Enum):
    """How a topic's partitions relate to those of the commands."""

    #: Partition p belongs to the owner of commands[p]; same count, for ever.
    OWNED = "owned"
    #: Partitioned by key, as a Java producer does; any count.
    KEYED = "keyed"


class Topic(Struct, frozen=True, kw_only=True):
    """A topic of the map. `name` is without the installation's prefix."""

    name: str
    key: str
    value: str
    spread: Spread
    doc: str
    #: Topic settings that the engine relies on: created so, checked at start.
    config: Mapping[str, str] = field(default_factory=dict)
    #: Settings that it is created with; the operator may change them.
    defaults: Mapping[str, str] = field(default_factory=dict)


class Store(Struct, frozen=True, kw_only=True):
    """An index that a worker keeps of one partition; a cache of its changelog topic."""

    name: str
    changelog: str
    doc: str


class Processor(Struct, frozen=True, kw_only=True):
    """A box of the map: `run` is called for each thing that its source yields."""

    name: str
    #: Name of a topic (each record) or of a store (each entry that is due).
    source: str
    #: Names of the topics it writes to.
    writes: tuple[str, ...]
    run: Callable[..., Sequence["Effect"]]

    @property
    def doc(self) -> str:
        """First line of what the function says of itself."""
        return (self.run.__doc__ or "").partition("\n")[0]


class Topology(Struct, frozen=True, kw_only=True):
    """The whole map."""

    topics: tuple[Topic, ...]
    stores: tuple[Store, ...]
    processors: tuple[Processor, ...]

    def topic(self, name: str) -> Topic:
        """Return the topic of that name; KeyError without one."""
        return {topic.name: topic for topic in self.topics}[name]

    def fed_by(self, source: str) -> Processor:
        """Return the processor whose source is `source`; KeyError without one."""
        return {processor.source: processor for processor in self.processors}[source]


# --- What processors get -----------------------------------------------------------------------


class Record(Struct, frozen=True):
    """One record of a topic, as it was read."""

    topic: str
    partition: int
    offset: Offset
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    #: Time of the record in milliseconds; `appended` says that the broker stamped it.
    timestamp: EpochMs
    appended: bool


class Incoming(Struct, frozen=True):
    """A command record and what could be read of it."""

    record: Record
    command: ServiceCommand | Refusal


class Due(Struct, frozen=True):
    """An entry of the due index that has come: this version of this reminder."""

    actor: str
    reminder: Reminder


class View(Protocol):
    """What is armed in one partition, earlier effects of the same turn included."""

    def reminder(self, actor: str, name: str) -> Reminder | None:
        """Return the armed reminder of that exact name."""

    def reminders(self, actor: str, beginning: str = "") -> list[Reminder]:
        """Return all reminders of the actor whose names begin so, by name."""

    def armed(self, actor: str) -> int:
        """Return how many reminders the actor has."""


#: One version of one reminder: the partition of its command, and the command's offset.
Armament = tuple[int, Version]


class Turn(Struct, frozen=True, kw_only=True):
    """One step of one partition; the same for all that is decided in it."""

    partition: int
    partitions: int
    #: Wall clock, stamped once.
    now: EpochMs
    #: Offset of the command that will be consumed next.
    next_command: Offset
    limits: Limits
    #: What the broker has just refused to take, with its words: topics, and single reminders.
    rejections: Mapping[str | Armament, str]


# --- What processors return --------------------------------------------------------------------


class Note(Struct, frozen=True):
    """Append an event to the audit log."""

    key: bytes | None
    event: Event
    #: The command that caused it; None: the clock did.
    command: Offset | None
    #: It is the last event of that command, its answer.
    answer: bool


class Change(Struct, frozen=True):
    """A reminder is now `after`, and was `before`; None: not armed."""

    actor: str
    name: str
    before: Reminder | None
    after: Reminder | None


class Deliver(Struct, frozen=True):
    """Send the delivery that `fired` decided."""

    actor: str
    spec: Spec
    fired: Fired


class BuryCommand(Struct, frozen=True):
    """Keep a command that nobody could read, or that made our own code fail."""

    record: Record
    event: Refused


class BuryDelivery(Struct, frozen=True):
    """Keep a delivery that the broker will never take."""

    actor: str
    spec: Spec
    fired: Fired
    target: str
    error: str


Effect = Note | Change | Deliver | BuryCommand | BuryDelivery
