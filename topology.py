"""The map: every topic, store and processor of Tocsin, as data.

The same object makes the topics, drives the loop and the simulation, and draws docs/topology.md.
"""

from tocsin.app.processors.intake import intake
from tocsin.app.processors.timer import timer
from tocsin.dataflow import Processor, Spread, Store, Topic, Topology

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MIB = 1024 * 1024

TOPOLOGY = Topology(
    topics=(
        Topic(
            name="commands",
            key="actor",
            value="Avro (schemas/commands) or JSON",
            spread=Spread.OWNED,
            doc="What services ask: arm, move, cancel, fire, pause, resume, destroy.",
            config={"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"},
            defaults={"retention.ms": str(7 * DAY_MS)},
        ),
        Topic(
            name="events",
            key="actor",
            value="Avro (schemas/events)",
            spread=Spread.OWNED,
            doc="The audit log: every decision, with every resolved value.",
            config={"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"},
            defaults={"retention.ms": "-1"},
        ),
        Topic(
            name="state",
            key="order-preserving (actor, kind, name), or the step record's reserved key",
            value="Avro (schemas/state)",
            spread=Spread.OWNED,
            doc="What is armed now, and how far each partition has come.",
            config={"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"},
            # With the broker's defaults the active segment is never compacted, and a restore
            # would cost what was ever armed instead of what is armed.
            defaults={
                "delete.retention.ms": str(7 * DAY_MS),
                "segment.bytes": str(64 * MIB),
                "segment.ms": str(HOUR_MS),
                "min.cleanable.dirty.ratio": "0.2",
            },
        ),
        Topic(
            name="deliveries",
            key="actor",
            value="the armed payload, byte for byte",
            spread=Spread.KEYED,
            doc="What was due, one record for each fire. Read it with read_committed.",
            config={"message.timestamp.type": "CreateTime", "cleanup.policy": "delete"},
            defaults={"retention.ms": str(7 * DAY_MS)},
        ),
        Topic(
            name="dead-letters",
            key="as received",
            value="as received; the reason is in the headers",
            spread=Spread.KEYED,
            doc="Commands that nobody could read, deliveries that no broker takes.",
            config={"cleanup.policy": "delete"},
            defaults={
                "retention.ms": str(30 * DAY_MS),
                "max.message.bytes": str(MIB + 12 + 64 * 1024),
            },
        ),
        Topic(
            name="status",
            key="partition",
            value="JSON: owner, address, generation, armed, oldest due, restore progress",
            spread=Spread.KEYED,
            doc="Who owns which partition, and where to ask.",
            config={"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"},
        ),
    ),
    stores=(
        Store(
            name="timers",
            changelog="state",
            doc="What is armed, and what is due when; on the owner's disk.",
        ),
    ),
    processors=(
        Processor(
            name="intake",
            source="commands",
            writes=("events", "state", "deliveries", "dead-letters"),
            run=intake,
        ),
        Processor(
            name="timer",
            source="timers",
            writes=("events", "state", "deliveries", "dead-letters"),
            run=timer,
        ),
    ),
)
