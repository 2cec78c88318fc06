"""The sessions that we have begun, remembered on disk, and held by one call at a time in all processes.

The CLI refuses to create a session that it knows and to resume one that it does not, and
two of its processes on one session overwrite each other's transcript. So each session
has a lock and a mark of ours. The lock is an `flock`, which the kernel drops when the
last process that has it is gone; the CLI's own process is one of them (`process.py`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bigbrain.errors import ModelTimeout
from bigbrain.orchestrator.claude_code.failures import unusable
from bigbrain.scope import Scope

AGAIN = 0.05
"""Seconds between two looks at a lock that somebody else has."""


@dataclass(frozen=True)
class Session:
    """A session that this call holds: the folder of what we keep of it, and its lock, open."""

    folder: Path
    lock: int

    @property
    def known(self) -> bool:
        """Whether we have seen the CLI take it up."""
        return (self.folder / "known").exists()

    def remember(self) -> None:
        """From now on it is known, even if this process is killed."""
        if not self.known:
            with _usable(self.folder):
                (self.folder / "known").touch(mode=0o600)

    def instructions(self, text: str) -> Path:
        """A file with the system prompt, for its user alone; the next call writes it anew."""
        file = self.folder / "instructions.txt"
        with _usable(self.folder):
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8", errors="replace")
        return file

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for what the CLI leaves in its temporary folder, a piece with each call, removed with the block.

        What a call left that was killed together with us goes with the next one.
        """
        folder = self.folder / "scratch"
        shutil.rmtree(folder, ignore_errors=True)
        with _usable(self.folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def hold(state: Path, session: str, scope: Scope) -> Iterator[Session]:
    """Hold a session while the block runs, as soon as nobody else does.

    Raises the error of `scope` when it is cancelled meanwhile, and `ModelBroke` when the folder `state` cannot be used.
    """
    folder = state / "sessions" / session
    with _usable(state):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(lock, state):
            try:
                scope.wait(AGAIN)
            except ModelTimeout as exc:
                raise ModelTimeout(
                    f"session `{session}` is in use by another call; wait for it, or raise `timeout`"
                ) from exc
        yield Session(folder, lock)
    finally:
        # What ran in the block is gone. Closing would not do: a process that was forked meanwhile has it open as well.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def empty_folder(state: Path) -> Path:
    """An empty folder that nobody can write into; always the same, because the CLI files its sessions by folder.

    Raises `ModelBroke` when it cannot be made, or is not empty.
    """
    folder = state / "empty"
    with _usable(state):
        folder.mkdir(mode=0o500, parents=True, exist_ok=True)
        found = next(folder.iterdir(), None)
    if found is not None:
        raise unusable(f"`{found}` stands where Claude Code should find an empty folder; remove it")
    return folder


@contextmanager
def _usable(state: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unusable(
            f"folder `{state}`, in which sessions are remembered, cannot be used: {error.strerror}; "
            "make it writable, or set `XDG_STATE_HOME` to another one"
        ) from error


def _taken(lock: int, state: Path) -> bool:
    with _usable(state):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
