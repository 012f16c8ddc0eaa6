"""Each test has topics, workers and directories of its own, on the session's one broker."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.integration.loop.stage import Stage
from tocsin.embedded import EmbeddedKafka

_numbers = count(1)


@pytest.fixture
def new_stage(embedded_kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Callable[[int], Stage]]:
    made: list[Stage] = []

    def make(partitions: int) -> Stage:
        made.append(Stage(embedded_kafka, f"loop-{next(_numbers)}", tmp_path, partitions))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def stage(new_stage: Callable[[int], Stage]) -> Stage:
    return new_stage(1)
