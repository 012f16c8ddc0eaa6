"""Bounds on what a command may ask; the operator's settings, handed to the core as a value."""

from msgspec import Struct

from tocsin.core.values import DurationMs

KIB = 1024


class Limits(Struct, frozen=True, kw_only=True):
    """Defaults are those of a new installation."""

    actor_bytes_max: int = 1024
    name_chars_max: int = 191
    payload_bytes_max: int = 256 * KIB
    headers_max: int = 32
    headers_bytes_max: int = 8 * KIB
    reminders_per_actor_max: int = 10_000
    every_ms_min: DurationMs = DurationMs(100)
    #: Missed slots that go out one by one in one catch-up; older ones coalesce.
    catch_up_fires_max: int = 10_000
    #: Topics beside the default one that a delivery may go to.
    targets: frozenset[str] = frozenset()
