"""What the endpoint asks of the worker behind it, and what it concludes. No HTTP in here."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from tocsin.runtime.partition import Partition, Phase

#: A loop that did not come round for this long is stuck. Questions to a broker that is away take
#: 5 s each, and a turn asks two at the most.
TURN_MS_MAX = 30_000


class Progress(Struct, frozen=True, kw_only=True):
    """How the loop stands; times are of the monotonic clock."""

    #: What is waited for before the worker joins; None once it has.
    waiting_for: str | None
    #: End of the last turn, or of the last look at what is waited for.
    last_turn: int
    #: Begin of the transaction of the turn under way; None: it has none.
    transaction_begun: int | None
    member: bool


class Subject(Struct, frozen=True, kw_only=True):
    """The worker, seen from another thread."""

    version: str
    owner: Callable[[], str]
    #: Partitions owned now.
    partitions: Callable[[], Sequence[Partition]]
    #: Number of partitions of the commands; None before it is known.
    partition_count: Callable[[], int | None]
    progress: Callable[[], Progress]
    monotonic_ms: Callable[[], int]
    #: Figures and their content type.
    metrics: Callable[[], tuple[bytes, str]]


class Verdict(Struct, frozen=True):
    """Yes or no, and why."""

    ok: bool
    detail: str


def health(progress: Progress, now: int) -> Verdict:
    """Return whether the loop makes progress."""
    idle_ms = now - progress.last_turn
    if idle_ms <= TURN_MS_MAX:
        waiting = progress.waiting_for
        return Verdict(ok=True, detail="turning" if waiting is None else f"waiting for {waiting}")
    begun = progress.transaction_begun
    stuck = "" if begun is None else f", in a transaction begun {(now - begun) / 1000:.0f} s ago"
    return Verdict(ok=False, detail=f"no turn for {idle_ms / 1000:.0f} s{stuck}")


def readiness(progress: Progress, partitions: Sequence[Partition]) -> Verdict:
    """Return whether all that the group gave to this worker is restored and fires."""
    if progress.waiting_for is not None:
        return Verdict(ok=False, detail=f"waiting for {progress.waiting_for}")
    if not progress.member:
        return Verdict(ok=False, detail="not a member of the group yet")
    behind = [p for p in partitions if p.phase is not Phase.LIVE]
    if behind:
        listed = ", ".join(f"{p.number} {p.phase.value}" for p in behind)
        return Verdict(ok=False, detail=f"partitions not live: {listed}")
    return Verdict(ok=True, detail=f"{len(partitions)} partitions live")
