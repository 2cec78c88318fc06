"""One readable log of many processes: each line behind the aligned name of the process that wrote it.

As text, names are coloured on a terminal. As JSON, each line is one object: a process's own
object with `process` added, or `{"process", "message"}` around any other line.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TextIO

import click
import msgspec

from bigbrain.settings import Log

COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")

KEPT = 20
"""Last lines that are kept to be shown with an error."""


class JoinedLog:
    """Writes the lines of the processes `names` to `out`; safe to use from several threads."""

    def __init__(self, names: Iterable[str], out: TextIO, form: Log = "text") -> None:
        self._colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
        self._width = max(map(len, self._colours), default=0)
        self._out = out
        self._form = form
        self._lock = threading.Lock()
        self._last: deque[str] = deque(maxlen=KEPT)

    def write(self, name: str, line: str) -> None:
        """Write one `line` of the process `name`; a blank one is left out. A reader that went away (`| head`) is no error."""
        if not line.strip():
            return
        with self._lock:
            self._last.append(f"{name}: {line}")
            with suppress(OSError, ValueError):  # broken pipe, or closed before
                click.echo(self._as_json(name, line) if self._form == "json" else self._as_text(name, line), self._out)

    def tail(self) -> list[str]:
        """Give the last lines of all processes."""
        with self._lock:
            return list(self._last)

    def _as_text(self, name: str, line: str) -> str:
        # click takes the colours out again where nobody could see them.
        return f"{click.style(f'{name:<{self._width}} |', fg=self._colours.get(name))} {line}"

    def _as_json(self, name: str, line: str) -> str:
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:
            entry = None
        own = entry if isinstance(entry, dict) else {"message": line}
        return msgspec.json.encode({"process": name, **own}).decode()
