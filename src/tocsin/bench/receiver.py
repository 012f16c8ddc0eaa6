"""The receiver, a process of its own: reads one topic read_committed, from where it ends now.

It stamps the wall clock when records are in its hands and looks into them only once it is asked to
stop, so that checking takes nothing from those it measures. Ends with its parent.

On stdin: a Task as a line of JSON, later end of file. On stdout: `ready`, then the number of
records each time it grew, at last `done`, when the receipts are in the task's file.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread

import msgspec
from msgspec import Struct

from tocsin.adapters.clock import SystemClock
from tocsin.adapters.kafka.cluster import KafkaCluster
from tocsin.adapters.kafka.log_reader import KafkaLogReader
from tocsin.bench.receipts import (
    Receipts,
    Taken,
    answers,
    deliveries,
    taken_delivery,
    taken_event,
)
from tocsin.codec.framing import head
from tocsin.core.events import Armed, Refused
from tocsin.core.values import EpochMs
from tocsin.dataflow import Record

READ_S = 0.1
#: Records taken at a time. They share a stamp, and the first of them waited for the last.
BATCH = 500
#: The parent is told no more often.
TELL_MS = 50


class Task(Struct, frozen=True, kw_only=True):
    """What to receive."""

    client: Mapping[str, str | int | float | bool]
    topic: str
    partitions: int
    #: Take events and count the Armed ones; else take deliveries.
    events: bool
    #: Where the receipts go, as MessagePack.
    file: str


def receive(task: Task, stop: Event, tell: Callable[[int], None]) -> list[Taken]:
    """Take records until `stop`; `tell` is given the number of those that count."""
    clock = SystemClock()
    reader = KafkaLogReader({**task.client, "client.id": "tocsin-bench-receiver"})
    cluster = KafkaCluster(task.client)
    for partition, bounds in cluster.bounds(task.topic, range(task.partitions)).items():
        reader.seek(task.topic, partition, bounds.stable_end)
    taken: list[Taken] = []
    keep = _keep_armed() if task.events else taken_delivery
    tell(0)
    told, told_at = 0, clock.monotonic_ms()
    while not stop.is_set():
        records = reader.read(READ_S, BATCH)
        at = clock.wall_ms()
        for record in records:
            kept = keep(record, at)
            if kept is not None:
                taken.append(kept)
        now = clock.monotonic_ms()
        if len(taken) > told and now - told_at >= TELL_MS:
            told, told_at = len(taken), now
            tell(told)
    reader.close()
    return taken


def _keep_armed() -> Callable[[Record, EpochMs], Taken | None]:
    """Return what keeps answers to Arm, refusals included: they must not be waited for in vain."""
    heads = tuple(head(f"tocsin.events.{event.__name__}") for event in (Armed, Refused))

    def keep(record: Record, at: EpochMs) -> Taken | None:
        value = record.value or b""
        return taken_event(record, at) if value.startswith(heads) else None

    return keep


def main() -> None:
    """Do the task that comes on stdin."""
    task = msgspec.json.decode(sys.stdin.readline(), type=Task)
    stop = Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        stop.set()

    Thread(target=wait_for_the_end, daemon=True).start()
    taken = receive(task, stop, _tell)
    receipts: Receipts = answers(taken) if task.events else deliveries(taken)
    Path(task.file).write_bytes(msgspec.msgpack.encode(receipts))
    sys.stdout.write("done\n")


def _tell(count: int) -> None:
    sys.stdout.write(f"{count or 'ready'}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
