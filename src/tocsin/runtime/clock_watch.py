"""Notices that time went by without us: a machine that slept, a process that was frozen, a clock
that was set. Until the commands' end was read again nothing may fire, or what a user cancelled
meanwhile would go out; after a jump the broker's clock has to agree as well.
"""

from enum import Enum

from tocsin.core.values import EpochMs

#: The loop stood still for longer than this: read the commands' end again.
STALL_MS_MAX = 1_000
#: The wall clock outran the monotonic one by more than this: it jumped.
JUMP_MS_MAX = 5_000


class Gap(Enum):
    """What happened between two looks at the clocks."""

    NONE = "none"
    STALL = "stall"
    JUMP = "jump"


class ClockWatch:
    """Compares two looks at the wall clock and the monotonic clock."""

    def __init__(self, jump_ms_max: int = JUMP_MS_MAX, stall_ms_max: int = STALL_MS_MAX) -> None:
        self._jump_ms_max = jump_ms_max
        self._stall_ms_max = stall_ms_max
        self._last: tuple[EpochMs, int] | None = None

    def look(self, wall: EpochMs, monotonic: int) -> Gap:
        """Return what lies between the last look and this one."""
        last, self._last = self._last, (wall, monotonic)
        if last is None:
            return Gap.NONE
        passed = monotonic - last[1]
        if wall - last[0] - passed > self._jump_ms_max:
            return Gap.JUMP
        return Gap.STALL if passed > self._stall_ms_max else Gap.NONE
