"""A real worker in a process of its own, as the Procfile starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import redis

ROOT = Path(__file__).parents[2]


class DidNotStart(Exception):
    """Raised when a worker ends, with `status`, or says nothing for 90 seconds (None) instead of taking messages."""

    def __init__(self, status: int | None, log: str) -> None:
        super().__init__(f"status {status}:\n{log}")
        self.status = status


class Worker:
    """`celery worker` for one queue; the brain is the attribute `brain` of a module made of `source`.

    Returns once it takes messages. Its output is in `log`.
    """

    def __init__(self, url: str, folder: Path, source: str, *, queue: str, pool: str, concurrency: int) -> None:
        (folder / "served.py").write_text(source, encoding="utf-8")
        self._url = url
        self.name = f"{queue}-{uuid4().hex[:6]}@test"
        self.log = folder / f"{self.name}.log"
        options = ["-P", pool, "-c", str(concurrency), "-n", self.name, "-Q", queue, "--loglevel", "INFO"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "celery",
                    "-q",
                    "-A",
                    "workers:app",
                    "worker",
                    "--without-mingle",
                    "--without-gossip",
                    *options,
                ],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), "BIG_BRAIN_APP": "served", "BIG_BRAIN_REDIS_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # a worker and its children are one group, so that a kill takes them all
                process_group=0,
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + 90
        with redis.Redis.from_url(self._url) as client:
            while not client.exists(f"bb:worker:{self.name}"):
                status = self.process.poll()
                if status is not None or time.monotonic() > deadline:
                    self.kill()
                    raise DidNotStart(status, self.log.read_text())
                time.sleep(0.02)

    def terminate(self) -> None:
        """Asks it to end."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 20) -> int:
        """Its exit status once it has ended."""
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Ends it and its children at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
