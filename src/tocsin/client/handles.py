"""What a service holds in hand after it asked for something."""

from msgspec import Struct

from tocsin.codec.events import Stamp
from tocsin.core.events import Event
from tocsin.core.values import Version


class Handle(Struct, frozen=True):
    """A command that is in the log, by its delivery report."""

    actor: str
    #: None where the command names no reminder.
    reminder: str | None
    #: Offset of the command. Of an arm or move it is the reminder's version: give it as
    #: `if_version` to change only what you armed. It counts once the engine agreed; see `wait`.
    version: Version
    #: Partition of the commands, and of the events that answer.
    partition: int


class Answer(Struct, frozen=True):
    """The engine's last event about a command."""

    handle: Handle
    event: Event
    stamp: Stamp

    @property
    def version(self) -> Version:
        """Offset of the command; of an arm or move the version that it made."""
        return self.handle.version
