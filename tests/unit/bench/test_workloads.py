"""The workloads are those of the peers; the figures of docs/performance.md rest on that."""

import os

import pytest

from tocsin.bench.machine import cpu_model, machine
from tocsin.bench.processes import busy_seconds, cpu_seconds
from tocsin.bench.run import Plan, sized
from tocsin.bench.stage import shares
from tocsin.bench.workloads import WORKLOADS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("burst", {"count": 100_000}),
        ("steady", {"rate": 1_000, "seconds": 30}),
        ("arm", {"count": 100_000}),
        ("recurring", {"count": 1_000, "seconds": 30}),
        ("restore", {"count": 1_000_000}),
        ("idle", {"count": 1_000_000, "seconds": 30}),
    ],
)
def test_each_workload_has_the_size_of_the_peers(name: str, expected: dict[str, int]) -> None:
    workload = WORKLOADS[name]
    assert {name: getattr(workload.default, name) for name in workload.parameters} == expected


def test_there_are_six() -> None:
    assert list(WORKLOADS) == ["burst", "steady", "arm", "recurring", "restore", "idle"]


def test_what_the_plan_leaves_open_is_the_workloads() -> None:
    plan = Plan(
        workloads=["steady"],
        workers=1,
        partitions=4,
        runs=1,
        warm_up=0,
        keep=False,
        count=None,
        rate=7,
        seconds=None,
        client=None,
        replication_factor=1,
        config=None,
    )
    size = sized(WORKLOADS["steady"].default, plan)
    assert (size.rate, size.seconds) == (7, 30)


def test_shares_are_percent_of_one_core() -> None:
    assert shares({"workers": 1.0}, {"workers": 1.5}, 1_000) == {"workers_cpu_percent": 50.0}


def test_the_cpu_time_of_a_process_grows_with_its_work() -> None:
    before = cpu_seconds([os.getpid()])
    while cpu_seconds([os.getpid()]) <= before:
        sum(range(100_000))


def test_all_are_at_least_as_busy_as_one() -> None:
    total = busy_seconds()
    assert total is None or total >= cpu_seconds([os.getpid()])


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\n", "AMD EPYC"),
        ("processor\t: 0\nBogoMIPS\t: 48.00\nModel\t\t: Raspberry Pi 5\n", "Raspberry Pi 5"),
        ("processor\t: 0\n", None),
    ],
)
def test_the_cpu_is_named_as_the_kernel_names_it(cpuinfo: str, model: str | None) -> None:
    assert cpu_model(cpuinfo) == model


def test_the_machine_is_described_in_plain_values() -> None:
    found = machine()
    assert list(found) == ["cpu", "cores", "memory_gib", "system", "architecture", "load_1min"]
    assert isinstance(found["cores"], int)
    assert found["cores"] >= 1
