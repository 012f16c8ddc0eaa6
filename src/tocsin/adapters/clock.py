"""The time of this machine."""

import time

from tocsin.core.values import EpochMs
from tocsin.ports import Clock


class SystemClock(Clock):
    """The operating system's clocks."""

    def wall_ms(self) -> EpochMs:
        return EpochMs(time.time_ns() // 1_000_000)

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
