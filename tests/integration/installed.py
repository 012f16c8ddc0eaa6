"""An installation of its own on the shared broker: topics under a fresh prefix, one real worker."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.adapters.kafka.topics import create_topics
from tocsin.app.topology import TOPOLOGY
from tocsin.client import Client
from tocsin.connect import connect

PARTITIONS = 2
LIVE_S_MAX = 60
TOKEN = "a token of these tests"


class Installation:
    """Where it is, and how to run the command line against it."""

    def __init__(self, servers: str, prefix: str, state_dir: Path) -> None:
        self.servers = servers
        self.prefix = prefix
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
        self.environment = {
            **kept,
            "TOCSIN_BOOTSTRAP_SERVERS": servers,
            "TOCSIN_PREFIX": prefix,
            "TOCSIN_STATE_DIR": str(state_dir),
            "TOCSIN_TOKEN": TOKEN,
        }

    def client(self, token: str | None = TOKEN) -> Client:
        return connect(self.servers, prefix=self.prefix, token=token)

    def run(
        self, *arguments: str | bytes, stdin: bytes = b"", **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "tocsin.cli", *arguments],
            input=stdin,
            env=self.environment | environment,
            capture_output=True,
            timeout=90,
            check=False,
        )


@contextmanager
def topics_only(servers: str, state_dir: Path) -> Iterator[Installation]:
    """Topics, and no worker that answers."""
    prefix = f"t{uuid.uuid4().hex[:10]}"
    create_topics(
        {"bootstrap.servers": servers},
        TOPOLOGY,
        prefix=prefix,
        partitions=PARTITIONS,
        replication_factor=1,
    )
    yield Installation(servers, prefix, state_dir)


@contextmanager
def with_worker(servers: str, state_dir: Path) -> Iterator[Installation]:
    """Topics, and one worker that owns all partitions and fires."""
    with (
        topics_only(servers, state_dir) as installation,
        (state_dir / "worker.log").open("w") as log,
    ):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tocsin.cli", "worker", "--until-stdin-closes"],
            env=installation.environment,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        try:
            _wait_until_live(installation, worker, state_dir / "worker.log")
            yield installation
        finally:
            worker.terminate()
            worker.wait(30)
            assert worker.stdin is not None
            worker.stdin.close()


def _wait_until_live(
    installation: Installation, worker: "subprocess.Popen[bytes]", log: Path
) -> None:
    until = time.monotonic() + LIVE_S_MAX
    with installation.client() as client:
        while time.monotonic() < until and worker.poll() is None:
            owners = client.owners.known().values()
            if len([owner for owner in owners if owner.phase == "live"]) == PARTITIONS:
                return
            time.sleep(0.2)
    raise AssertionError(f"no live worker within {LIVE_S_MAX} s:\n{log.read_text()}")
