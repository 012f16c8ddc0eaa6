"""Laws of the ports KeyValues and Stores, for every adapter."""

import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.adapters.memory.stores import MemoryStores
from tocsin.adapters.rocksdb.stores import RocksStores
from tocsin.ports import KeyValues, StoreClosed, Stores

ADAPTERS = ["memory", "rocksdb"]
#: Above every key of these tests.
END = b"\xff\xff\xff"


def make_stores(adapter: str, directory: Path) -> Stores:
    return MemoryStores() if adapter == "memory" else RocksStores(directory)


@pytest.fixture(params=ADAPTERS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    return make_stores(request.param, tmp_path / "stores")


@pytest.fixture
def store(stores: Stores) -> Iterator[KeyValues]:
    opened = stores.open(0)
    yield opened
    opened.close()


def test_an_absent_key_has_no_value(store: KeyValues) -> None:
    assert store.get(b"a") is None


def test_what_was_put_is_got_byte_for_byte(store: KeyValues) -> None:
    store.write([(b"\0\xff", b"\xff\0"), (b"empty", b"")], [])
    assert (store.get(b"\0\xff"), store.get(b"empty")) == (b"\xff\0", b"")


def test_a_later_put_replaces_an_earlier_one(store: KeyValues) -> None:
    store.write([(b"a", b"1")], [])
    store.write([(b"a", b"2"), (b"a", b"3")], [])
    assert store.scan(b"", END, 10) == [(b"a", b"3")]


def test_a_deleted_key_has_no_value_and_deleting_it_again_is_nothing(store: KeyValues) -> None:
    store.write([(b"a", b"1"), (b"b", b"2")], [])
    store.write([], [b"a"])
    store.write([], [b"a", b"never"])
    assert store.scan(b"", END, 10) == [(b"b", b"2")]


def test_within_one_write_deletes_come_before_puts(store: KeyValues) -> None:
    store.write([(b"a", b"old")], [])
    store.write([(b"a", b"new")], [b"a"])
    assert store.get(b"a") == b"new"


def test_a_write_of_nothing_changes_nothing(store: KeyValues) -> None:
    store.write([(b"a", b"1")], [])
    store.write([], [])
    assert store.scan(b"", END, 10) == [(b"a", b"1")]


def test_a_write_takes_generators_that_read_the_same_store(store: KeyValues) -> None:
    store.write([(b"a", b"1")], [])
    store.write(((key, store.get(key) or b"none") for key in (b"a", b"b")), iter([b"c"]))
    assert store.get_many([b"a", b"b"]) == [b"1", b"none"]


def test_a_write_whose_argument_raises_leaves_nothing_behind(store: KeyValues) -> None:
    def broken() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"2"
        raise ZeroDivisionError

    store.write([(b"a", b"1"), (b"b", b"1")], [])
    with pytest.raises(ZeroDivisionError):
        store.write(broken(), [b"b"])
    assert store.scan(b"", END, 10) == [(b"a", b"1"), (b"b", b"1")]


def test_many_values_come_in_the_order_of_their_keys(store: KeyValues) -> None:
    store.write([(b"a", b"1"), (b"b", b"2")], [])
    assert store.get_many([b"b", b"no", b"a", b"b"]) == [b"2", None, b"1", b"2"]
    assert store.get_many([]) == []


def test_a_scan_has_its_start_and_not_its_end_in_key_order(store: KeyValues) -> None:
    store.write([(key, b"v" + key) for key in (b"d", b"a\xff", b"b", b"a", b"c")], [])
    assert [key for key, _ in store.scan(b"a", b"c", 10)] == [b"a", b"a\xff", b"b"]


def test_a_scan_returns_the_first_entries_up_to_its_limit(store: KeyValues) -> None:
    store.write([(b"%d" % number, b"") for number in range(9)], [])
    assert [key for key, _ in store.scan(b"2", END, 3)] == [b"2", b"3", b"4"]
    assert store.scan(b"2", END, 0) == []


@pytest.mark.parametrize(("start", "end"), [(b"b", b"b"), (b"c", b"a"), (b"", b""), (b"x", b"y")])
def test_a_scan_of_an_empty_range_is_empty(store: KeyValues, start: bytes, end: bytes) -> None:
    store.write([(b"a", b""), (b"b", b""), (b"c", b"")], [])
    assert store.scan(start, end, 10) == []


def test_scans_do_not_remember_the_bounds_of_earlier_ones(store: KeyValues) -> None:
    store.write([(b"a", b"1"), (b"b", b"2")], [])
    narrow, wide = store.scan(b"a", b"b", 10), store.scan(b"a", END, 10)
    assert (len(narrow), len(wide)) == (1, 2)


def test_what_was_written_is_there_when_the_store_is_opened_again(stores: Stores) -> None:
    for text in (b"1", b"2", b"3"):
        store = stores.open(0)
        store.write([(text, text)], [])
        store.close()
    store = stores.open(0)
    assert [key for key, _ in store.scan(b"", END, 10)] == [b"1", b"2", b"3"]
    store.close()


def test_partitions_do_not_see_each_other(stores: Stores) -> None:
    one, other = stores.open(1), stores.open(11)
    one.write([(b"a", b"1")], [])
    assert other.scan(b"", END, 10) == []
    one.close()
    other.close()


def test_a_wiped_store_is_empty_and_the_others_stay(stores: Stores) -> None:
    for partition in (0, 1):
        store = stores.open(partition)
        store.write([(b"a", b"1")], [])
        store.close()
    stores.wipe(0)
    wiped, kept = stores.open(0), stores.open(1)
    assert (wiped.get(b"a"), kept.get(b"a")) == (None, b"1")
    wiped.close()
    kept.close()


def test_wiping_what_never_was_is_nothing(stores: Stores) -> None:
    stores.wipe(7)
    stores.wipe(7)


def test_an_open_store_is_neither_opened_again_nor_wiped(stores: Stores) -> None:
    store = stores.open(0)
    store.write([(b"a", b"1")], [])
    with pytest.raises(AssertionError):
        stores.open(0)
    with pytest.raises(AssertionError):
        stores.wipe(0)
    assert store.get(b"a") == b"1"
    store.close()


def test_every_call_after_close_raises_store_closed(stores: Stores) -> None:
    store = stores.open(0)
    store.write([(b"a", b"1")], [])
    store.close()
    with pytest.raises(StoreClosed):
        store.get(b"a")
    with pytest.raises(StoreClosed):
        store.get_many([b"a"])
    with pytest.raises(StoreClosed):
        store.scan(b"", END, 1)
    with pytest.raises(StoreClosed):
        store.write([(b"a", b"2")], [])


def test_closing_twice_is_nothing(stores: Stores) -> None:
    store = stores.open(0)
    store.close()
    store.close()


def test_readers_of_other_threads_get_their_answer_or_store_closed(stores: Stores) -> None:
    entries = [(b"%04d" % number, b"v" * 300) for number in range(2_000)]
    keys = [key for key, _ in entries]
    store = stores.open(0)
    store.write(entries, [])
    reading, ends = threading.Barrier(4), []

    def read(number: int) -> None:
        reads = [
            lambda: store.scan(b"", END, 5_000) == entries,
            lambda: store.get_many(keys) == [value for _, value in entries],
            lambda: store.get(b"0007") == b"v" * 300,
        ]
        assert reads[number]()
        reading.wait()
        try:
            while reads[number]():
                pass
            ends.append("wrong answer")
        except BaseException as end:  # noqa: BLE001  judged below, in the test's own thread
            ends.append(type(end).__name__)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    reading.wait()
    store.close()
    # The next owner may be this very process, so whatever the readers hold must be gone by now.
    again = stores.open(0)
    assert again.scan(b"", END, 5_000) == entries
    again.close()
    for thread in threads:
        thread.join()
    assert ends == ["StoreClosed"] * 3


# Few and short, so that they meet: neighbours, prefixes of each other, both ends of the order.
keys = st.binary(max_size=2) | st.sampled_from(
    [b"", b"\0", b"a", b"a\0", b"b", b"\xff", b"\xff\xff"]
)
values = st.binary(max_size=3)
operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.lists(st.tuples(keys, values), max_size=6),
            st.lists(keys, max_size=4),
        ),
        st.tuples(st.just("scan"), keys, keys, st.integers(0, 8)),
        st.tuples(st.just("get"), st.lists(keys, max_size=4)),
        st.tuples(st.just("reopen")),
    ),
    max_size=30,
)


@pytest.mark.parametrize("adapter", ADAPTERS)
@settings(max_examples=60, deadline=None)
@given(operations=operations)
def test_any_sequence_of_calls_answers_as_a_sorted_dict_would(
    adapter: str, operations: list[tuple[str, *tuple[object, ...]]]
) -> None:
    model: dict[bytes, bytes] = {}
    with TemporaryDirectory() as directory:
        stores = make_stores(adapter, Path(directory))
        store = stores.open(0)
        try:
            for operation in operations:
                match operation:
                    case "write", list(puts), list(deletes):
                        store.write(puts, deletes)
                        for key in deletes:
                            model.pop(key, None)
                        model.update(puts)
                    case "scan", bytes(start), bytes(end), int(limit):
                        inside = sorted(key for key in model if start <= key < end)
                        expected = [(key, model[key]) for key in inside[:limit]]
                        assert store.scan(start, end, limit) == expected
                    case "get", list(wanted):
                        assert store.get_many(wanted) == [model.get(key) for key in wanted]
                        assert [store.get(key) for key in wanted] == store.get_many(wanted)
                    case _:
                        store.close()
                        store = stores.open(0)
            assert store.scan(b"", END, len(model) + 1) == sorted(model.items())
        finally:
            store.close()
