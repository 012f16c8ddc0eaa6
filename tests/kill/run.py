"""One run: load, kills, the end, and everything that is there to judge it by."""

import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kill.driver import Driver, came_of
from tests.kill.evidence import Found, answers_of, found_events, read_all
from tests.kill.oracle import Came, Fault, Sent, Verdict, judge
from tests.kill.workers import Campaign, Kill, Victim, two_workers
from tocsin.adapters.kafka.topics import create_topics
from tocsin.app.topology import TOPOLOGY

PARTITIONS = 4
#: A fire may still win over a command that was appended up to this long before it: the time until
#: the owner's client has fetched the command. Seen: 0.3 s at a load of 16 on two cores (and 2 s
#: before the engine read the commands' end again at each rebalance).
MARGIN_MS = 2_500
#: Longer than that, so that what was ended while nobody was there must not come.
BLACKOUT_S = 5.0
#: No partition is without an owner for longer. Seen: 11 s, at a load of 18 on two cores 23 s.
LATENESS_MS_MAX = 60_000
#: Until what was due has come, once nobody is killed any more.
DRAIN_S_MAX = 60.0
BEGIN_S_MAX = 60.0
#: Of a timeline that a failure shows.
LINES_MAX = 60
FAULTS_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """When a run may end: all of it is reached, or the round in which `seconds` ran out is over."""

    kills: int = 0
    inside: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What happened, and what is in the log."""

    wanted: Wanted
    seed: int
    servers: str
    prefix: str
    seconds: float
    complete: bool
    kills: Sequence[Kill]
    sent: Sequence[Sent]
    until: int
    #: As they came, and as a reader that starts afterwards finds them.
    watched: Sequence[Came]
    came: Sequence[Came]
    events: Sequence[Found]
    #: Records that a read_uncommitted reader sees and a read_committed one does not, by topic.
    aborted: Mapping[str, int]
    logs: Mapping[str, str]

    def judge(self) -> Verdict:
        arrivals = {one.id: one for one in self.watched}
        return judge(
            self.sent,
            answers_of(self.events),
            # The later reader's records, with the time at which the first one saw them.
            [*self.came, *_not_among(arrivals, self.came)],
            until=self.until,
            margin_ms=MARGIN_MS,
            lateness_ms_max=LATENESS_MS_MAX,
        )

    def audit(
        self, prefix: str | None = None, *arguments: str
    ) -> "subprocess.CompletedProcess[str]":
        return audit(self.servers, prefix or self.prefix, *arguments)

    def describe(self) -> str:
        """Return the figures of the run."""
        verdict = self.judge()
        points = Counter(kill.point or "SIGKILL" for kill in self.kills)
        return "\n".join(
            (
                f"seed {self.seed}, {self.seconds:.0f} s, prefix {self.prefix}",
                f"{len(self.kills)} kills: {dict(points)}",
                f"aborted records: {dict(self.aborted)}",
                f"{len(self.sent)} commands, {len(self.came)} deliveries",
                f"{dict(sorted(verdict.counts.items()))}",
                f"closest race {verdict.closest_race_ms} ms, latest {verdict.lateness_ms} ms",
            )
        )

    def explain(self, faults: Sequence[Fault]) -> str:
        """Return what somebody needs to find out how it came to `faults`."""
        parts = [
            self.describe(),
            f"again with: TOCSIN_KILL_SEED={self.seed} (chance is the same, timing is not)",
            *(f"[{fault.law}] {fault.text}" for fault in faults[:FAULTS_SHOWN_MAX]),
            f"… {len(faults)} in all" if len(faults) > FAULTS_SHOWN_MAX else "",
        ]
        if faults:
            parts.append(self._timeline(faults[0].actor, faults[0].reminder))
        parts.append("Kills:\n" + "\n".join(str(kill) for kill in self.kills))
        parts += [f"{name}:\n{tail}" for name, tail in self.logs.items()]
        return "\n\n".join(part for part in parts if part)

    def _timeline(self, actor: str, reminder: str | None) -> str:
        """Return the commands, events and deliveries of one reminder, in the order of time."""
        lines = [
            (one.appended, f"{one.appended} command {one.partition}:{one.offset} {one.command}")
            for one in self.sent
            if one.actor == actor and _about(one, reminder)
        ]
        lines += [
            (one.fired, f"{one.fired} delivery {one}")
            for one in self.came
            if one.actor == actor and reminder in {None, one.reminder}
        ]
        lines.sort()
        events = [
            f"event {one.partition}@{one.offset} step {one.step} command {one.command} {one.event}"
            for one in self.events
            if one.actor == actor and (reminder is None or reminder in repr(one.event))
        ]
        shown = [line for _, line in lines][-LINES_MAX:] + events[-LINES_MAX:]
        return f"Timeline of {actor!r} {reminder!r}:\n" + "\n".join(shown)


def run(servers: str, directory: Path, wanted: Wanted, *, wipe: bool) -> Run:
    """Kill workers under load until `wanted` is reached, let everything come, read it back."""
    seed = int(os.environ.get("TOCSIN_KILL_SEED") or random.SystemRandom().getrandbits(32))
    prefix = f"kill{uuid.uuid4().hex[:8]}"
    create_installation(servers, prefix)
    began = time.monotonic()
    driver = Driver(servers, prefix, random.Random(seed))
    try:
        with two_workers(servers, prefix, directory) as victims:
            campaign = Campaign(driver, victims, random.Random(seed + 1), wipe=wipe)
            assert driver.run_until(lambda: bool(driver.came), BEGIN_S_MAX), _tails(victims)
            while not _enough(campaign, wanted, time.monotonic() - began):
                campaign.round()
            campaign.blackout(BLACKOUT_S)
            complete = driver.wind_down(DRAIN_S_MAX)
        logs = {victim.name: victim.tail() for victim in victims}
    finally:
        driver.close()
    topics = {name: f"{prefix}.{name}" for name in ("events", "deliveries")}
    committed = {name: read_all(servers, topic) for name, topic in topics.items()}
    everything = {name: read_all(servers, t, committed=False) for name, t in topics.items()}
    return Run(
        wanted=wanted,
        seed=seed,
        servers=servers,
        prefix=prefix,
        seconds=time.monotonic() - began,
        complete=complete,
        kills=campaign.kills,
        sent=driver.sent,
        until=driver.until,
        watched=driver.came,
        came=[came_of(message, None) for message in committed["deliveries"]],
        events=found_events(committed["events"]),
        aborted={name: len(everything[name]) - len(committed[name]) for name in topics},
        logs=logs,
    )


def create_installation(servers: str, prefix: str) -> None:
    """Create the topics of an installation of its own."""
    create_topics(
        {"bootstrap.servers": servers},
        TOPOLOGY,
        prefix=prefix,
        partitions=PARTITIONS,
        replication_factor=1,
    )


def audit(servers: str, prefix: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run `tocsin audit verify` as an operator does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    given = {"TOCSIN_BOOTSTRAP_SERVERS": servers, "TOCSIN_PREFIX": prefix}
    return subprocess.run(
        [sys.executable, "-m", "tocsin.cli", "audit", "verify", *arguments],
        env=kept | given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _enough(campaign: Campaign, wanted: Wanted, seconds: float) -> bool:
    return (
        len(campaign.kills) >= wanted.kills
        and campaign.inside >= wanted.inside
        and seconds >= wanted.seconds
    )


def _not_among(arrivals: Mapping[str, Came], came: Sequence[Came]) -> list[Came]:
    there = {one.id for one in came}
    return [one for identity, one in arrivals.items() if identity not in there]


def _about(sent: Sent, reminder: str | None) -> bool:
    ((_, fields),) = sent.command.items()
    named = fields.get("reminder") if isinstance(fields, dict) else None
    return reminder is None or named in {None, reminder}


def _tails(victims: Sequence[Victim]) -> str:
    return "\n\n".join(victim.tail() for victim in victims)
