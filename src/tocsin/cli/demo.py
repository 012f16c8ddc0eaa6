"""`tocsin demo`: the main job before your eyes, with a worker killed in the middle of it."""

import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.exits import Exit, Failure
from tocsin.cli.session import Session, session

if TYPE_CHECKING:
    from tocsin.cli.local import LocalWorker
    from tocsin.client import Client, Received
    from tocsin.settings import Settings

#: Short, so that a killed worker's partitions move on before you look away; 10 s by default.
SESSION_MS = 3_000
KILL_AFTER_S = 4.0
SHOW_S_MAX = 45.0
RIGHT_TO_LEFT = "\u05ea\u05d6\u05db\u05d5\u05e8\u05ea"

GOOD_BYE = """What you saw ran on a real Kafka, which is gone now. To go on:
  tocsin dev                      the same, to play with, until Ctrl-C
  tocsin arm --help               every command has examples
  tocsin topology                 the map of topics and processors
  docs/commands.md                arm a reminder from any language, in one JSON record
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    ctx: typer.Context,
    *,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the workers' logs and stores here.")
    ] = None,
) -> None:
    """Arm reminders on a real Kafka, watch them come, and kill a worker in the middle.

    Ends with 0 only if each expected delivery came exactly once to a read_committed reader, some
    of them from the killed worker's partitions after it was dead, and the audit log is clean.
    """
    from tocsin.bootstrap import create_missing_topics
    from tocsin.cli.local import PARTITIONS, broker
    from tocsin.logs import set_up_logs

    run = session(ctx)
    set_up_logs("warning", "console")
    with tempfile.TemporaryDirectory(prefix="tocsin-demo-") as temporary:
        directory = keep.absolute() if keep is not None else Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        run.output.say("1. Starting a real Kafka", "bold")
        with broker(run.output) as kafka:
            run.bootstrap_servers = kafka.bootstrap_servers
            settings = run.settings_with(
                {
                    "partitions": ("--partitions", PARTITIONS),
                    "replication_factor": ("--replication-factor", 1),
                    "session_timeout_ms": ("--session-timeout-ms", SESSION_MS),
                }
            )
            create_missing_topics(settings)
            with run.client() as client:
                _Show(run, client, settings, directory).play()
    for line in GOOD_BYE.splitlines():
        run.output.say(line)


class _Show:
    """One performance."""

    def __init__(
        self, run: Session, client: "Client", settings: "Settings", directory: Path
    ) -> None:
        self._run = run
        self._say = run.output.say
        self._client = client
        self._settings = settings
        self._directory = directory
        #: Ids that must come, each once.
        self._expected: set[str] = set()
        #: partition:version of the reminder that repeats; its occurrences are counted apart.
        self._repeating = ""
        self._seen: Counter[str] = Counter()
        self._passed_over = 0
        self._after_kill: list[Received] = []
        self._victims_partitions: set[int] = set()

    def play(self) -> None:
        from tocsin.cli.local import LocalWorker, wait_until_live

        self._say("2. Starting two workers", "bold")
        workers = [
            LocalWorker(name, self._settings, self._directory) for name in ("worker-1", "worker-2")
        ]
        try:
            owners = wait_until_live(self._client, workers)
            for worker in workers:
                own = [str(number) for number, owner in owners.items() if owner == worker.owner]
                self._say(f"   {worker.name} (pid {worker.pid}) owns partitions {', '.join(own)}")
            self._watch(workers, owners)
        finally:
            for worker in workers:
                worker.stop()

    def _watch(self, workers: Sequence["LocalWorker"], owners: dict[int, str]) -> None:
        victim = workers[1]
        self._victims_partitions = {n for n, owner in owners.items() if owner == victim.owner}
        with self._client.deliveries() as reader:
            self._say("3. Arming reminders", "bold")
            self._arm()
            self._say("4. Deliveries, as they come", "bold")
            started, killed = time.monotonic(), False
            while time.monotonic() < started + SHOW_S_MAX and not self._complete(killed=killed):
                if not killed and time.monotonic() >= started + KILL_AFTER_S:
                    victim.kill()
                    killed = True
                    self._say(
                        f"   {victim.name} was killed (SIGKILL); {workers[0].name} takes over once "
                        f"its session of {SESSION_MS // 1000} s has ended",
                        "bold red",
                    )
                delivery = reader.poll(0.2)
                if delivery is not None:
                    self._take(delivery, killed=killed)
            self._client.cancel("sensor/7", "poll", wait=10.0)
            for delivery in iter(lambda: reader.poll(1.0), None):
                self._take(delivery, killed=killed)
        self._judge()

    def _arm(self) -> None:
        """Arm a handful of every kind, and remember what has to come of it."""
        self._expect("order/17", "payment-due", after="2s", payload="pay, please")
        self._expect(
            "caf\u00e9/\u2615", 'nag:"quoted" | # \\ :colons:', after="3s", payload="\u2615"
        )
        self._expect("tenant/\u0000nul", RIGHT_TO_LEFT, after="3s", payload=b"\x00\xff")
        polled = self._client.arm("sensor/7", "poll", every="1s", wait=10.0)
        self._repeating = f"{polled.handle.partition}:{polled.version}"
        self._say("   armed sensor/7 poll, every 1 s")
        self._client.arm("order/18", "payment-due", after="2s", payload="too early", wait=10.0)
        moved = self._client.move("order/18", "payment-due", after="5s", wait=10.0)
        self._expected.add(f"{moved.handle.partition}:{moved.version}:0")
        self._say("   armed order/18 payment-due in 2 s, then moved it to 5 s")
        self._client.arm("order/19", "payment-due", after="3s", payload="never", wait=10.0)
        self._client.cancel("order/19", "payment-due", wait=10.0)
        self._say("   armed order/19 payment-due, then cancelled it: it must not come")
        for number in range(20, 32):  # enough for every partition to have some
            self._expect(f"order/{number}", "follow-up", after="6s", payload=f"order {number}")

    def _expect(self, actor: str, name: str, *, after: str, payload: str | bytes) -> None:
        from tocsin.cli.safe import safe

        answer = self._client.arm(actor, name, after=after, payload=payload, wait=10.0)
        self._expected.add(f"{answer.handle.partition}:{answer.version}:0")
        self._say(f"   armed {safe(actor)} {safe(name)} in {after}")

    def _take(self, delivery: "Received", *, killed: bool) -> None:
        from tocsin.cli.safe import safe

        self._seen[delivery.id] += 1
        repeats = delivery.id.startswith(f"{self._repeating}:")
        self._passed_over += (delivery.missed or 0) if repeats else 0
        partition = int(delivery.id.partition(":")[0])
        rescued = killed and partition in self._victims_partitions
        if rescued:
            self._after_kill.append(delivery)
        note = "  from the killed worker's partition" if rescued else ""
        if delivery.missed:
            note += f"  ({delivery.missed} passed over)"
        self._say(
            f"   {safe(delivery.actor):<16} {safe(delivery.reminder):<32} "
            f"{delivery.lateness_ms:>6} ms late{note}",
            "yellow" if rescued else None,
        )

    def _complete(self, *, killed: bool) -> bool:
        return killed and bool(self._after_kill) and self._expected <= self._seen.keys()

    def _judge(self) -> None:
        self._say("5. Was each exactly once?", "bold")
        # A reader of its own, from the beginning: what any other service would find.
        with self._client.deliveries(from_beginning=True, to_end=True) as reader:
            found = Counter(delivery.id for delivery in reader)
        slots = {int(i.rpartition(":")[2]) for i in found if i.startswith(f"{self._repeating}:")}
        once = {i for i in found if not i.startswith(f"{self._repeating}:")}
        problems = [f"{i} came {count} times" for i, count in found.items() if count != 1]
        problems += [f"{missing} did not come" for missing in sorted(self._expected - once)]
        problems += [f"{extra} should not have come" for extra in sorted(once - self._expected)]
        if max(slots, default=-1) + 1 != len(slots) + self._passed_over:
            problems.append("the occurrences of sensor/7 poll have a gap")
        if not self._after_kill:
            problems.append("nothing came from the killed worker's partitions after the kill")
        if problems:
            raise Failure(Exit.REFUSED, "\n".join(problems), f"logs: {self._directory} (--keep)")
        self._say(
            f"   {len(once)} one-shots, each once; {len(slots)} of the interval and "
            f"{self._passed_over} passed over, no gap; {len(self._after_kill)} deliveries from the "
            "killed worker's partitions after its death",
            "green",
        )
        self._verify()

    def _verify(self) -> None:
        from tocsin.audit_sources import open_audit

        self._say("6. Verifying the audit log", "bold")
        with open_audit(self._settings) as audit:
            reports = [audit.verify(number) for number in range(audit.partitions)]
        damaged = [report for report in reports if not report.clean]
        if damaged:
            raise Failure(Exit.REFUSED, f"the audit found differences: {damaged}")
        events, fires = sum(r.events for r in reports), sum(r.fires for r in reports)
        self._say(f"   clean: {events} events, {fires} fires, every step accounted for", "green")
