"""How many partitions each topic had when a worker last started here: the brokers forget."""

import json
from pathlib import Path

import structlog

from tocsin.ports import StoreUnusable

log = structlog.get_logger(__name__)

FILE = "partition-counts.json"
#: Topics remembered; the oldest are forgotten.
TOPICS_MAX = 300


class RememberedCounts:
    """A file in the state directory: topic id -> number of partitions."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE

    def read(self) -> dict[str, int]:
        """Return what is remembered; nothing when there is no file or it is damaged."""
        try:
            found = json.loads(self._path.read_text("utf-8"))
            return {str(topic): int(count) for topic, count in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError, TypeError) as error:
            log.warning("partition counts are forgotten", path=str(self._path), reason=str(error))
            return {}

    def add(self, counts: dict[str, int]) -> None:
        """Remember `counts` as well; StoreUnusable with path and reason."""
        known = self.read()
        if counts.items() <= known.items():
            return
        newest = list({**known, **counts}.items())[-TOPICS_MAX:]
        draft = self._path.with_suffix(".new")
        try:
            draft.write_text(json.dumps(dict(newest)), "utf-8")
            draft.replace(self._path)
        except OSError as error:
            raise StoreUnusable(
                f"The state directory {self._path.parent} cannot be used: {error.strerror}"
            ) from error
