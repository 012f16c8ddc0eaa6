"""Stores in memory that behave as disks do: what was written is there when it is opened again."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from threading import Lock

from msgspec import Struct, field

from tocsin.ports import KeyValues, StoreClosed, Stores


class _Disk(Struct):
    """What outlives the opening."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    #: The keys of `values`, sorted.
    keys: list[bytes] = field(default_factory=list)


class MemoryKeyValues(KeyValues):
    """One opening of a store; the next one sees the same entries."""

    def __init__(self, disk: _Disk) -> None:
        self._disk = disk
        self._lock = Lock()
        self.closed = False

    def get(self, key: bytes) -> bytes | None:
        with self._lock:
            return self._opened().values.get(key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        with self._lock:
            get = self._opened().values.get
            return [get(key) for key in keys]

    def scan(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        with self._lock:
            disk = self._opened()
            first = bisect_left(disk.keys, start)
            last = min(bisect_left(disk.keys, end), first + limit)
            return [(key, disk.values[key]) for key in disk.keys[first:last]]

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        # Read to their ends first: one that raises half-way must leave nothing behind.
        deleted, put = list(deletes), list(puts)
        with self._lock:
            disk = self._opened()
            for key in deleted:
                if disk.values.pop(key, None) is not None:
                    del disk.keys[bisect_left(disk.keys, key)]
            for key, value in put:
                if key not in disk.values:
                    insort(disk.keys, key)
                disk.values[key] = value

    def close(self) -> None:
        with self._lock:
            self.closed = True

    def _opened(self) -> _Disk:
        if self.closed:
            raise StoreClosed("the store is closed")
        return self._disk


class MemoryStores(Stores):
    """The disk of one worker; keep it over a simulated crash, and open the stores again."""

    def __init__(self) -> None:
        self._disks: dict[int, _Disk] = {}
        self._stores: dict[int, MemoryKeyValues] = {}

    def open(self, partition: int) -> MemoryKeyValues:
        self._assert_closed(partition)
        disk = self._disks.setdefault(partition, _Disk())
        store = self._stores[partition] = MemoryKeyValues(disk)
        return store

    def wipe(self, partition: int) -> None:
        self._assert_closed(partition)
        self._disks.pop(partition, None)

    def crash(self) -> None:
        """Close all stores, as the end of the process does."""
        for store in self._stores.values():
            store.close()

    def _assert_closed(self, partition: int) -> None:
        store = self._stores.get(partition)
        assert store is None or store.closed, f"the store of partition {partition} is open"
