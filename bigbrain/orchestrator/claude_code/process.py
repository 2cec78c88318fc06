"""One run of a command line program: the prompt goes in, its lines come out, nothing of it stays.

The program runs under `keeper.py` in a session and process group of its own, so that it
and whatever it started can be ended together, and end by themselves when this process is
killed. Its input is a file, so nobody has to feed it; one thread reads both of its
outputs, so neither can fill up and stop it. What it may write is bounded.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from bigbrain.errors import ModelBroke

KEEPER = str(Path(__file__).with_name("keeper.py"))

GRACE = 2.0
"""Seconds from TERM to KILL. The real CLI ends within 0.2."""
LINGER = 2.0
"""Seconds that the program may take to end by itself after its last word was read."""
LINE_MAX = 16 * 1024 * 1024
"""Bytes of one line; the longest honest one repeats a whole answer, some 500 KB."""
OUTPUT_MAX = 256 * 1024 * 1024
"""Bytes of all lines together: a long answer at 400 bytes a token."""
COMPLAINT_MAX = 4096
"""Bytes that are kept of the end of its error output."""
TICK = 0.5
"""Seconds after which a silent program is looked at again."""


@dataclass(frozen=True)
class Command:
    """What to run: an absolute path and its arguments, its whole environment, its working directory, its input.

    holds: descriptors that stay open until nothing of it runs any more, such as that of a lock.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stdin: str = ""
    holds: Sequence[int] = ()


class Process:
    """A running `Command`; leaving the block ends it, and returns when nothing of it is left.

    A block that is left by an exception ends it at once, else it gets `LINGER` seconds to end by itself.
    Raises `ModelBroke` when it cannot be started.
    """

    def __init__(self, command: Command) -> None:
        self.status: int | None = None
        """Its exit status once it has ended by itself, negative for the signal that ended it; None if it was stopped."""
        self._complaint = b""
        self._stopped: float | None = None
        with _startable(command), ExitStack() as failed:
            self._open = failed.enter_context(selectors.DefaultSelector())
            self._line, theirs = socket.socketpair()
            failed.enter_context(self._line)
            with theirs, tempfile.TemporaryFile() as prompt:
                prompt.write(command.stdin.encode("utf-8", "replace"))
                prompt.seek(0)
                self._popen = _started(command, theirs.fileno(), prompt)
            failed.pop_all()
        assert self._popen.stdout is not None  # noqa: S101  (for the type checker: PIPE was asked for)
        assert self._popen.stderr is not None  # noqa: S101
        self._out, self._err = self._popen.stdout, self._popen.stderr
        for each in (self._out, self._err, self._line):
            self._open.register(each, selectors.EVENT_READ)

    @property
    def pid(self) -> int:
        """The number of its process group."""
        return self._popen.pid

    @property
    def stopped(self) -> bool:
        """Whether it had to be ended."""
        return self._stopped is not None

    @property
    def complaint(self) -> str:
        """The end of what it wrote to its error output so far."""
        return self._complaint.decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """Have it ended; returns at once. From any thread, any number of times."""
        if self._stopped is None:
            self._stopped = time.monotonic()
        with suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGTERM)

    def lines(self) -> Iterator[bytes]:
        """What it writes, line by line as it comes, without their ends, until it has ended.

        Raises `ModelBroke` when a line, or all of them, grow too long.
        """
        rest, total = bytearray(), 0
        for data in self._pieces():
            total += len(data)
            *whole, last = data.split(b"\n")
            for line in whole:
                yield bytes(rest + line)
                rest.clear()
            rest += last
            if len(rest) > LINE_MAX or total > OUTPUT_MAX:
                raise ModelBroke(f"Claude Code wrote more than it may: {total} bytes, {len(rest)} of them in one line")
        if rest:
            yield bytes(rest)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.stop()
        until = time.monotonic() + LINGER
        for _ in self._pieces():
            if time.monotonic() > until:
                break
        self._end()

    def _pieces(self) -> Iterator[bytes]:
        """Pieces of its output as they come, and empty ones, so that whoever reads can look at the time."""
        while self._open.get_map() and not self._overdue():
            for key, _ in self._open.select(TICK):
                data = os.read(key.fd, 65536)
                if key.fileobj is self._out:
                    yield data
                elif key.fileobj is self._err:
                    self._complaint = (self._complaint + data)[-COMPLAINT_MAX:]
                elif data:
                    self.status = int(data)
                else:
                    self._kill()  # the keeper is gone, so nobody else would
                if not data:
                    self._open.unregister(key.fileobj)
            yield b""

    def _overdue(self) -> bool:
        """Whether it should be gone by now: nothing but a process that left the group holds its outputs open."""
        return self._stopped is not None and time.monotonic() > self._stopped + GRACE + 1.0

    def _end(self) -> None:
        if self._open.get_map():
            self.stop()
            for _ in self._pieces():
                pass
        self._kill()
        self._popen.wait()
        self._open.close()
        for each in (self._out, self._err, self._line):
            each.close()

    def _kill(self) -> None:
        # Nothing else can have got the number meanwhile: the group's leader was not waited for yet.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def _started(command: Command, line: int, prompt: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", KEEPER, str(line), str(GRACE), str(os.getpid()), *command.argv],
        env=dict(command.env),
        cwd=command.cwd,
        stdin=prompt,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(line, *command.holds),
        start_new_session=True,
    )


@contextmanager
def _startable(command: Command) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ModelBroke(f"`{command.argv[0]}` cannot be started: {error}") from error
