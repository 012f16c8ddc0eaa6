"""Finds out which delivery the broker will never take, and remembers it for a while.

A refusal can fail a whole transaction without naming anybody. Then steps of one decision each tell:
what fails alone is at fault. The engine's own topics are no delivery's fault: they end the worker.
"""

from collections.abc import Callable, Mapping
from functools import partial

from tocsin.core.values import EpochMs
from tocsin.dataflow import Armament
from tocsin.ports import Aborted, Report, WorldError
from tocsin.runtime.names import Names

#: What the broker refused is tried again after this long.
REJECTION_MS = 30_000
#: Steps of one decision each, in search of a delivery that nobody named.
PROBES_MAX = 10_000
#: Errors about one record; any other that is permanent is about its topic.
RECORD_ERRORS = frozenset({"MSG_SIZE_TOO_LARGE", "INVALID_RECORD"})


class EngineTopicRefused(WorldError):
    """The broker refuses a record of the engine's own topics for good; the message says which."""


class Rejections:
    """What one producer's broker refuses to take."""

    def __init__(self, names: Names, own_topics: frozenset[str]) -> None:
        self._default_target = names.topic("deliveries")
        self._own_topics = own_topics
        self._known: dict[str | Armament, str] = {}
        self._until: dict[str | Armament, EpochMs] = {}
        self._probes_left = 0
        self.begin_step(EpochMs(0))

    @property
    def known(self) -> Mapping[str | Armament, str]:
        """Topics and single reminders that were refused lately, with the broker's words."""
        return self._known

    @property
    def probing(self) -> bool:
        """Whether a step may hold one decision only, to find out whose fault it is."""
        return self._probes_left > 0

    def begin_step(self, now: EpochMs) -> None:
        """Forget the last step, and what is old enough to be tried again."""
        self._refused: list[tuple[str, Armament, str]] = []
        self._watched: list[str] = []
        for subject, until in list(self._until.items()):
            if until <= now:
                del self._until[subject], self._known[subject]

    def watch(self, topic: str, armament: Armament) -> Callable[[Report], None] | None:
        """Return what has to be told the fate of this delivery; None where it costs too much."""
        if topic == self._default_target and not self._probes_left:
            return None
        self._watched.append(topic)
        return partial(self._told, topic, armament)

    def _told(self, topic: str, armament: Armament, report: Report) -> None:
        if report.permanent and report.error is not None:
            self._refused.append((topic, armament, report.error))

    def committed(self) -> None:
        """Take note of a step that went well."""
        self._probes_left = max(0, self._probes_left - 1)

    def learn(self, aborted: Aborted, now: EpochMs) -> None:
        """Draw the lesson from an aborted step; EngineTopicRefused when nobody else is at fault."""
        if not aborted.permanent:
            return
        culprits = self._culprits(aborted)
        if not self._probes_left and culprits.keys() <= {self._default_target}:
            # Nobody is named, or the topic of most deliveries: a single one may be at fault.
            self._probes_left = PROBES_MAX
            return
        own = sorted(self._own_topics.intersection(map(str, culprits)))
        if own or not culprits:
            raise EngineTopicRefused(
                f"the broker refuses records of {', '.join(own) or 'a topic'} for good: {aborted}. "
                "Check that the topic exists, its size limit and the ACLs."
            )
        for subject, error in culprits.items():
            self._known[subject] = error
            self._until[subject] = EpochMs(now + REJECTION_MS)
        self._probes_left = 0

    def _culprits(self, aborted: Aborted) -> dict[str | Armament, str]:
        culprits: dict[str | Armament, str] = {topic: str(aborted) for topic in aborted.topics}
        for topic, armament, error in self._refused:
            if error.partition(":")[0] in RECORD_ERRORS:
                culprits[armament] = error
                culprits.pop(topic, None)
            else:
                culprits[topic] = error
        if not culprits and self._probes_left:
            culprits = {topic: str(aborted) for topic in self._watched}
        return culprits
