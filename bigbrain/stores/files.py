"""Values in a folder, a file for each: they outlive the process, and several processes of one machine share them.

A key's file is named by the SHA-256 of the whole key and holds the key, so two keys never
share one. Files stand in up to 256 subfolders by the first two digits of their names. Who
writes holds its subfolder's lock (`flock`, which the kernel drops when its holder dies),
writes `.new`, brings it to the disk and renames it: after a crash there is the old value
or the new one, never a half. Who reads needs no lock. A `.new` that was left is written over.

For a local disk: a network's file system may promise less of `flock` and of renaming.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from bigbrain.errors import StoreError
from bigbrain.stores.store import Store


class _Entry(msgspec.Struct, frozen=True):
    """A file's content; `until` is in seconds since 1970, None for ever."""

    key: str
    until: float | None
    value: msgspec.Raw


class FileStore(Store):
    """A store in a folder, which is made, for its user alone, if it is missing. `list` reads every file."""

    def __init__(self, folder: Path | str, *, clock: Callable[[], float] = time.time) -> None:
        """clock: seconds since 1970.

        Raises `StoreError` when the folder cannot be made.
        """
        self._folder = Path(folder).expanduser().absolute()
        self._clock = clock
        with self._faults():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"FileStore({str(self._folder)!r})"

    def _load(self, key: str) -> bytes | None:
        with self._faults():
            entry = self._entry(self._path(key))
        if entry is None or self._is_over(entry):
            return None
        if entry.key != key:
            raise StoreError(f"`{self._path(key)}` holds the key `{entry.key}` and not `{key}`; remove the file")
        return bytes(entry.value)

    def _save(self, key: str, value: bytes, ttl: float | None) -> None:
        path = self._path(key)
        with self._faults(), _locked(path.parent):
            self._write(path, key, value, ttl)

    def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
        path = self._path(key)
        with self._faults(), _locked(path.parent):
            if self._load(key) != old:
                return False
            if new is None:
                _remove(path)
            else:
                self._write(path, key, new, ttl)
            return True

    def _drop(self, key: str) -> bool:
        path = self._path(key)
        with self._faults(), _locked(path.parent):
            entry = self._entry(path)
            _remove(path)
        return entry is not None and not self._is_over(entry)

    def _keys(self, prefix: str) -> Iterable[str]:
        with self._faults():
            for path in self._folder.glob("??/*.json"):
                entry = self._entry(path)
                if entry is None:
                    continue
                if self._is_over(entry):
                    self._forget(path)
                elif entry.key.startswith(prefix):
                    yield entry.key

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / f"{name}.json"

    def _entry(self, path: Path) -> _Entry | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Entry)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as exc:
            raise StoreError(f"`{path}` is damaged: {exc}; remove the file") from exc

    def _is_over(self, entry: _Entry) -> bool:
        return entry.until is not None and entry.until <= self._clock()

    def _forget(self, path: Path) -> None:
        """Removes a value whose time is over, unless it was put anew meanwhile."""
        with _locked(path.parent):
            entry = self._entry(path)
            if entry is not None and self._is_over(entry):
                _remove(path)

    def _write(self, path: Path, key: str, value: bytes, ttl: float | None) -> None:
        entry = _Entry(key, None if ttl is None else self._clock() + ttl, msgspec.Raw(value))
        new = path.with_name(".new")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(entry))
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        _sync(path.parent)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise StoreError(f"the folder `{self._folder}` cannot be used as a store: {exc}") from exc


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Runs a block alone among all threads and processes that write to a subfolder."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, exist_ok=True)
        _sync(folder.parent)
    # opened anew each time: a lock belongs to what was opened, so that threads exclude each other as processes do
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        # let go by name: a child that was forked meanwhile has the same lock open
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
        _sync(path.parent)


def _sync(folder: Path) -> None:
    """Brings the names in a folder to the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
