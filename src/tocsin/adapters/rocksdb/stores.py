"""Stores on RocksDB: one database per partition, memory and threads shared by all of a worker.

The law: no call into a database overlaps its close, so a reader of another thread gets its answer
or StoreClosed; and no iterator outlives the call that made it: one would keep the database's LOCK.
"""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from threading import Lock

from msgspec import Struct
from rocksdict import (
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
)

from tocsin.adapters.rocksdb.state_dir import destroy, make_directory
from tocsin.ports import KeyValues, StoreClosed, Stores, StoreUnusable

_MIB = 1 << 20

#: Reasons that deleting the store would not cure.
_NOT_DAMAGE = ("lock hold", "/LOCK:", "No space left", "File too large", "Too many open files")


class RocksTuning(Struct, frozen=True, kw_only=True):
    """How much of the machine a worker's stores may take; sizes are bytes, for all partitions."""

    #: Blocks, indexes and filters that were read; the only read memory there is.
    block_cache_bytes: int = 64 * _MIB
    #: Unflushed writes of all partitions; past it the database being written flushes early.
    write_buffers_bytes: int = 64 * _MIB
    #: Of one database before it flushes. With 64 MiB a bulk load was a fifth slower, a close twice.
    write_buffer_bytes: int = 16 * _MIB
    #: Full ones may wait for their flush while the next fills: on a busy machine a restore stood
    #: still for 71 ms with 2 of them, for 23 ms with 4 (with the interpreter's lock held).
    write_buffers_per_store: int = 4
    #: An absent key costs 0.8 µs instead of a block read; 10 bits let 1 % through.
    bloom_bits_per_key: int = 10
    #: Per partition. Files are up to 64 MiB, and many machines allow 1,024 open files per process.
    open_files_per_store: int = 64
    #: Flushes and compactions, in one pool of the process; the loop needs a core for itself.
    background_jobs: int = 2
    #: RocksDB's own log, of each store; it is for the day on which RocksDB itself is in doubt.
    info_log_bytes: int = _MIB
    info_logs_kept: int = 2


class RocksKeyValues(KeyValues):
    """One partition's database. Any thread may read; one at a time is inside RocksDB.

    The lock costs 0.1 µs a call and no parallelism: rocksdict holds the interpreter's lock anyway.
    """

    def __init__(self, path: Path, options: Options) -> None:
        self._path = path
        self._lock = Lock()
        # Rebound by each scan; making and filling a new one takes three times as long.
        self._bounds = ReadOptions()
        self.closed = False
        try:
            # Without the explicit column family rocksdict takes its options from the last opening,
            # with a cache of its own (0.3.29): the shared cache would not be used.
            self._db = Rdict(str(path), options, {"default": options})
        except Exception as error:  # rocksdict raises nothing more exact
            raise _unusable(path, error) from error

    def get(self, key: bytes) -> bytes | None:
        with self._lock:
            try:
                value: bytes | None = self._db.get(key)
            except Exception as error:  # as above
                raise self._failure(error) from error
        return value

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        with self._lock:
            try:
                values: list[bytes | None] = self._db.get(keys)  # type: ignore[assignment, arg-type]
            except Exception as error:  # as above
                raise self._failure(error) from error
        return values

    def scan(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        with self._lock:
            try:
                return self._scan(start, end, limit)
            except Exception as error:  # as above
                raise self._failure(error) from error

    def _scan(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        self._bounds.set_iterate_upper_bound(end)
        # Native code does the loop: 0.3 µs an entry, where key(), value() and next() take 0.5.
        items = self._db.items(from_key=start, read_opt=self._bounds)
        entries: list[tuple[bytes, bytes]] = list(islice(items, limit))  # type: ignore[arg-type]
        del items
        if len(entries) < limit:
            self._check_end(entries[-1][0] + b"\0" if entries else start)
        return entries

    def _check_end(self, start: bytes) -> None:
        """Raise unless nothing is left from `start` to the bound.

        items() ends at a damaged block just as it does at the end; only a plain iterator tells.
        """
        rest = self._db.iter(self._bounds)
        try:
            rest.seek(start)
            rest.status()
            if rest.valid():
                raise OSError("a scan ended too early, and RocksDB does not say why")
        finally:
            # A traceback that somebody keeps would keep it, and with it the LOCK.
            del rest

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        # Made outside the lock: the arguments may be generators that read this very store.
        batch = WriteBatch(raw_mode=True)
        delete, put = batch.delete, batch.put
        for key in deletes:
            delete(key)
        for key, value in puts:
            put(key, value)
        with self._lock:
            try:
                self._db.write(batch)
            except Exception as error:  # as above
                raise self._failure(error) from error

    def close(self) -> None:
        with self._lock:
            if self.closed:
                return
            self.closed = True
            try:
                self._db.close()
            except Exception as error:  # as above
                raise _unusable(self._path, error) from error

    def _failure(self, error: Exception) -> StoreClosed | StoreUnusable:
        if isinstance(error, DbClosedError):
            return StoreClosed(f"{self._path} is closed")
        return _unusable(self._path, error)


class RocksStores(Stores):
    """A worker's databases, side by side in one directory, with one cache and one write budget."""

    def __init__(self, directory: Path, tuning: RocksTuning | None = None) -> None:
        self._directory = directory
        tuning = tuning or RocksTuning()
        self._cache = Cache(tuning.block_cache_bytes)
        self._options = _options(tuning, self._cache)
        self._stores: dict[int, RocksKeyValues] = {}

    def open(self, partition: int) -> RocksKeyValues:
        self._assert_closed(partition)
        path = self._path(partition)
        make_directory(path)
        store = self._stores[partition] = RocksKeyValues(path, self._options)
        return store

    def wipe(self, partition: int) -> None:
        self._assert_closed(partition)
        destroy(self._path(partition))

    def block_cache_bytes_used(self) -> int:
        return self._cache.get_usage()

    def _path(self, partition: int) -> Path:
        return self._directory / str(partition)

    def _assert_closed(self, partition: int) -> None:
        store = self._stores.get(partition)
        assert store is None or store.closed, f"the store of partition {partition} is open"


def _options(tuning: RocksTuning, cache: Cache) -> Options:
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(tuning.bloom_bits_per_key, block_based=False)
    # Into the bounded cache with them too; without this they grow with the open files.
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    # False: over budget is an early flush, not a writer that waits (with the interpreter's lock).
    options.set_write_buffer_manager(WriteBufferManager(tuning.write_buffers_bytes, False))
    options.set_write_buffer_size(tuning.write_buffer_bytes)
    options.set_max_write_buffer_number(tuning.write_buffers_per_store)
    options.set_max_open_files(tuning.open_files_per_store)
    options.set_max_background_jobs(tuning.background_jobs)
    # No slower to load than without: 750k entries/s against 710k.
    options.set_compression_type(DBCompressionType.lz4())
    # A torn end of the log gives an earlier whole state, whose checkpoint says where to go on.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_max_log_file_size(tuning.info_log_bytes)
    options.set_keep_log_file_num(tuning.info_logs_kept)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def _unusable(path: Path, error: Exception) -> StoreUnusable:
    reason = str(error)
    if any(sign in reason for sign in _NOT_DAMAGE):
        return StoreUnusable(f"The store {path} cannot be used: {reason}")
    return StoreUnusable(
        f"The store {path} cannot be used: {reason}. If it is damaged, stop the worker and delete "
        "this directory: it is rebuilt from the state topic"
    )
