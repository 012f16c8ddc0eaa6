"""What a worker is given: the world outside, and what it runs there."""

from collections.abc import Callable

from msgspec import Struct

from tocsin.core.limits import Limits
from tocsin.dataflow import Topology
from tocsin.ports import (
    Clock,
    Cluster,
    Commands,
    Heartbeat,
    LogReader,
    Meter,
    Stores,
    Transaction,
)
from tocsin.runtime.faults import Faults
from tocsin.runtime.names import Names


class Bounds(Struct, frozen=True, kw_only=True):
    """How much one step takes on."""

    commands_max: int = 1_000
    decisions_max: int = 2_000
    bytes_max: int = 8 * 1024 * 1024


class Installation(Struct, frozen=True, kw_only=True):
    """What is the same for every worker of an installation."""

    topology: Topology
    names: Names
    limits: Limits
    bounds: Bounds = Bounds()
    #: The operator takes responsibility for commands that nobody answered.
    accept_lost_commands: bool = False
    #: Time-out of the workers' transactions.
    transaction_ms_max: int = 10_000
    #: See runtime.clock_watch.
    jump_ms_max: int = 5_000


class World(Struct, frozen=True, kw_only=True):
    """Everything outside that a worker needs, one adapter for each port."""

    commands: Commands
    cluster: Cluster
    reader: LogReader
    stores: Stores
    heartbeat: Heartbeat
    clock: Clock
    meter: Meter
    faults: Faults
    #: Makes the transactional producer; True asks for one under a new identity.
    transaction: Callable[[bool], Transaction]
