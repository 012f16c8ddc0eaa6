"""Named points at which a test may end or freeze the process. Nothing happens unless asked for.

TOCSIN_FAULT=crash:after_commit:3 ends the process, as kill -9 does, when it comes to that point
for the third time; pause:before_positions:1:20 freezes it for 20 s.
"""

import os
import signal
import time
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

FAULT_VARIABLE = "TOCSIN_FAULT"


class Point(StrEnum):
    """Where the loop can be interrupted; each lies between two things that must hold together."""

    BEFORE_BEGIN = "before_begin"
    AFTER_BEGIN = "after_begin"
    AFTER_FIRST_PRODUCE = "after_first_produce"
    BEFORE_POSITIONS = "before_positions"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    AFTER_STORE = "after_store"
    IN_RESTORE = "in_restore"
    AFTER_RESTORE = "after_restore"


class Faults(Protocol):
    """Asked at each point."""

    def at(self, point: Point) -> None:
        """Return, later perhaps, or never."""


class NoFaults:
    """What runs in production."""

    def at(self, point: Point) -> None:
        """Return at once."""


class FaultOnce(Struct):
    """Ends or freezes this process at one point, at its nth visit."""

    action: str
    point: Point
    visits_left: int
    seconds: float

    def at(self, point: Point) -> None:
        """Count the visit; at the last one do what was asked."""
        if point is not self.point:
            return
        self.visits_left -= 1
        if self.visits_left != 0:
            return
        if self.action == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)


def faults_from(text: str | None) -> Faults:
    """Read `action:point:visit[:seconds]`; None or empty asks for nothing."""
    if not text:
        return NoFaults()
    action, point, visit, seconds = (*text.split(":"), "0")[:4]
    if action not in {"crash", "pause"}:
        raise ValueError(f"{FAULT_VARIABLE}={text!r}: the action is crash or pause")
    return FaultOnce(action, Point(point), int(visit), float(seconds))
