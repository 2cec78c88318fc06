"""One child process of the launcher: started on a leash, read line by line, ended with all it started.

Each child leads its own process group, so a Ctrl-C in the terminal reaches the launcher
alone, and whatever a child started can be ended with it. `leash.py` sees to it that a
child gets TERM when the launcher itself is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LEASH = str(Path(__file__).with_name("leash.py"))

LINE_MAX = 64 * 1024
"""Bytes after which an endless line is cut in two."""


@dataclass(frozen=True)
class Child:
    """What to run: a `name` for people, its command, what it finds in its environment besides ours,
    and the seconds it gets to end after TERM."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    grace: float = 35.0


class Process:
    """A running `Child`.

    line: told each line of its output, from a thread. ended: told of it and its exit status once, from a thread;
    negative is the number of the signal that ended it.
    Must be made on a thread that lives as long as the launcher (see `leash.py`).
    Raises `OSError` when the command cannot be started.
    """

    def __init__(self, child: Child, line: Callable[[str], None], ended: Callable[[Process, int], None]) -> None:
        self.child = child
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", LEASH, str(os.getpid()), *child.argv],
            env={**os.environ, "PYTHONUNBUFFERED": "1", **child.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        self.pid = self._popen.pid
        reader = threading.Thread(target=self._read, args=(line,), daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=(reader, ended), daemon=True).start()

    def terminate(self) -> None:
        """Ask it to end; what it started is its own to end."""
        with suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and everything it started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _read(self, line: Callable[[str], None]) -> None:
        output = self._popen.stdout
        assert output is not None  # noqa: S101  (for the type checker: PIPE was asked for)
        with output:
            while text := output.readline(LINE_MAX):
                line(text.decode(errors="replace").rstrip("\r\n"))

    def _wait(self, reader: threading.Thread, ended: Callable[[Process, int], None]) -> None:
        status = self._popen.wait()
        # Left-over members of the group would hold the port, or live on unseen.
        self.kill()
        reader.join(timeout=1.0)  # its last words before the news of its end
        ended(self, status)
