"""A service as any other: JSON commands by a plain producer, deliveries by a plain consumer.

It imports nothing of tocsin. What it knows of its commands is what their delivery reports say.
"""

import heapq
import json
import random
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.kill.oracle import Came, Sent

COMMANDS_PER_S = 120
#: Longest pause between two looks at the clock.
TICK_S = 0.02
FLUSH_S_MAX = 30.0
#: The latest due of a one-shot that is left alone.
DUE_MS_MAX = 5_000
FAR_MS = 600_000

NAMES = (
    "pay",
    "pay:1",
    "pay:1:2",
    "tick",
    "nag:\0nul",
    'q"uote\\ / | @ #:é☕',
    "\u202eright-to-left שלום:\U0001f468\u200d\U0001f469",
    "n" * 191,
)
STRANGE_ACTORS = (
    "\0",
    "\0\0step",
    "a",
    "a\0",
    "a/",
    "a/b",
    "a\0\x01r",
    "tenant/\0nul",
    "café/☕",
    "שלום\u202e/1",
    " ",
    "x" * 1024,
    'order/"17"\\|@#',
    "\U0001f468\u200d\U0001f469/\uffff",
)


class Driver:
    """Sends a random load in time, and keeps what was reported and what came."""

    def __init__(self, servers: str, prefix: str, rng: random.Random) -> None:
        self.sent: list[Sent] = []
        #: What was due until then has come, if `wind_down` says so.
        self.until = 0
        self.came: list[Came] = []
        self._rng = rng
        self._topic = f"{prefix}.commands"
        self._actors = (*STRANGE_ACTORS, *(f"order/{n}" for n in range(40)))
        self._made = 0
        self._ties = count()
        self._next_at = 0.0
        self._later: list[tuple[float, int, str, Mapping[str, Any]]] = []
        self._intervals: set[tuple[str, str]] = set()
        self._versions: dict[tuple[str, str], int] = {}
        self._failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 1,
            }
        )
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{prefix}-watcher",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        deliveries = f"{prefix}.deliveries"
        partitions = self._consumer.list_topics(deliveries, 10).topics[deliveries].partitions
        self.partitions = len(partitions)
        self._consumer.assign([TopicPartition(deliveries, p, 0) for p in partitions])

    def close(self) -> None:
        self._consumer.close()

    # --- time goes by

    def run(self, seconds: float) -> None:
        """Send and watch for a while."""
        self.run_until(lambda: False, seconds)

    def run_until(self, done: Callable[[], bool], seconds: float, *, load: bool = True) -> bool:
        """Send and watch until `done` or the time is over; return whether it was done."""
        until = time.monotonic() + seconds
        while not done():
            if time.monotonic() >= until:
                return False
            self._tick(load=load)
        return True

    def wind_down(self, seconds: float) -> bool:
        """End what recurs, let all come that is due, and return whether the end was seen.

        Something stays armed, for the state topic not to be empty. The end is a one-shot in each
        partition, armed after everything else was due: what is due earlier goes out earlier.
        """
        while self._later:
            self._later_commands(now=float("inf"))
        for actor, name in sorted(self._intervals):
            self._send(actor, {"cancel": {"reminder": name}})
        for number in range(8 * self.partitions):
            self._send(f"left/{number}", {"arm": {"reminder": "armed", "after": FAR_MS}})
        self._flush()
        self.run_until(lambda: False, DUE_MS_MAX / 1000 + 0.5, load=False)
        first = len(self.sent)
        for number in range(8 * self.partitions):
            self._send(f"end/{number}", {"arm": {"reminder": "end"}})
        self._flush()
        self.until = max(end.appended for end in self.sent[first:])
        ends = {f"{end.partition}:{end.offset}:0" for end in self.sent[first:]}
        seen = {one.id for one in self.came}
        checked = len(self.came)

        def all_came() -> bool:
            nonlocal checked
            seen.update(one.id for one in self.came[checked:])
            checked = len(self.came)
            return ends <= seen

        return self.run_until(all_came, seconds, load=False)

    def _tick(self, *, load: bool) -> None:
        now = time.monotonic()
        if load:
            self._next_at = max(self._next_at, now - 1.0)
            while self._next_at <= now:
                self._next_at += self._rng.expovariate(COMMANDS_PER_S)
                self._one()
            self._later_commands(now)
        self._producer.poll(0)
        for message in self._consumer.consume(500, TICK_S):
            assert message.error() is None, message.error()
            self.came.append(came_of(message, int(time.time() * 1000)))
        assert not self._failures, self._failures

    # --- what is sent

    def _one(self) -> None:
        """Start one of the stories."""
        rng = self._rng
        if rng.random() < 0.4:
            self._calm()
            return
        # Few actors and names, dues close to the commands: replaced, refused, raced.
        actor, name = rng.choice(self._actors), rng.choice(NAMES)
        at = {} if rng.random() < 0.5 else self._condition(actor, name)
        match rng.choices(
            ("arm", "interval", "move", "cancel", "fire", "all", "destroy", "bad"),
            (45, 6, 14, 14, 12, 2, 1, 1),
        )[0]:
            case "arm":
                self._arm(actor, name, rng.randrange(1_500), **at)
            case "interval":
                self._arm(actor, name, rng.randrange(1_000), every=rng.randrange(100, 1_500), **at)
            case "move":
                at.pop("if_absent", None)
                if rng.random() < 0.1:
                    at["every"] = rng.randrange(300, 1_500)
                    self._intervals.add((actor, name))
                self._send(actor, {"move": {"reminder": name, "after": rng.randrange(1_500), **at}})
            case "cancel":
                at.pop("if_absent", None)
                self._send(actor, {"cancel": {"reminder": name, **at}})
            case "fire":
                self._send(actor, {"fire": {"reminder": name}})
            case "all":
                self._send(actor, {"cancel": {"all": True}})
            case "destroy":
                self._send(actor, {"destroy": {}})
            case _:
                self._send(actor, {"bad": 1})

    def _calm(self) -> None:
        """Arm what nothing else touches but its own story."""
        rng = self._rng
        self._made += 1
        actor, name = f"calm/{self._made}", rng.choice(NAMES)
        match rng.choices(
            ("once", "at", "cancel", "move", "fire", "interval"), (50, 10, 15, 15, 5, 5)
        )[0]:
            case "once":
                self._arm(actor, name, rng.randrange(DUE_MS_MAX))
            case "at":
                due = int(time.time() * 1000) + rng.randrange(-500, DUE_MS_MAX)
                self._send(actor, {"arm": {"reminder": name, "at": due, "payload_text": name}})
            case "cancel":
                self._arm(actor, name, FAR_MS)
                self._soon(actor, {"cancel": {"reminder": name}})
            case "move":
                self._arm(actor, name, FAR_MS)
                self._soon(actor, {"move": {"reminder": name, "after": rng.randrange(DUE_MS_MAX)}})
            case "fire":
                self._arm(actor, name, FAR_MS)
                self._soon(actor, {"fire": {"reminder": name}})
            case _:
                self._arm(actor, name, rng.randrange(500), every=rng.randrange(150, 900))
                self._soon(actor, {"cancel": {"reminder": name}})

    def _condition(self, actor: str, name: str) -> dict[str, Any]:
        version = self._versions.get((actor, name))
        if version is None or self._rng.random() < 0.5:
            return {"if_absent": True}
        return {"if_version": version}

    def _arm(self, actor: str, name: str, after: int, **more: Any) -> None:
        if "every" in more:
            self._intervals.add((actor, name))
        text = f"{len(self.sent)} {name}"
        fields = {"reminder": name, "after": after, "payload_text": text, **more}
        self._send(actor, {"arm": fields})

    def _soon(self, actor: str, command: Mapping[str, Any]) -> None:
        at = time.monotonic() + self._rng.uniform(0, 4)
        heapq.heappush(self._later, (at, next(self._ties), actor, command))

    def _later_commands(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            *_, actor, command = heapq.heappop(self._later)
            self._send(actor, command)

    def _send(self, actor: str, command: Mapping[str, Any]) -> None:
        def reported(error: object, message: Message) -> None:
            if error is not None:
                self._failures.append(f"{actor!r} {command}: {error}")
                return
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            appended = message.timestamp()[1]
            self.sent.append(
                Sent(
                    partition=partition,
                    offset=offset,
                    appended=appended,
                    actor=actor,
                    command=command,
                )
            )
            ((what, fields),) = command.items()
            if what in {"arm", "move"}:
                self._versions[actor, fields["reminder"]] = offset

        value = json.dumps(command, ensure_ascii=self._rng.random() < 0.5).encode()
        self._producer.produce(self._topic, value, actor.encode(), on_delivery=reported)

    def _flush(self) -> None:
        assert self._producer.flush(FLUSH_S_MAX) == 0, "the broker took no commands"
        assert not self._failures, self._failures


def came_of(message: Message, arrived: int | None) -> Came:
    """Return what a record of the delivery topic says."""
    headers = message.headers() or []
    assert isinstance(headers, list)
    (metadata,) = (value for name, value in headers if name == "tocsin")
    assert metadata is not None
    told = json.loads(metadata)
    key, value = message.key(), message.value()
    assert isinstance(key, bytes)
    assert isinstance(value, bytes)
    return Came(
        id=told["id"],
        key=key.decode(),
        actor=told["actor"],
        reminder=told["reminder"],
        kind=told["kind"],
        due=told["due"],
        first_due=told["first_due"],
        fired=told["fired"],
        version=told["version"],
        occurrence=told.get("occurrence"),
        missed=told.get("missed", 0),
        period=told.get("period"),
        payload=value,
        timestamp=message.timestamp()[1],
        arrived=arrived,
    )
