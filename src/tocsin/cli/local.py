"""A broker and workers on this machine, for `tocsin dev` and `tocsin demo`."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.cli.exits import Exit, Failure

if TYPE_CHECKING:
    from tocsin.cli.output import Output
    from tocsin.client import Client
    from tocsin.embedded import EmbeddedKafka
    from tocsin.settings import Settings

PARTITIONS = 4
READY_S_MAX = 60.0
LOOK_S = 0.2
STOP_S_MAX = 6.0


@contextmanager
def broker(
    output: "Output", *, data_dir: Path | None = None, port: int | None = None
) -> Iterator["EmbeddedKafka"]:
    """Yield a running broker; told on stderr what takes long."""
    from tocsin.embedded import EmbeddedKafka, EmbeddedKafkaError

    try:
        with EmbeddedKafka(data_dir=data_dir, port=port, on_progress=output.note) as kafka:
            yield kafka
    except EmbeddedKafkaError as error:
        raise Failure(Exit.UNREACHABLE, str(error)) from error


class LocalWorker:
    """One `tocsin worker` in a process of its own; it ends when this one does."""

    def __init__(self, name: str, settings: "Settings", directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.state_dir = directory / name
        variables = {
            "BOOTSTRAP_SERVERS": settings.bootstrap_servers,
            "PREFIX": settings.prefix,
            "STATE_DIR": self.state_dir,
            "SESSION_TIMEOUT_MS": settings.session_timeout_ms,
            "LOG_FORMAT": "console",
        }
        environment = {f"TOCSIN_{key}": str(value) for key, value in variables.items()}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tocsin.cli", "worker", "--until-stdin-closes"],
                env=_without_tocsin(os.environ) | environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def owner(self) -> str:
        """The name under which it tells of itself on the status topic; empty before it has one."""
        file = self.state_dir / "instance-id"
        return file.read_text().strip() if file.exists() else ""

    def check_alive(self) -> None:
        """Raise Failure, with the end of its log, when it ended by itself."""
        if self._process.poll() is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise Failure(
                Exit.ENGINE, f"{self.name} ended with code {self._process.returncode}:\n{tail}"
            )

    def kill(self) -> None:
        """End it as kill -9 does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to leave, and see to it that it does."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self.kill()


def wait_until_live(client: "Client", workers: list[LocalWorker]) -> dict[int, str]:
    """Wait until every partition fires, each of `workers` owning some; return who owns which."""
    deadline = time.monotonic() + READY_S_MAX
    while time.monotonic() < deadline:
        for worker in workers:
            worker.check_alive()
        known = client.owners.known()
        owners = {number: owner.owner for number, owner in known.items() if owner.phase == "live"}
        expected = {worker.owner for worker in workers}
        if len(owners) == PARTITIONS and set(owners.values()) == expected:
            return owners
        time.sleep(LOOK_S)
    raise Failure(
        Exit.NO_ANSWER,
        f"not every partition was live after {READY_S_MAX:.0f} s",
        f"the workers' logs are in {workers[0].log.parent}",
    )


def _without_tocsin(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out what the user set for another installation."""
    return {name: value for name, value in environment.items() if not name.startswith("TOCSIN_")}
