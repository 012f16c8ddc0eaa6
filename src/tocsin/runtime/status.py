"""What this worker tells the world, and what it learns from telling it: the broker's clock.

A heartbeat on the status topic carries who owns a partition and where to ask; its append time says
whether this machine's clock and the broker's agree, which a jump of the clock has to wait for.
"""

from collections.abc import Callable, Sequence

import msgspec
import structlog
from msgspec import Struct

from tocsin.core.values import EpochMs
from tocsin.ports import Report
from tocsin.runtime.clock_watch import JUMP_MS_MAX
from tocsin.runtime.partition import Partition
from tocsin.runtime.world import World

log = structlog.get_logger(__name__)

BEAT_EVERY_MS = 3_000
#: While the clock is in doubt the broker is asked more often.
DOUBT_EVERY_MS = 500


class PartitionStatus(Struct, frozen=True, kw_only=True):
    """One partition as its owner sees it; the JSON value on the status topic."""

    partition: int
    owner: str
    #: Base URL of the owner's read-only endpoint; None where it has none.
    address: str | None
    generation: int
    phase: str
    armed: int
    next_due: int | None
    restored: int
    to_restore: int
    #: Wall clock of the owner.
    at: int


class StatusBoard:
    """Sends the beats of one worker."""

    def __init__(
        self,
        world: World,
        *,
        owner: Callable[[], str],
        address: str | None,
        jump_ms_max: int = JUMP_MS_MAX,
    ) -> None:
        self._heartbeat = world.heartbeat
        self._commands = world.commands
        self._clock = clock = world.clock
        self._meter = world.meter
        self._owner = owner
        self._address = address
        self._jump_ms_max = jump_ms_max
        self._last_beat: int | None = None
        self._told: dict[int, str] = {}
        self.clock_in_doubt = False
        #: Monotonic time of the last turn: what health is judged by.
        self.last_turn = clock.monotonic_ms()

    def doubt_clock(self) -> None:
        """Nothing may fire before a beat comes back with a time that agrees with ours."""
        self.clock_in_doubt = True
        self._last_beat = None

    def confirm_clock(self) -> None:
        """The operator says that the clock is right."""
        self.clock_in_doubt = False

    def turn(self, partitions: Sequence[Partition], now: EpochMs) -> None:
        """Beat when it is time, or when a partition came to another phase."""
        self.last_turn = self._clock.monotonic_ms()
        self._heartbeat.poll()
        phases = {partition.number: partition.phase.value for partition in partitions}
        every = DOUBT_EVERY_MS if self.clock_in_doubt else BEAT_EVERY_MS
        due = self._last_beat is None or self.last_turn - self._last_beat >= every
        if not due and phases == self._told:
            return
        self._told, self._last_beat = phases, self.last_turn
        for partition in partitions:
            status = self.describe(partition, now)
            key = str(partition.number).encode()
            self._heartbeat.beat(key, msgspec.json.encode(status), self._on_report)

    def describe(self, partition: Partition, now: EpochMs) -> PartitionStatus:
        """Return how the partition stands."""
        token = self._commands.token()
        index = partition.index if partition.mounted else None
        return PartitionStatus(
            partition=partition.number,
            owner=self._owner(),
            address=self._address,
            generation=token.generation if token else -1,
            phase=partition.phase.value,
            armed=index.checkpoint.armed if index else 0,
            next_due=index.head() if index else None,
            restored=partition.restore_done,
            to_restore=partition.restore_total,
            at=now,
        )

    def _on_report(self, report: Report) -> None:
        if report.error is not None or report.appended is None:
            return
        skew = self._clock.wall_ms() - report.appended
        self._meter.skew(skew)
        if self.clock_in_doubt and abs(skew) <= self._jump_ms_max:
            log.info("the broker's clock agrees again", skew_ms=skew)
            self.clock_in_doubt = False

    def close(self) -> None:
        """Send no more beats."""
        self._heartbeat.close()
