"""The data folder: private to its user, and held by one launcher at a time.

The hold is an `flock`, which the kernel drops when its process dies, however it
dies; so a folder is never locked by nobody. Child processes do not inherit it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bigbrain.errors import WiringError

HOLD = "up.lock"


@contextmanager
def hold(folder: Path) -> Iterator[Path]:
    """Hold `folder` while the block runs; give its absolute path. A missing folder is made, for its user alone.

    Raises `WiringError`, naming the process, when another one holds it, and when it cannot be made or written.
    """
    place = folder.absolute()
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(place / HOLD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise WiringError(
            f"data folder `{place}` cannot be used: {error.strerror}; choose another with `BIG_BRAIN_DATA`"
        ) from error
    try:
        _lock(lock, place)
        yield place
    finally:
        # The file stays: removing it would let two processes hold two different files of one name.
        os.close(lock)


def _lock(lock: int, place: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.pread(lock, 20, 0).decode().strip() or "unknown"
        raise WiringError(
            f"a brain already runs on data folder `{place}` (process {pid}); "
            "stop that one first, or choose another folder with `BIG_BRAIN_DATA` (`up`: `--data`)"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
