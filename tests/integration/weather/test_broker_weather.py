"""A broker that is absent, killed, gone for a while or frozen under armed reminders. The engine
waits, says so, and goes on by itself: nothing is lost, twice, early or declared undeliverable.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.weather.site import STOP_S_MAX, Service, Site, site_on
from tocsin.embedded import EmbeddedKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

#: Longer than the session and the transaction of these workers.
FROZEN_S = 15.0
#: From the broker's return until everything is as before.
RECOVERY_S_MAX = 40.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that may be hurt."""
    with EmbeddedKafka(data_dir=tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def site(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Site]:
    with site_on(kafka.bootstrap_servers, tmp_path) as made:
        yield made


def loaded(site: Site, upto: float) -> Service:
    """Return a service with one-shots due all the time, and an interval."""
    service = Service(site)
    service.arm_every(0.1, upto)
    service.repeat("sensor/1", "tick", 0.2)
    service.send("order/never", {"arm": {"reminder": "pay", "after": 600_000}})
    service.flush()
    return service


def test_a_worker_started_without_a_broker_waits_and_goes_on_when_it_appears(
    kafka: EmbeddedKafka, site: Site
) -> None:
    service = Service(site)
    service.arm_every(0.5, 3)
    service.flush()
    kafka.kill()
    with site.worker("a") as worker:
        worker.wait_until("waiting", lambda: len(worker.lines("waiting for a broker")) >= 2)
        assert site.servers in str(worker.lines("waiting for a broker")[0])
        status, body = worker.get("/healthz")
        assert (status, "waiting for a broker" in body) == (200, True)
        status, body = worker.get("/readyz")
        assert (status, "waiting for a broker" in body) == (503, True)

        kafka.start()

        worker.wait_until_ready()
        service.wait_for_all(worker, RECOVERY_S_MAX)
    service.judge()


def test_a_worker_that_waits_for_its_first_broker_leaves_at_once_when_asked(
    kafka: EmbeddedKafka, site: Site
) -> None:
    kafka.kill()
    try:
        with site.worker("a") as worker:
            worker.wait_until("waiting", lambda: bool(worker.lines("waiting for a broker")))
            code, took = worker.terminate()
    finally:
        kafka.start()
    assert took < STOP_S_MAX
    assert code in (0, 6)


def test_a_broker_killed_and_restarted_twice_under_armed_reminders(
    kafka: EmbeddedKafka, site: Site
) -> None:
    with site.worker("a") as worker:
        worker.wait_until_ready()
        service = loaded(site, 12)
        for _ in range(2):
            time.sleep(1.5)
            kafka.kill()
            kafka.start()
        service.arm("order/after", "pay", 0.1)
        service.wait_for_all(worker, RECOVERY_S_MAX)
    service.judge()


@pytest.mark.parametrize("gone_s", [20.0, pytest.param(60.0, marks=pytest.mark.soak)])
def test_a_broker_gone_for_a_while_under_armed_reminders(
    kafka: EmbeddedKafka, site: Site, gone_s: float
) -> None:
    with site.worker("a") as worker, site.worker("b") as other:
        worker.wait_until_ready()
        other.wait_until_ready()
        service = loaded(site, gone_s + 2)
        time.sleep(1)
        kafka.kill()
        lost = time.monotonic()
        service.arm("order/meanwhile", "pay", 0.1)  # waits in the service's own client
        time.sleep(gone_s / 2)
        code, took = other.terminate()
        assert took < STOP_S_MAX, "asked to leave while no broker answers"
        assert code in (0, 6)
        time.sleep(max(0.0, lost + gone_s - time.monotonic()))
        assert worker.get("/healthz")[0] == 200, worker.get("/healthz")
        kafka.start()
        service.wait_for_all(worker, RECOVERY_S_MAX)
    service.judge()


def test_a_broker_frozen_for_longer_than_session_and_transaction_last(
    kafka: EmbeddedKafka, site: Site
) -> None:
    with site.worker("a") as worker:
        worker.wait_until_ready()
        service = loaded(site, FROZEN_S + 2)
        time.sleep(1)
        kafka.pause()
        time.sleep(FROZEN_S)
        kafka.resume()
        service.wait_for_all(worker, RECOVERY_S_MAX)
    service.judge()
