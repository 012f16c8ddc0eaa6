"""Runs main classes of Kafka's jars."""

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tocsin.embedded._config import tool_flags
from tocsin.embedded._errors import EmbeddedKafkaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A Java and the jars of one Kafka version."""

    java: Path
    jars: tuple[Path, ...]

    def environment(self) -> dict[str, str]:
        """The environment of Python's process, with the jars as the class path."""
        # Not on the command line, where it would bury everything else that `ps` shows.
        return {**os.environ, "CLASSPATH": os.pathsep.join(map(str, self.jars))}

    def run(
        self, main_class: str, args: Iterable[str], *, stdin: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """The outcome of a tool. Raises EmbeddedKafkaError when it fails or takes too long."""
        try:
            return subprocess.run(
                [str(self.java), *tool_flags(), main_class, *args],
                input=stdin,
                capture_output=True,
                check=True,
                encoding="utf-8",
                env=self.environment(),
                timeout=timeout_s,
            )
        except subprocess.CalledProcessError as error:
            raise EmbeddedKafkaError(
                f"{main_class} failed with exit code {error.returncode}: "
                f"{error.stderr}{error.stdout}"
            ) from error
        except subprocess.TimeoutExpired as error:
            raise EmbeddedKafkaError(f"{main_class} did not end within {timeout_s} s.") from error
