"""Runs a command and ends it with all that it started: `python keeper.py LINE GRACE OWNER COMMAND…`.

A separate program between us and the Claude Code CLI, because it must still act when
the process that asked has been killed. It leads a process group (whoever starts it sees
to that) in which the command runs. LINE is the number of a socket whose other end the
asking process holds. The group is ended, TERM first and KILL after GRACE seconds, when
this program gets TERM and when that other end is closed, at the latest by the kernel,
however its owner dies. A copy of that end may live on in a process that its owner forked,
so the owner itself is looked at as well, once a second; OWNER is its pid, because it may be gone before we have asked who started us. When the command ends by itself, its exit status is written to
LINE as digits, and what it left running is killed.

All that it holds open, such as the lock of a session, stays open until the group is
gone. This file imports nothing of ours: it starts with `python -I -S` in a few milliseconds.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

LOOK = 1.0
"""Seconds between two looks at whether the owner is still there."""


def main(argv: list[str]) -> None:
    """Run the command in `argv[4:]`; does not return, because this process is one of the group that it ends."""
    line, grace, owner, command = int(argv[1]), float(argv[2]), int(argv[3]), argv[4:]
    # A thread that blocks signals hands that on to what it starts.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signals = _watched(signal.SIGTERM, signal.SIGCHLD)
    try:
        child = _started(command, line)
    except OSError as error:
        sys.exit(f"{command[0]} cannot be started: {error.strerror}")
    status = _watch(child, signals, line, grace, owner)
    if status is not None:
        _tell(line, status)
    os.killpg(0, signal.SIGKILL)


def _watch(child: int, signals: int, line: int, grace: float, owner: int) -> int | None:
    """The exit status of `child` when it ends by itself; None when it was ended, or would not end."""
    while (status := _ended(child)) is None:
        ready, _, _ = select.select([signals, line], [], [], LOOK)
        stop = signals in ready and signal.SIGTERM in os.read(signals, 4096)
        if stop or line in ready or os.getppid() != owner:
            _terminate(child, signals, grace)
            return None
    return status


def _terminate(child: int, signals: int, grace: float) -> None:
    until = time.monotonic() + grace
    os.killpg(0, signal.SIGTERM)
    while _ended(child) is None and (left := until - time.monotonic()) > 0:
        if select.select([signals], [], [], left)[0]:
            os.read(signals, 4096)


def _tell(line: int, status: int) -> None:
    try:  # noqa: SIM105  (what `suppress` needs takes longer to import than all the rest)
        os.write(line, str(status).encode())
    except OSError:
        pass  # nobody is left who wants to know


def _started(command: list[str], line: int) -> int:
    return os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_CLOSE, line)],
        # What Python ignores would be ignored in the command as well.
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
    )


def _watched(*numbers: int) -> int:
    """A pipe from which these signals are read, a byte each, instead of their ending this process."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return read


def _ended(child: int) -> int | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


if __name__ == "__main__":
    main(sys.argv)
