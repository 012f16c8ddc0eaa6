"""Laws of stores on disk and their directory: damage, death of the process, and who may have it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tocsin.adapters.rocksdb.state_dir import StateDirectory
from tocsin.adapters.rocksdb.stores import RocksStores
from tocsin.ports import KeyValues, StoreUnusable

END = b"\xff"
KEYS = [b"%05d" % number for number in range(5_000)]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def below_a_file(tmp_path: Path) -> Path:
    """A path that nobody can make, root included."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "state"


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def fill(directory: Path) -> None:
    """Leave a store of some blocks, flushed to one table file."""
    store = RocksStores(directory).open(0)
    store.write([(key, os.urandom(200)) for key in KEYS], [])
    store.close()


def table_file(directory: Path) -> Path:
    (path,) = (directory / "0").glob("*.sst")
    return path


WRITER = """
import sys
from pathlib import Path
from tocsin.adapters.rocksdb.stores import RocksStores

store = RocksStores(Path(sys.argv[1])).open(0)
for number in range(10**9):
    text = b"%09d" % number
    store.write([(b"a" + text, b"x" * 300), (b"b" + text, b""), (b"last", text)], [b"gone"])
    print(number, flush=True)
"""


def test_a_killed_process_leaves_every_finished_write_and_nothing_half(directory: Path) -> None:
    process = start(WRITER, directory)
    assert process.stdout
    reported = 0
    while reported < 300:
        reported = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    reported = int(([str(reported), *process.communicate()[0].splitlines()])[-1])

    store = RocksStores(directory).open(0)
    last = int(store.get(b"last") or b"-1")
    numbers = [b"%09d" % number for number in range(last + 1)]
    assert last >= reported
    assert [key[1:] for key, _ in store.scan(b"a", b"b", last + 2)] == numbers
    assert [key[1:] for key, _ in store.scan(b"b", b"c", last + 2)] == numbers
    store.close()


LIMITED_WRITER = """
import resource, sys
from pathlib import Path
from tocsin.adapters.rocksdb.stores import RocksStores
from tocsin.ports import StoreUnusable

store = RocksStores(Path(sys.argv[1])).open(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
written = 0
try:
    while written < 10_000:
        store.write([(b"%09d" % written, b"x" * 1_000)], [])
        written += 1
except StoreUnusable as error:
    print(error)
print(written)
"""


def test_a_disk_that_takes_no_more_is_unusable_and_keeps_what_it_took(directory: Path) -> None:
    process = start(LIMITED_WRITER, directory)
    message, written = process.communicate()[0].splitlines()
    assert str(directory / "0") in message
    assert "File too large" in message
    assert "delete" not in message
    store = RocksStores(directory).open(0)
    assert len(store.scan(b"", END, 10_000)) >= int(written) > 0
    store.close()


def test_a_truncated_store_is_unusable_and_the_message_names_the_way_out(directory: Path) -> None:
    fill(directory)
    os.truncate(table_file(directory), 1_000)
    with pytest.raises(StoreUnusable) as caught:
        RocksStores(directory).open(0)
    assert str(directory / "0") in str(caught.value)
    assert "delete this directory: it is rebuilt from the state topic" in str(caught.value)


READS: dict[str, Callable[[KeyValues], object]] = {
    "get": lambda store: [store.get(key) for key in KEYS],
    "get_many": lambda store: store.get_many(KEYS),
    "scan": lambda store: store.scan(b"", END, 10_000),
}


@pytest.mark.parametrize("read", READS)
def test_a_garbled_block_is_unusable_not_an_absent_key(directory: Path, read: str) -> None:
    fill(directory)
    with table_file(directory).open("r+b") as file:
        file.seek(300_000)
        file.write(b"garbage" * 1_000)
    stores = RocksStores(directory)
    store = stores.open(0)
    with pytest.raises(StoreUnusable) as caught:
        READS[read](store)
    assert str(directory / "0") in str(caught.value)
    assert "delete this directory" in str(caught.value)

    # The caught error is still alive here, as it is while a worker reports it.
    store.close()
    stores.wipe(0)
    store = stores.open(0)
    assert store.scan(b"", END, 1) == []
    store.close()


def test_a_garbled_manifest_is_unusable(directory: Path) -> None:
    fill(directory)
    (manifest,) = (directory / "0").glob("MANIFEST-*")
    manifest.write_bytes(b"garbage" * 100)
    with pytest.raises(StoreUnusable, match="delete this directory"):
        RocksStores(directory).open(0)


