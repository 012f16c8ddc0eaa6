"""A service in any language: a command is a JSON record, put there with what comes with Kafka."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.integration.weather.site import SILENT, Service, Site, Worker, metadata_of, site_on
from tocsin.embedded import EmbeddedKafka

pytestmark = pytest.mark.kafka

DOCUMENT = Path(__file__).parents[3] / "docs" / "commands.md"


@pytest.fixture(scope="module")
def site(embedded_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("language")
    with site_on(embedded_kafka.bootstrap_servers, directory) as made:
        yield made


@pytest.fixture(scope="module")
def worker(site: Site) -> Iterator[Worker]:
    with site.worker("a") as made:
        made.wait_until_ready()
        yield made


def documented() -> tuple[str, list[str]]:
    """What docs/commands.md pipes into the console producer, and the options it gives."""
    text = DOCUMENT.read_text().replace("\\\n", " ")
    found = re.search(r"printf '(.*?)'\s*\|\s*kafka-console-producer\.sh (.*)", text)
    assert found is not None
    return found[1].encode().decode("unicode_escape"), shlex.split(found[2])


def test_the_documented_console_producer_arms_and_the_delivery_comes(
    embedded_kafka: EmbeddedKafka, site: Site, worker: Worker
) -> None:
    record, options = documented()
    ours = {"localhost:9092": site.servers, "tocsin.commands": site.topic("commands")}
    service = Service(site)

    embedded_kafka.run_tool(
        "org.apache.kafka.tools.ConsoleProducer",
        [ours.get(option, option) for option in options],
        stdin=record.replace('"36h"', '"0s"'),
    )

    worker.wait_until("the delivery", lambda: not service.missing() and bool(service.came), 20)
    (delivery,) = service.read("deliveries")
    assert delivery.key() == b"order/17"
    assert metadata_of(delivery)["reminder"] == "payment-due"


def test_a_producer_with_another_partitioner_is_refused_naming_the_setting(
    site: Site, worker: Worker
) -> None:
    producer = Producer({"bootstrap.servers": site.servers, **SILENT})
    for number in range(12):  # librdkafka's default puts about half of them elsewhere
        producer.produce(site.topic("commands"), b'{"arm":{"reminder":"r"}}', f"wrong/{number}")
    producer.flush(10)
    service = Service(site)

    def reasons() -> list[str]:
        letters = [dict(message.headers() or []) for message in service.read("dead-letters")]
        return [str(letter["tocsin-error"]) for letter in letters]

    worker.wait_until("a refusal", lambda: bool(reasons()), 20)
    assert all("partitioner=murmur2_random" in reason for reason in reasons())
    refused = [line for line in worker.get("/metrics")[1].splitlines() if "wrong_partition" in line]
    assert refused
    assert float(refused[0].rsplit(" ", 1)[1]) > 0
