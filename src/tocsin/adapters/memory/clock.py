"""Time that moves only when told."""

from tocsin.core.values import EpochMs
from tocsin.ports import Clock

#: 2026-01-01T00:00Z, an instant like any other.
START_MS = EpochMs(1_767_225_600_000)


class ManualClock(Clock):
    """Both clocks stand still between `advance` and `jump`."""

    def __init__(self, wall_ms: EpochMs = START_MS) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = 0

    def wall_ms(self) -> EpochMs:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, by_ms: int) -> None:
        """Let time pass."""
        assert by_ms >= 0, "jump is for that"
        self._wall_ms = EpochMs(self._wall_ms + by_ms)
        self._monotonic_ms += by_ms

    def jump(self, to_ms: EpochMs) -> None:
        """Set the wall clock, forward or back, as an operator or NTP does; no time passes."""
        self._wall_ms = to_ms
