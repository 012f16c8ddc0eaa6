"""The parent's side of the supervisor: JVMs that can't outlive this process."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tocsin.embedded._errors import EmbeddedKafkaError

#: JVMs are killed and a directory is removed meanwhile.
CLOSE_TIMEOUT_S = 30


class Supervisor:
    """A helper process that starts JVMs and kills them when this process ends, however it ends.

    `scratch` is removed then, too. Python makes pipes non-inheritable, so no program started by
    this process keeps the helper from seeing that it is gone.
    """

    def __init__(self, scratch: Path | None) -> None:
        script = str(Path(__file__).with_name("_supervisor.py"))
        doomed = [str(scratch)] if scratch else []
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", script, str(os.getpid()), *doomed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Ctrl-C in a terminal is for the parent, which then ends things in order.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def spawn(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: Path) -> int:
        """Starts a child in the log's directory and returns its pid."""
        pid = self._ask(
            {
                "do": "spawn",
                "name": name,
                "argv": list(argv),
                "env": dict(env),
                "cwd": str(log.parent),
                "log": str(log),
            }
        )
        if not isinstance(pid, int):
            raise EmbeddedKafkaError(f"{argv[0]} can't be started: {pid['error']}")
        return pid

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal; nothing happens when the child has ended."""
        self._ask({"do": "signal", "name": name, "number": int(number)})

    def exit_code(self, name: str) -> int | None:
        """None while the child runs; negative when a signal ended it."""
        code: int | None = self._ask({"do": "exit code", "name": name})
        return code

    def close(self) -> None:
        """Kills what still runs, removes the scratch directory and waits until both are done."""
        # The end of the pipe is what the helper waits for; a signal would only be a second way.
        self._process.communicate(timeout=CLOSE_TIMEOUT_S)

    def _ask(self, request: Mapping[str, Any]) -> Any:  # noqa: ANN401 - what JSON gives
        assert self._process.stdin
        assert self._process.stdout
        try:
            with self._lock:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = b""
        if not line:
            raise EmbeddedKafkaError("The embedded Kafka's supervisor process is gone.")
        return json.loads(line)
