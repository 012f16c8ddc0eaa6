"""Both worlds, for tests that ask for `world`."""

from collections.abc import Iterator

import pytest

from tests.contract.worlds import KafkaWorld, MemoryWorld, World
from tocsin.embedded import EmbeddedKafka

#: What is not forbidden is allowed.
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="session")
def contract_kafka() -> Iterator[EmbeddedKafka]:
    """A broker of its own, for these tests freeze it and forbid things."""
    with EmbeddedKafka(settings=SETTINGS) as kafka:
        yield kafka


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made: World
    if request.param == "memory":
        made = MemoryWorld()
    else:
        made = KafkaWorld(request.getfixturevalue("contract_kafka"))
    yield made
    made.close()
