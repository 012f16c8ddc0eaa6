import re
from pathlib import Path

import pytest

from tocsin.embedded._config import Node, server_properties


def nodes(count: int) -> list[Node]:
    return [
        Node(number=n, port=20_000 + n, controller_port=21_000 + n, home=Path(f"/kafka/{n}"))
        for n in range(1, count + 1)
    ]


def settings(count: int = 1, **extra: str) -> dict[str, str]:
    cluster = nodes(count)
    text = server_properties(
        cluster[0], cluster, {k.replace("_", "."): v for k, v in extra.items()}
    )
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.parametrize(("brokers", "replicas"), [(1, "1"), (2, "2"), (3, "3"), (5, "3")])
def test_topics_have_a_replica_on_every_broker_up_to_three(brokers: int, replicas: str) -> None:
    factors = {v for k, v in settings(brokers).items() if k.endswith("replication.factor")}
    assert factors == {replicas}


def test_every_address_is_the_loopback_one() -> None:
    text = "\n".join(settings(3).values())
    assert set(re.findall(r"(?://|@)([^:,]*):\d+", text)) == {"127.0.0.1"}


def test_extra_settings_have_the_last_word() -> None:
    assert settings(num_partitions="9", some_new="x\\y")["num.partitions"] == "9"


def test_values_are_read_back_by_java_as_they_were_given() -> None:
    assert settings(some_new="a\\b\nc")["some.new"] == "a\\\\b\\nc"
