"""A whole deployment, started as its users start it: `bigbrain up` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import redis

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
"""Seconds that a deployment may take to be ready, or to end."""


class Deployment:
    """A running `bigbrain` command: its URL, its lines, its processes."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], data: Path) -> None:
        self.data = data
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bigbrain", *argv],
            cwd=ROOT,
            env={**os.environ, "BIG_BRAIN_DATA": str(data), "PYTHONUNBUFFERED": "1", **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        self._told = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                with self._told:
                    self.lines.append(line.rstrip())
                    self._told.notify_all()
        with self._told:
            self._told.notify_all()

    def wait_for(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """The first line that matches; fails with all lines when none comes."""
        with self._told:
            self._told.wait_for(lambda: self.find(pattern) or self._process.poll() is not None, seconds)
        found = self.find(pattern)
        assert found, f"no line matches {pattern!r}:\n" + "\n".join(self.lines)
        return found

    def find(self, pattern: str) -> re.Match[str] | None:
        return next((match for line in list(self.lines) if (match := re.search(pattern, line))), None)

    @property
    def url(self) -> str:
        return self.wait_for(r"ready at (http://[\w.:]+)")[1]

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"

    def redis(self) -> redis.Redis:
        """A client of the deployment's embedded Redis."""
        return redis.Redis(unix_socket_path=str(self.data / "redis.sock"))

    def processes(self) -> dict[int, str]:
        """All processes of the deployment, by pid, with their command lines."""
        found = {}
        for process in psutil.Process(self._process.pid).children(recursive=True):
            try:
                found[process.pid] = " ".join(process.cmdline())
            except psutil.NoSuchProcess:
                continue
        return found

    def pids(self, mark: str) -> list[int]:
        """The pids of the processes whose command line contains `mark`."""
        return [pid for pid, command in self.processes().items() if mark in command]

    def stop(self, how: int = signal.SIGINT) -> int:
        """Ends it as Ctrl-C does; its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            return self._process.wait(PATIENCE)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._reader.join(10)


@contextmanager
def deployed(*argv: str, data: Path, **env: str) -> Iterator[Deployment]:
    """A deployment that is ready, ended at the end of the block."""
    deployment = Deployment(argv, env, data)
    try:
        assert deployment.url
        yield deployment
    finally:
        deployment.stop()


def until(true: object, seconds: float = 10.0) -> bool:
    """Whether a condition comes true in time; asked every 20 ms."""
    assert callable(true)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return bool(true())
