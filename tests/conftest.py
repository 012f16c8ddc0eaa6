"""Shared by all tests: one real broker for the whole session, started when first asked for."""

from collections.abc import Iterator

import pytest

from tocsin.embedded import EmbeddedKafka


@pytest.fixture(scope="session")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    """One broker; tests that stop, pause or kill it start one of their own."""
    with EmbeddedKafka(on_progress=print) as kafka:
        yield kafka
