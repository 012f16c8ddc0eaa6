"""The partition of an actor is the one that Java, and librdkafka's murmur2, give its key."""

import ctypes
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tocsin.core.partitioning import partition_of

#: Of so many partitions each hash has its own, but for the sign that Kafka drops.
ALL_HASHES = 2**31
INT31 = 2**31 - 1

keys = st.binary(max_size=1024)
partitions = st.integers(1, INT31)

#: From org.apache.kafka.common.utils.UtilsTest.testMurmur2.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "signed"), JAVA.items())
def test_hashes_are_those_of_kafkas_own_tests(key: bytes, signed: int) -> None:
    assert partition_of(key, ALL_HASHES) == signed & INT31


def _java(key: bytes) -> int:
    """Murmur2 as Java's own arithmetic has it: signed 32-bit integers, byte after byte."""

    def wrap(value: int) -> int:
        return ctypes.c_int32(value).value

    def shifted(value: int, bits: int) -> int:
        return ctypes.c_uint32(value).value >> bits

    m = wrap(0x5BD1E995)
    left = list(key)
    h = wrap(wrap(0x9747B28C) ^ len(left))
    while len(left) >= 4:
        a, b, c, d = (left.pop(0) for _ in range(4))
        k = wrap(wrap(a + (b << 8) + (c << 16) + (d << 24)) * m)
        k = wrap(wrap(k ^ shifted(k, 24)) * m)
        h = wrap(wrap(h * m) ^ k)
    if left:
        for place, byte in enumerate(left):
            h = wrap(h ^ byte << 8 * place)
        h = wrap(h * m)
    h = wrap(wrap(h ^ shifted(h, 13)) * m)
    return wrap(h ^ shifted(h, 15))


@given(keys)
@example(b"")
@example(b"\x00")
@example(b"\xff" * 7)
@example(b"\x80" * 1024)
def test_hashes_are_those_of_javas_arithmetic(key: bytes) -> None:
    assert partition_of(key, ALL_HASHES) == _java(key) & INT31


@given(keys, partitions)
def test_a_partition_is_one_of_those_there_are(key: bytes, count: int) -> None:
    assert 0 <= partition_of(key, count) < count


@pytest.fixture(scope="module")
def librdkafka() -> Callable[[bytes, int], int]:
    package = Path(confluent_kafka.__file__).parent
    libraries = [
        *package.parent.glob("confluent_kafka.libs/librdkafka*"),
        *package.glob(".dylibs/librdkafka*"),
    ]
    if not libraries:
        pytest.skip("this confluent-kafka does not bring librdkafka as a library of its own")
    murmur2 = ctypes.CDLL(str(libraries[0])).rd_kafka_msg_partitioner_murmur2
    murmur2.restype = ctypes.c_int32
    murmur2.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    return lambda key, count: int(murmur2(None, key, len(key), count, None, None))


@given(key=keys, count=partitions)
def test_partitions_are_those_of_librdkafka(
    librdkafka: Callable[[bytes, int], int], key: bytes, count: int
) -> None:
    assert partition_of(key, count) == librdkafka(key, count)
