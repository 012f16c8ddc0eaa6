"""One partition while this worker owns it."""

from collections import deque
from enum import StrEnum

from tocsin.core.events import CommandsLost
from tocsin.core.values import EpochMs, Offset
from tocsin.dataflow import Record
from tocsin.ports import KeyValues
from tocsin.runtime.index import TimerIndex


class Phase(StrEnum):
    """How far a partition is on its way to firing."""

    #: The store follows the state topic to its end.
    RESTORING = "restoring"
    #: Commands that were in the log before are consumed; nothing fires.
    CATCHING_UP = "catching_up"
    #: Due reminders fire.
    LIVE = "live"


class Partition:
    """What the loop knows of a partition that it owns. The object itself is the proof of ownership:
    once the partition is lost it is dropped, and with it all that was read on its behalf.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.phase = Phase.RESTORING
        #: Since when, on the monotonic clock, a predecessor's transaction is known to be undecided.
        self.pending_since: int | None = None
        self.store: KeyValues | None = None
        self._index: TimerIndex | None = None
        #: Commands read and not yet answered by a committed step.
        self.inbox: deque[Record] = deque()
        #: Number of the last committed step.
        self.step = 0
        self.engine_time = EpochMs(0)
        #: Offset of the first command that no committed step has answered.
        self.next_command = Offset(0)
        #: While CATCHING_UP: nothing fires before commands are consumed up to here.
        #: None: it has yet to be asked for.
        self.frozen_end: Offset | None = None
        #: Ids of this partition's topics, as each step record carries them.
        self.topic_ids: tuple[str, str, str] = ("", "", "")
        #: Commands that the log lost before they were read; told by the next step.
        self.lost: CommandsLost | None = None
        #: Records of the state topic read, and to be read, while restoring.
        self.restore_done = 0
        self.restore_total = 0

    @property
    def index(self) -> TimerIndex:
        """The timer index; there once the store was opened."""
        assert self._index is not None, "restore comes first"
        return self._index

    def mount(self, store: KeyValues, index: TimerIndex) -> None:
        """Take the opened store."""
        self.store, self._index = store, index

    @property
    def mounted(self) -> bool:
        """Whether there is an index to ask."""
        return self._index is not None

    def close(self) -> None:
        """Let go of the store."""
        store, self.store, self._index = self.store, None, None
        if store is not None:
            store.close()
