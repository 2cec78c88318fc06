"""Runs a command that does not outlive its parent: `python leash.py PARENT_PID COMMAND…`.

The launcher starts its children through this file. It asks the kernel (Linux,
`PR_SET_PDEATHSIG`) to send TERM when the parent dies, SIGKILL included, then turns
into the command, so nothing of it stays in memory. A separate program, because
running Python between fork and exec of a process with threads may deadlock.

The kernel counts the *thread* that started the child as its parent, so children are
started from a thread that lives as long as the launcher. Elsewhere than on Linux
the command is run as it is. This file imports nothing of ours: it starts with
`python -I -S` in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Source: prctl(2)."""


def main(argv: list[str]) -> None:
    """Tie this process to `argv[1]` and become the command in the rest; returns only by raising `OSError`."""
    parent, command = int(argv[1]), argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    # The parent may have died before the kernel was asked.
    if os.getppid() != parent:
        sys.exit(f"the parent process {parent} is gone")
    os.execvp(command[0], command)  # noqa: S606  (the launcher's own list, never a shell)


if __name__ == "__main__":
    main(sys.argv)
