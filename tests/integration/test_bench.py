"""`tocsin bench` on a thousand reminders: that it measures, and what it checks; never how fast."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tocsin.embedded import EmbeddedKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def bench(kafka: EmbeddedKafka, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "tocsin.cli", "bench", *arguments),
            *("--bootstrap-servers", kafka.bootstrap_servers, "--partitions", "2"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_thousand_reminders_are_armed_fired_and_each_received_once(
    embedded_kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"
    done = bench(
        embedded_kafka,
        *("burst", "arm", "steady"),
        *("--count", "1000", "--rate", "500", "--seconds", "2", "--warm-up", "0"),
        *("--workers", "2", "--json", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fires per s" in done.stdout
    assert "exactly once" in done.stdout
    report = json.loads(file.read_text())
    assert [result["workload"] for result in report["results"]] == ["burst", "arm", "steady"]
    for result in report["results"]:
        (run,) = result["runs"]
        assert run["checks"] == {"expected": 1000, "received": 1000, "duplicates": 0, "early": 0}
    burst, arm, steady = (result["runs"][0] for result in report["results"])
    assert burst["figures"]["fires_per_s"] > 0
    assert arm["figures"]["arms_per_s"] > 0
    assert steady["lateness_ms"]["percentiles"]["p50"] >= 0
    topics = AdminClient({"bootstrap.servers": embedded_kafka.bootstrap_servers}).list_topics()
    assert not [name for name in topics.topics if name.startswith("tocsin-bench-")]


def test_interval_reminders_are_counted_within_their_time(
    embedded_kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"
    done = bench(
        embedded_kafka,
        *("recurring", "--count", "50", "--seconds", "2", "--warm-up", "0", "--json", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ((run,),) = [result["runs"] for result in json.loads(file.read_text())["results"]]
    assert run["checks"]["received"] + run["figures"]["missed"] == 100


def test_an_unknown_workload_is_a_usage_error(embedded_kafka: EmbeddedKafka) -> None:
    done = bench(embedded_kafka, "sprint")
    assert done.returncode == 2
    assert "burst, steady, arm" in done.stderr
