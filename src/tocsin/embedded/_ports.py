"""Free TCP ports for brokers."""

import random
import socket
from pathlib import Path

from tocsin.embedded._config import HOST
from tocsin.embedded._errors import EmbeddedKafkaError

FIRST_PORT = 20_000
#: Where ports for outgoing connections begin on systems that do not tell.
EPHEMERAL_DEFAULT = 32_768
TRIES_PER_PORT = 100


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on, outside the range used for outgoing connections.

    Inside that range a client that keeps trying to reach a stopped broker can be given the
    broker's own port, connect to itself, and so keep the broker from coming back.
    """
    candidates = range(FIRST_PORT, _first_ephemeral())
    held: list[socket.socket] = []
    try:
        for _ in range(count * TRIES_PER_PORT):
            if len(held) < count and (taken := _bind(random.choice(candidates))):
                held.append(taken)
        if len(held) < count:
            raise EmbeddedKafkaError(f"No free TCP ports were found in {candidates}.")
        return [taken.getsockname()[1] for taken in held]
    finally:
        for taken in held:
            taken.close()


def _first_ephemeral() -> int:
    try:
        low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        low = EPHEMERAL_DEFAULT
    return low if low > FIRST_PORT + 1000 else EPHEMERAL_DEFAULT


def _bind(port: int) -> socket.socket | None:
    # All addresses: a listener on another one would be reached by its name, too.
    taken = socket.socket()
    try:
        taken.bind(("", port))
    except OSError:
        taken.close()
        return None
    return taken


def listens(port: int) -> bool:
    """Whether a connection to `port` on this machine is taken."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
