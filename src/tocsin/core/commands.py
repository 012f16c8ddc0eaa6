"""What a service may ask. Imperative, frozen; read from a record of the commands topic.

`offset` and `appended` say where the command stands in the log: they are the record's, never the
author's. `appended` is the broker's append time, None where the record carries another time.
"""

from msgspec import Struct

from tocsin.core.values import DurationMs, EpochMs, Header, Offset, Version


class Command(Struct, frozen=True, kw_only=True):
    """What every command knows of its place in the log."""

    offset: Offset
    appended: EpochMs | None


class Arm(Command, frozen=True, kw_only=True):
    """Create the reminder, or replace it whole."""

    reminder: str
    at: EpochMs | None = None
    after: DurationMs | None = None
    every: DurationMs | None = None
    #: Slots by a calendar; excludes `every`. The four that follow go with it.
    cron: str | None = None
    zone: str | None = None
    gap: str | None = None
    overlap: str | None = None
    exclude: tuple[str, ...] = ()
    payload: bytes = b""
    content_type: str | None = None
    headers: tuple[Header, ...] = ()
    #: Target topic; None is the default delivery topic.
    to: str | None = None
    if_absent: bool = False
    if_version: Version | None = None
    #: Nothing happens unless the new due is earlier than the armed one.
    if_earlier: bool = False
    #: Nothing happens while schedule, payload and options are the same as armed.
    if_changed: bool = False
    #: Last instant at which an occurrence may be due.
    until: EpochMs | None = None
    #: Largest number of occurrences.
    occurrences: int | None = None
    #: Longest delay of a fire after its due.
    jitter: DurationMs | None = None
    #: Policy about missed slots, one of core.reminder.Missed.
    missed: str | None = None
    #: How far back that policy looks.
    catch_up: DurationMs | None = None
    #: Time to live of each occurrence.
    ttl: DurationMs | None = None
    #: W3C trace context of the command record.
    traceparent: str | None = None


class Move(Command, frozen=True, kw_only=True):
    """Change when an armed reminder is due; all else stays."""

    reminder: str
    at: EpochMs | None = None
    after: DurationMs | None = None
    every: DurationMs | None = None
    #: Slots by a calendar; excludes `every`. The four that follow go with it.
    cron: str | None = None
    zone: str | None = None
    gap: str | None = None
    overlap: str | None = None
    exclude: tuple[str, ...] = ()
    if_version: Version | None = None


class Cancel(Command, frozen=True, kw_only=True):
    """Disarm one reminder by its exact name, several by what their names share, or all."""

    reminder: str | None = None
    #: All names of this operation, with and without a key.
    operation: str | None = None
    #: All names under it: see core.naming.
    prefix: str | None = None
    #: With `prefix`: names that merely begin with the same letters as well.
    raw: bool = False
    all: bool = False
    if_version: Version | None = None


class Fire(Command, frozen=True, kw_only=True):
    """Deliver now, on top of the schedule."""

    reminder: str


class Pause(Command, frozen=True, kw_only=True):
    """Let a reminder rest: one, or each that the actor has now."""

    reminder: str | None = None
    all: bool = False
    note: str | None = None


class Resume(Command, frozen=True, kw_only=True):
    """End the rest of a reminder: one, or each paused one of the actor."""

    reminder: str | None = None
    all: bool = False
    note: str | None = None


class Destroy(Command, frozen=True, kw_only=True):
    """End the actor: everything it has goes."""


class FireDue(Struct, frozen=True, kw_only=True):
    """The engine's own command: the due index says that this version is due."""

    version: Version
    #: Offset of the command that will be consumed next.
    next_command: Offset


ServiceCommand = Arm | Move | Cancel | Fire | Pause | Resume | Destroy
