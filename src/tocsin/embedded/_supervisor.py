"""Starts and ends JVMs for one parent process, and outlives it just long enough to tidy up.

Run as a script: `_supervisor.py <pid of the parent> [<directory to remove at the end>]`. Reads one
JSON request a line and answers each with one line. When the parent's end of the pipe is closed,
for whatever reason, all its JVMs are killed. Standard library only, so that it is up at once.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

PARENT_CHECK_S = 0.5
REQUEST_BYTES = 65536

Children = dict[str, subprocess.Popen[bytes]]


def _requests(parent: int) -> Iterator[Any]:
    """Requests until the parent is gone: its lifetime is the bound of this loop.

    A child that the parent forked without exec has a copy of the pipe's end, so that the end of
    file could be late; another parent pid tells as well.
    """
    pending = b""
    while os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], PARENT_CHECK_S)
        if not readable:
            continue
        chunk = os.read(0, REQUEST_BYTES)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        yield from map(json.loads, lines)


def _answer(request: Any, children: Children) -> Any:  # noqa: ANN401 - what JSON gives
    """The answer to one request; `None` stands for "still running" and "no such child"."""
    name = request["name"]
    match request["do"]:
        case "spawn":
            with Path(request["log"]).open("ab") as log:
                children[name] = subprocess.Popen(
                    request["argv"],
                    env=request["env"],
                    cwd=request["cwd"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            return children[name].pid
        case "signal" if name in children:
            # Popen does not signal a child that it has already waited for: no foreign process
            # with a reused pid is ever hit.
            children[name].send_signal(request["number"])
        case "exit code" if name in children:
            return children[name].poll()
    return None


def _end(children: Children, doomed: list[str]) -> None:
    for child in children.values():
        child.kill()
    for child in children.values():
        child.wait()
    for directory in doomed:
        shutil.rmtree(directory, ignore_errors=True)


def _leave(*_: object) -> NoReturn:
    sys.exit(1)


def main() -> None:
    """Serves the parent given on the command line until it is gone."""
    parent, doomed = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, _leave)
    children: Children = {}
    try:
        for request in _requests(parent):
            try:
                answer = _answer(request, children)
            except OSError as error:
                answer = {"error": str(error)}
            with contextlib.suppress(BrokenPipeError):
                os.write(1, json.dumps(answer).encode() + b"\n")
    finally:
        _end(children, doomed)


if __name__ == "__main__":
    main()
