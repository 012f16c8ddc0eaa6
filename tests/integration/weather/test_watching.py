"""What an operator watches: health, readiness, figures; and who may ask."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.weather.site import Service, Site, Worker, site_on
from tocsin.embedded import EmbeddedKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(200)]

TOKEN = "a token of this test"


@pytest.fixture
def site(embedded_kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Site]:
    with site_on(embedded_kafka.bootstrap_servers, tmp_path) as made:
        yield made


def figures(worker: Worker) -> dict[str, float]:
    """Each sample, with its labels in its name as they are shown."""
    status, body = worker.get("/metrics")
    assert status == 200
    samples = (line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in samples}


def total(worker: Worker, name: str, **labels: str) -> float:
    """The sum over all samples of `name` that have these labels."""
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(
        value
        for sample, value in figures(worker).items()
        if sample.partition("{")[0] == name and all(label in sample for label in wanted)
    )


def test_every_figure_is_there_and_moves(site: Site) -> None:
    service = Service(site)
    with site.worker("a") as worker:
        worker.wait_until_ready()
        service.send("order/later", {"arm": {"reminder": "pay", "after": "1h"}})
        service.send("order/none", {"move": {"reminder": "pay", "after": "1h"}})
        service.arm_every(0.01, 0.2)
        service.wait_for_all(worker, 20)
        assert total(worker, "tocsin_armed_reminders") == 1
        assert total(worker, "tocsin_fires_total") == 20
        assert total(worker, "tocsin_lateness_seconds_count") == 20
        assert total(worker, "tocsin_commands_total", result="Armed") == 21
        assert total(worker, "tocsin_commands_total", result="Refused") == 1
        assert total(worker, "tocsin_refusals_total", reason="absent") == 1
        assert total(worker, "tocsin_transaction_seconds_count", outcome="committed") > 0
        assert total(worker, "tocsin_partition_phase", phase="live") == site.partitions
        names = {sample.partition("{")[0] for sample in figures(worker)}
        assert {
            "tocsin_backlog_reminders",
            "tocsin_oldest_due_age_seconds",
            "tocsin_restore_remaining_records",
            "tocsin_alerts_total",
            "tocsin_clock_skew_seconds",
            "process_resident_memory_bytes",
        } <= names
        assert "# TYPE tocsin_undeliverable_total counter" in worker.get("/metrics")[1]
        assert abs(total(worker, "tocsin_clock_skew_seconds")) < 5
    with site.worker("b") as another:
        another.wait_until_ready()
        assert total(another, "tocsin_restored_records_total") > 0
        assert total(another, "tocsin_armed_reminders") == 1


def test_other_machines_need_a_token(site: Site) -> None:
    refused = site.run("worker", "--listen-host", "0.0.0.0")
    assert refused.returncode == 2
    assert "TOCSIN_TOKEN" in refused.stderr

    options = ("--listen-host", "0.0.0.0", "--advertised-address", "http://127.0.0.1:{port}")
    with site.worker("a", *options, TOCSIN_TOKEN=TOKEN) as worker:
        worker.wait_until_ready()
        assert worker.get("/healthz")[0] == 200
        for path in ("/metrics", "/v1/status", "/v1/upcoming", "/v1/reminders?actor=a"):
            status, body = worker.get(path)
            assert (status, "TOCSIN_TOKEN" in body) == (401, True)
        status, body = worker.get("/v1/status", Authorization=f"Bearer {TOKEN}")
        assert status == 200
        assert {one["phase"] for one in json.loads(body)["partitions"]} == {"live"}
        assert TOKEN not in worker.text()


@pytest.mark.soak
def test_a_worker_whose_loop_is_stuck_is_not_healthy_until_it_goes_on(site: Site) -> None:
    service = Service(site)
    with site.worker("a", TOCSIN_FAULT="pause:before_positions:1:45") as worker:
        worker.wait_until_ready()
        service.arm("order/1", "pay", 0)
        service.flush()
        worker.wait_until("stuck", lambda: worker.get("/healthz")[0] == 503, 40)
        status, body = worker.get("/healthz")
        assert (status, "in a transaction begun" in body) == (503, True)
        worker.wait_until("well", lambda: worker.get("/healthz")[0] == 200)
        service.wait_for_all(worker, 40)
    service.judge()
