"""What a client repeats a thousand times a second is told once in a while."""

import pytest
import structlog
from confluent_kafka import KafkaError

from tocsin.adapters.kafka.complaints import AGAIN_S, Complaints

DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
OTHER = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not yours")


def test_a_complaint_is_told_at_once_then_again_with_how_often_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    told = Complaints("commands")
    with structlog.testing.capture_logs() as lines:
        for _ in range(1_000):
            told.add(DOWN)
        told.add(OTHER)
        now[0] = AGAIN_S
        told.add(DOWN)
    assert [(line["event"], line["error"], line.get("repeated")) for line in lines] == [
        ("no broker answers", "_ALL_BROKERS_DOWN", None),
        ("kafka reports an error", "TOPIC_AUTHORIZATION_FAILED", None),
        ("no broker answers", "_ALL_BROKERS_DOWN", 999),
    ]