def test_a_torn_end_of_the_log_gives_an_earlier_whole_state(directory: Path) -> None:
    process = start(WRITER, directory)
    assert process.stdout
    while int(process.stdout.readline()) < 100:
        pass
    finish(process)
    (log,) = (path for path in (directory / "0").glob("*.log") if path.stat().st_size)
    os.truncate(log, log.stat().st_size - 7)
    store = RocksStores(directory).open(0)
    last = int(store.get(b"last") or b"-1")
    assert last >= 99
    assert len(store.scan(b"a", b"b", last + 2)) == last + 1
    assert len(store.scan(b"b", b"c", last + 2)) == last + 1
    store.close()


def test_a_store_held_by_another_process_is_refused_without_advice_to_delete(
    directory: Path,
) -> None:
    store = RocksStores(directory).open(0)
    with pytest.raises(StoreUnusable) as caught:
        RocksStores(directory).open(0)
    assert str(directory / "0") in str(caught.value)
    assert "delete" not in str(caught.value)
    store.close()


def test_a_store_below_a_regular_file_is_unusable_with_path_and_reason(below_a_file: Path) -> None:
    with pytest.raises(StoreUnusable) as caught:
        RocksStores(below_a_file).open(0)
    assert str(below_a_file) in str(caught.value)
    assert "Not a directory" in str(caught.value)


def test_a_state_directory_below_a_regular_file_is_unusable(below_a_file: Path) -> None:
    with pytest.raises(StoreUnusable) as caught:
        StateDirectory(below_a_file)
    assert str(below_a_file) in str(caught.value)
    assert "Not a directory" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_directory_without_write_permission_is_unusable(directory: Path) -> None:
    directory.mkdir(mode=0o500)
    with pytest.raises(StoreUnusable, match="not writable"):
        StateDirectory(directory)


HOLDER = """
import sys
from pathlib import Path
from tocsin.adapters.rocksdb.state_dir import StateDirectory

with StateDirectory(Path(sys.argv[1])) as state:
    print(state.instance_id, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the directory."""
    process = start(HOLDER, directory)
    assert process.stdout
    assert process.stdout.readline()
    yield process
    finish(process)


def test_a_second_process_is_refused_and_told_who_has_the_directory(
    directory: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(StoreUnusable) as caught:
        StateDirectory(directory)
    assert str(directory) in str(caught.value)
    assert f"in use by another process (pid {holder.pid})" in str(caught.value)


def test_a_refused_process_does_not_disturb_the_holder(
    directory: Path, holder: subprocess.Popen[str]
) -> None:
    for _ in range(2):
        with pytest.raises(StoreUnusable, match=str(holder.pid)):
            StateDirectory(directory)


def test_a_killed_process_holds_the_directory_no_longer(
    directory: Path, holder: subprocess.Popen[str]
) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    StateDirectory(directory).close()


def test_a_closed_directory_may_be_taken_again(directory: Path) -> None:
    StateDirectory(directory).close()
    StateDirectory(directory).close()


def test_the_instance_id_is_a_uuid4_and_stays(directory: Path) -> None:
    with StateDirectory(directory) as state:
        first = state.instance_id
    with StateDirectory(directory) as state:
        assert state.instance_id == first
    assert UUID(first).version == 4


def test_a_renewed_instance_id_is_another_one_and_stays(directory: Path) -> None:
    with StateDirectory(directory) as state:
        first = state.instance_id
        renewed = state.renew_instance_id()
        assert renewed == state.instance_id != first
    with StateDirectory(directory) as state:
        assert state.instance_id == renewed


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"../../etc"])
def test_a_garbled_instance_id_is_replaced(directory: Path, content: bytes) -> None:
    StateDirectory(directory).close()
    (directory / "instance-id").write_bytes(content)
    with StateDirectory(directory) as state:
        assert UUID(state.instance_id).version == 4


def test_a_wipe_destroys_the_stores_and_keeps_the_identity(directory: Path) -> None:
    with StateDirectory(directory) as state:
        first = state.instance_id
        fill(state.stores)
        state.wipe()
        state.wipe()
        store = RocksStores(state.stores).open(0)
        assert store.scan(b"", END, 1) == []
        store.close()
    with StateDirectory(directory) as state:
        assert state.instance_id == first


def test_a_wipe_that_was_interrupted_is_finished_by_the_next(directory: Path) -> None:
    fill(directory)
    (directory / "0").rename(directory / "0.doomed")
    fill(directory)
    RocksStores(directory).wipe(0)
    assert list(directory.iterdir()) == []


def test_stores_opened_again_share_the_cache_and_not_one_of_their_own(directory: Path) -> None:
    fill(directory)
    stores = RocksStores(directory)
    store = stores.open(0)
    before = stores.block_cache_bytes_used()
    store.scan(b"", END, 10_000)
    assert stores.block_cache_bytes_used() - before > 500_000
    store.close()
