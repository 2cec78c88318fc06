"""A program in a process of its own, read line by line."""

from __future__ import annotations

import queue
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Launched:
    """A running program; what it says on both its outputs is one sequence of lines."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, patience: float = 60.0
    ) -> None:
        """patience: seconds that a line which is waited for may take, and the end."""
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.seen: list[str] = []
        """The lines that were read so far."""
        self._patience = patience
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def until(self, pattern: str) -> re.Match[str]:
        """Reads on to the next line that matches; fails with all lines when none comes."""
        deadline = time.monotonic() + self._patience
        while (line := self._lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            self.seen.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no line matches {pattern!r}:\n" + "\n".join(self.seen))

    def until_all(self, *patterns: str) -> None:
        """Reads on until each of these has matched a line, in whatever order."""
        left = list(patterns)
        while left:
            line = self.until("|".join(left)).string
            left = [pattern for pattern in left if not re.search(pattern, line)]

    def rest(self) -> str:
        """Reads on to the end of the program; all that it has said."""
        while (line := self._lines.get(timeout=self._patience)) is not None:
            self.seen.append(line)
        self.process.wait(timeout=10)
        return "\n".join(self.seen)
