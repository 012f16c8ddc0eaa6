"""What an audit finds: the first differences, each of a kind that scripts can rely on."""

from collections import Counter
from enum import StrEnum

from msgspec import Struct

from tocsin.core.values import Offset


class Kind(StrEnum):
    """Which law the log breaks. The values are told to scripts: add, never rename."""

    #: A record that cannot be read.
    UNDECODABLE = "undecodable"
    #: Offsets or steps go back; what was due or decided first comes second.
    ORDER = "order"
    #: A step is not there.
    STEP_GAP = "step_gap"
    #: The step record of the state topic is absent, or says something else than the events.
    STEP_RECORD = "step_record"
    #: Engine time went back, or a fire is later than it.
    ENGINE_TIME = "engine_time"
    #: A command was answered twice, out of order, or not to its end.
    ANSWER = "answer"
    #: A command that the engine passed over without an event.
    UNANSWERED = "unanswered"
    #: The command that was to come next is another one.
    NEXT_COMMAND = "next_command"
    #: A version is not the offset of the command that made it.
    VERSION = "version"
    #: A fire before its due.
    EARLY = "early"
    #: The same occurrence fired again.
    DUPLICATE_FIRE = "duplicate_fire"
    #: A fire by the clock of what was paused.
    FIRE_PAUSED = "fire_paused"
    #: A fire of what had been cancelled, replaced, moved, destroyed or done.
    FIRE_AFTER_END = "fire_after_end"
    #: An event about a version that was never armed.
    UNARMED = "unarmed"
    #: Occurrences of a version overlap, or one is in no event.
    TILING = "tiling"
    #: A due that is not anchor + k * every.
    GRID = "grid"
    #: The occurrence said to come next does not follow.
    NEXT_OCCURRENCE = "next_occurrence"
    #: An answer that what is armed contradicts.
    CONTRADICTION = "contradiction"
    STATE_MISSING = "state_missing"
    STATE_EXTRA = "state_extra"
    STATE_DIFFERS = "state_differs"
    #: A state record written by another step than the event that last changed it.
    STATE_STEP = "state_step"
    DELIVERY_MISSING = "delivery_missing"
    DELIVERY_DUPLICATE = "delivery_duplicate"
    #: A delivery that no event decided.
    DELIVERY_EXTRA = "delivery_extra"
    DELIVERY_DIFFERS = "delivery_differs"


class Place(Struct, frozen=True):
    """Where in the logs, and whom it is about."""

    topic: str
    offset: Offset | None
    actor: str | None = None
    reminder: str | None = None


class Finding(Struct, frozen=True, kw_only=True):
    """One difference. `partition` is that of the events, whatever the topic."""

    kind: Kind
    partition: int
    topic: str
    offset: Offset | None
    actor: str | None
    reminder: str | None
    text: str


class Findings:
    """The first `limit` findings of a partition, and how many there are of each kind."""

    def __init__(self, partition: int, limit: int) -> None:
        self._partition = partition
        self._limit = limit
        self.first: list[Finding] = []
        self.counts: Counter[Kind] = Counter()

    def add(self, kind: Kind, place: Place, text: str) -> None:
        """Take one finding."""
        self.counts[kind] += 1
        if len(self.first) < self._limit:
            self.first.append(
                Finding(
                    kind=kind,
                    partition=self._partition,
                    topic=place.topic,
                    offset=place.offset,
                    actor=place.actor,
                    reminder=place.reminder,
                    text=text,
                )
            )
