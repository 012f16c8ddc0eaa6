"""What must have come of a log of commands, from outside: the standard library and nothing else.

The commands are replayed in log order with their append times. Where a command and a fire raced,
both ways are legal, and the answer must be the one that belongs to the way it went: a reminder was
delivered or it was still there for the command, never both and never neither.

A race is bounded. An owner consumes what is in the log before it fires, so a fire stamped later
than `margin_ms` after the append of the command that ended its version is a fault, however late the
engine was; and what was due `lateness_ms_max` before such a command must have been delivered.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A command as its delivery report tells: where it is, and when the broker appended it."""

    partition: int
    offset: int
    appended: int
    actor: str
    command: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A delivery as a read_committed reader saw it."""

    id: str
    key: str
    actor: str
    reminder: str
    kind: str
    due: int
    first_due: int
    fired: int
    version: int
    occurrence: int | None
    missed: int
    period: int | None
    payload: bytes
    #: Timestamp of the record.
    timestamp: int
    #: Wall clock of the reader; None where nobody watched.
    arrived: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Answer:
    """One event that a command caused."""

    what: str
    reminder: str | None = None
    version: int = -1
    #: Version that a new one took the place of; -1: none.
    previous: int = -1
    reason: str = ""
    count: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A law that was broken, and about whom."""

    law: str
    actor: str
    reminder: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found, and how much there was to be found."""

    faults: Sequence[Fault]
    counts: Mapping[str, int]
    #: Longest time from an ending command's append to a fire that still won, and longest lateness.
    closest_race_ms: int
    lateness_ms: int


def judge(
    sent: Iterable[Sent],
    answers: Mapping[tuple[int, int], Sequence[Answer]],
    came: Iterable[Came],
    *,
    until: int,
    margin_ms: int,
    lateness_ms_max: int,
) -> Verdict:
    """Hold the deliveries and answers against what the commands must have led to.

    What was due at `until` had all the time it needed.
    """
    court = _Court(came, answers, until, margin_ms, lateness_ms_max)
    for command in sorted(sent, key=lambda one: (one.partition, one.offset)):
        court.take(command)
    return court.verdict()


@dataclass(slots=True)
class _Life:
    """One version of a reminder."""

    sent: Sent
    name: str
    anchor: int
    every: int | None
    payload: bytes

    @property
    def version(self) -> int:
        return self.sent.offset

    def id(self, occurrence: int) -> str:
        return f"{self.sent.partition}:{self.version}:{occurrence}"


@dataclass(slots=True)
class _Outcome:
    """What a command does to one reminder, had it been `before`."""

    answer: Answer
    after: _Life | None
    #: The version that was there is no more.
    ends: bool = False
    #: A delivery by hand.
    manual: bool = False


@dataclass(slots=True)
class _Court:
    came: Iterable[Came]
    answers: Mapping[tuple[int, int], Sequence[Answer]]
    until: int
    margin_ms: int
    lateness_ms_max: int
    faults: list[Fault] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    closest_race_ms: int = 0
    lateness_ms: int = 0
    by_id: dict[str, Came] = field(default_factory=dict)
    by_version: dict[tuple[int, int], list[Came]] = field(init=False)
    unclaimed: set[str] = field(init=False)
    lives: dict[tuple[str, str], _Life] = field(default_factory=dict)
    homes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_version = defaultdict(list)
        for one in self.came:
            self._check_alone(one)
            if one.id in self.by_id:
                self._fault("exactly once", one.actor, one.reminder, f"{one.id} came again")
                continue
            self.by_id[one.id] = one
            if one.kind == "scheduled":
                self.by_version[int(one.id.partition(":")[0]), one.version].append(one)
        self.unclaimed = set(self.by_id)

    def verdict(self) -> Verdict:
        for (actor, _), life in self.lives.items():
            self._close(actor, life, None)
        for one in sorted(self.unclaimed):
            there = self.by_id[one]
            self._fault("none unexpected", there.actor, there.reminder, f"{one}: {there}")
        return Verdict(
            faults=self.faults,
            counts=self.counts,
            closest_race_ms=self.closest_race_ms,
            lateness_ms=self.lateness_ms,
        )

    # --- one command

    def take(self, sent: Sent) -> None:
        if self.homes.setdefault(sent.actor, sent.partition) != sent.partition:
            self._fault("one partition", sent.actor, None, "two partitions have its commands")
        told = self.answers.get((sent.partition, sent.offset), ())
        ((what, fields),) = sent.command.items()
        self.counts[f"{what} sent"] += 1
        if what == "destroy" or (what == "cancel" and fields.get("all")):
            expected = self._take_all(sent, what)
        elif what in {"arm", "move", "cancel", "fire"}:
            expected = [self._take_one(sent, what, fields, told)]
        else:
            expected = [Answer("refused", reason="invalid")]
        if sorted(told) != sorted(expected):
            self._fault(
                "each command its answer",
                sent.actor,
                fields.get("reminder") if isinstance(fields, dict) else None,
                f"{sent.partition}:{sent.offset} {dict(sent.command)} must come to {expected}, "
                f"the log says {list(told)}",
            )
        for answer in expected:
            self.counts[answer.what] += 1

    def _take_one(
        self, sent: Sent, what: str, fields: Mapping[str, Any], told: Sequence[Answer]
    ) -> Answer:
        name = fields["reminder"]
        life = self.lives.get((sent.actor, name))
        outcome = _outcome(sent, what, fields, life)
        if life is not None:
            fire = self._one_shot_fire(life)
            if fire is not None:
                gone = _outcome(sent, what, fields, None)
                if outcome.ends or (outcome.answer != gone.answer and list(told) == [gone.answer]):
                    self._fired_before(sent, life, fire)
                    life, outcome = None, gone
                elif outcome.answer != gone.answer and fire.fired < sent.appended:
                    self._fault(
                        "each command its answer",
                        sent.actor,
                        name,
                        f"{fire.id} was fired at {fire.fired}, yet a command of {sent.appended} "
                        f"still found it armed: {list(told)}",
                    )
        if outcome.manual and life is not None:
            self._claim_manual(sent, life)
        if outcome.ends and life is not None:
            self._close(sent.actor, life, sent)
        self._put(sent.actor, name, outcome.after)
        return outcome.answer

    def _take_all(self, sent: Sent, what: str) -> list[Answer]:
        ended: list[Answer] = []
        for actor, name in [key for key in self.lives if key[0] == sent.actor]:
            life = self.lives.pop((actor, name))
            fire = self._one_shot_fire(life)
            if fire is not None:
                self._fired_before(sent, life, fire)
                continue
            self._close(actor, life, sent)
            ended.append(Answer("cancelled", name, life.version))
        if what == "destroy":
            return [Answer("destroyed", count=len(ended))]
        return ended or [Answer("nothing_cancelled")]

    def _put(self, actor: str, name: str, life: _Life | None) -> None:
        if life is None:
            self.lives.pop((actor, name), None)
        else:
            self.lives[actor, name] = life

    # --- the fate of a version

    def _one_shot_fire(self, life: _Life) -> Came | None:
        return self.by_id.get(life.id(0)) if life.every is None else None

    def _fired_before(self, sent: Sent, life: _Life, fire: Came) -> None:
        """The one-shot went out before `sent` was consumed."""
        self._claim(life, fire, 0)
        self._check_race(sent, fire)
        self.counts["one-shot delivered"] += 1

    def _close(self, actor: str, life: _Life, ended_by: Sent | None) -> None:
        """A version comes to its end: all that it was to deliver is there, and no more."""
        if life.every is not None:
            self._close_interval(actor, life, life.every, ended_by)
            return
        if ended_by is not None:
            self.counts["one-shot ended in time"] += 1
            self._check_overdue(actor, life, life.anchor, ended_by)
            return
        fire = self._one_shot_fire(life)
        if fire is None and life.anchor > self.until:
            self.counts["still armed"] += 1
            return
        if fire is None:
            self._fault(
                "none missing",
                actor,
                life.name,
                f"{life.id(0)}, due {life.anchor}, did not come, and nothing ended it",
            )
            return
        self._claim(life, fire, 0)
        self.counts["one-shot delivered"] += 1

    def _close_interval(self, actor: str, life: _Life, every: int, ended_by: Sent | None) -> None:
        following = 0
        there = self.by_version.get((life.sent.partition, life.version), [])
        for fire in sorted(there, key=lambda one: one.occurrence or 0):
            occurrence = fire.occurrence if fire.occurrence is not None else -1
            if occurrence - fire.missed != following:
                self._fault(
                    "occurrences tile",
                    actor,
                    life.name,
                    f"{fire.id} passed over {fire.missed}, but {following} was to come",
                )
            self._claim(life, fire, occurrence)
            if fire.fired >= fire.due + every:
                self._fault("newest slot", actor, life.name, f"{fire.id} at {fire.fired}: {fire}")
            if ended_by is not None:
                self._check_race(ended_by, fire)
            self._note_lateness(fire.fired - (life.anchor + (occurrence - fire.missed) * every))
            following = occurrence + 1
            self.counts["occurrence delivered"] += 1
            self.counts["occurrence passed over"] += fire.missed
        due = life.anchor + following * every
        if ended_by is not None:
            self._check_overdue(actor, life, due, ended_by)
        elif due + self.lateness_ms_max < self.until:
            text = f"the slots of version {life.version} from {due} on did not come"
            self._fault("none missing", actor, life.name, text)

    def _check_overdue(self, actor: str, life: _Life, due: int, ended_by: Sent) -> None:
        late = ended_by.appended - due
        if late > self.lateness_ms_max:
            self._fault(
                "none missing",
                actor,
                life.name,
                f"a slot of version {life.version} was due {late} ms before it was ended, "
                "and did not come",
            )

    def _check_race(self, ended_by: Sent, fire: Came) -> None:
        after = fire.fired - ended_by.appended
        if after > 0:
            self.counts["race won by the fire"] += 1
            self.closest_race_ms = max(self.closest_race_ms, after)
        if after > self.margin_ms:
            self._fault(
                "none after an earlier cancel",
                fire.actor,
                fire.reminder,
                f"{fire.id} was fired {after} ms after {dict(ended_by.command)} was in the log at "
                f"{ended_by.partition}:{ended_by.offset}",
            )

    # --- one delivery

    def _check_alone(self, one: Came) -> None:
        """What must hold of any delivery, whatever was asked for."""
        seen_early = one.arrived is not None and one.arrived < one.due
        if one.fired < one.due or one.timestamp < one.due or seen_early:
            self._fault("none early", one.actor, one.reminder, f"{one.id}: {one}")
        if one.key != one.actor or one.timestamp != one.fired:
            self._fault("record as fired", one.actor, one.reminder, f"{one.id}: {one}")

    def _claim(self, life: _Life, fire: Came, occurrence: int) -> None:
        every = life.every
        due = life.anchor + (0 if every is None else occurrence * every)
        expected = ("scheduled", life.sent.actor, life.name, life.version, occurrence, due)
        got = (fire.kind, fire.actor, fire.reminder, fire.version, fire.occurrence, fire.due)
        self._claim_as(life, fire, expected, got)
        if every is None:
            self._note_lateness(fire.fired - due)

    def _claim_manual(self, sent: Sent, life: _Life) -> None:
        self.counts["delivered by hand"] += 1
        identity = f"{sent.partition}:{sent.offset}:m"
        fire = self.by_id.get(identity)
        if fire is None:
            self._fault("none missing", sent.actor, life.name, f"{identity} did not come")
            return
        expected = ("manual", sent.actor, life.name, life.version, None, fire.fired)
        got = (fire.kind, fire.actor, fire.reminder, fire.version, fire.occurrence, fire.due)
        self._claim_as(life, fire, expected, got)
        if fire.fired < sent.appended:
            self._fault("none early", sent.actor, life.name, f"{identity}: {fire}")
        self._note_lateness(fire.fired - sent.appended)

    def _claim_as(
        self, life: _Life, fire: Came, expected: tuple[object, ...], got: tuple[object, ...]
    ) -> None:
        self.unclaimed.discard(fire.id)
        also = (life.anchor, life.every, life.payload), (fire.first_due, fire.period, fire.payload)
        if expected != got or also[0] != also[1]:
            self._fault(
                "delivered as armed",
                fire.actor,
                fire.reminder,
                f"{fire.id} must be {expected} {also[0]}, it is {got} {also[1]}",
            )

    def _note_lateness(self, late: int) -> None:
        self.lateness_ms = max(self.lateness_ms, late)

    def _fault(self, law: str, actor: str, reminder: str | None, text: str) -> None:
        self.faults.append(Fault(law=law, actor=actor, reminder=reminder, text=text))


def _outcome(sent: Sent, what: str, fields: Mapping[str, Any], life: _Life | None) -> _Outcome:
    """Return what the command does, were `life` what is armed when it is consumed."""
    name, version = fields["reminder"], fields.get("if_version")
    other = version is not None and (life is None or life.version != version)
    if life is None and what == "cancel":
        return _Outcome(Answer("nothing_cancelled", name), None)
    if life is None and what != "arm":
        return _Outcome(Answer("refused", name, reason="absent"), None)
    if life is not None and fields.get("if_absent"):
        return _Outcome(Answer("refused", name, reason="exists"), life)
    if other:
        return _Outcome(Answer("refused", name, reason="other_version"), life)
    previous = -1 if life is None else life.version
    match what:
        case "arm":
            after = _Life(sent, name, _due(sent, fields), fields.get("every"), _payload(fields))
            return _Outcome(Answer("armed", name, sent.offset, previous), after, life is not None)
        case "move":
            assert life is not None
            every = fields.get("every", life.every)
            after = _Life(sent, name, _due(sent, fields), every, life.payload)
            return _Outcome(Answer("moved", name, sent.offset, previous), after, ends=True)
        case "cancel":
            return _Outcome(Answer("cancelled", name, previous), None, ends=True)
        case _:
            assert life is not None
            done = life.every is None
            answer = Answer("fired", name, previous)
            return _Outcome(answer, None if done else life, ends=done, manual=True)


def _due(sent: Sent, fields: Mapping[str, Any]) -> int:
    """Return the first due: delays count from the append time, and what is past means now."""
    if "at" in fields:
        return int(max(fields["at"], sent.appended))
    return int(sent.appended + fields.get("after", fields.get("every", 0)))


def _payload(fields: Mapping[str, Any]) -> bytes:
    """Return the payload that the driver's commands arm: text, or none."""
    return str(fields.get("payload_text", "")).encode()
