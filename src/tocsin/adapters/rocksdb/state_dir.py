"""The directory that makes a worker this worker: its identity, and its stores.

The law: one process at a time. The lock is the kernel's and ends with the process, even killed.
"""

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

from tocsin.ports import StoreUnusable

_LOCK_FILE = "lock"
_INSTANCE_ID_FILE = "instance-id"
_STORES = "stores"


class StateDirectory:
    """A directory held exclusively by this process, from construction to `close`.

    StoreUnusable with path and reason when it is held by another, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        make_directory(path)
        self._lock = _hold(path)
        try:
            self.instance_id = self._read_instance_id() or self.renew_instance_id()
        except BaseException:
            self.close()
            raise

    @property
    def stores(self) -> Path:
        """The directory of the stores; it may not exist yet."""
        return self.path / _STORES

    def renew_instance_id(self) -> str:
        """Return a new identity (a UUID), which is on disk before this returns."""
        instance_id = str(uuid4())
        try:
            _write_durably(self.path / _INSTANCE_ID_FILE, instance_id + "\n")
        except OSError as error:
            raise _unusable(self.path, error) from error
        self.instance_id = instance_id
        return instance_id

    def wipe(self) -> None:
        """Destroy all stores, which are closed. The identity stays: it fences what it left open."""
        destroy(self.stores)

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read_instance_id(self) -> str | None:
        try:
            text = (self.path / _INSTANCE_ID_FILE).read_text("ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(self.path, error) from error
        # Another identity is always safe; a garbled one might be somebody else's.
        return text if _is_uuid(text) else None


def make_directory(path: Path) -> None:
    """Make `path` and its parents; StoreUnusable with path and reason."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreUnusable(f"The state directory {path} cannot be used: it is not writable")


def destroy(path: Path) -> None:
    """Remove the directory `path`, if it is there; StoreUnusable with path and reason.

    A crash leaves all of it or none under its name, never half a store.
    """
    doomed = path.with_name(path.name + ".doomed")
    try:
        if doomed.exists():
            shutil.rmtree(doomed)
        if path.exists():
            path.rename(doomed)
            shutil.rmtree(doomed)
    except OSError as error:
        raise _unusable(path, error) from error


def _hold(path: Path) -> int:
    """Return the descriptor that holds the lock. It is not inherited by programs started later."""
    lock_file = path / _LOCK_FILE
    try:
        # Never truncated here: the text is the holder's.
        descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        # flock, not lockf: the latter ends when any descriptor of the file is closed.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = _holder(descriptor)
        os.close(descriptor)
        raise StoreUnusable(
            f"The state directory {path} is in use by another process{holder}; "
            "each worker needs its own"
        ) from error
    except OSError as error:
        os.close(descriptor)
        raise _unusable(path, error) from error
    return descriptor


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode("ascii", errors="replace").strip()
    return f" (pid {text})" if text.isdecimal() else ""


def _write_durably(path: Path, text: str) -> None:
    """Replace the file as one: after a crash it holds the old text or the new, never a part."""
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _unusable(path: Path, error: OSError) -> StoreUnusable:
    return StoreUnusable(f"The state directory {path} cannot be used: {error.strerror or error}")
