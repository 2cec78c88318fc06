"""Schedules in real processes: beats and workers as the Procfile starts them, a Redis that is killed, clocks that differ.

`python -m tests.triggers.processes 500` fires a schedule of every second that many times, with two beats, one of which
is stopped for 20 s in between and goes 2 s fast, and a Redis that is killed twice; it says which instants fired how often.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis

from bigbrain.embedded import EmbeddedRedis
from tests.workers.processes import ROOT, Worker

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
"""What makes a process's clock differ, where it is installed (`apt-get install libfaketime`)."""

EVERY_SECOND = """
import os

import redis

from bigbrain import Brain, Every, Flow, agent

there = redis.Redis.from_url(os.environ["BIG_BRAIN_REDIS_URL"], retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.2), 50))


@agent
def note(turn, chat):
    there.rpush("noted", f"{turn.due.timestamp():.0f} {turn.run_id}")


brain = Brain("clockwork")
brain.add_trigger(Every("* * * * * *", catch_up="all") >> Flow(note).named("tick"))
"""


@contextmanager
def server(folder: Path) -> Iterator[EmbeddedRedis]:
    """A Redis with its data in a folder of its own."""
    folder.mkdir()
    one = EmbeddedRedis(folder)
    one.start()
    try:
        yield one
    finally:
        one.stop()


def restart(server: EmbeddedRedis) -> None:
    """Kills a Redis and starts it again, on the same data and address."""
    assert server._process is not None
    server._process.kill()
    server._process.wait()
    server.start()


@contextmanager
def worker(url: str, folder: Path, source: str) -> Iterator[Worker]:
    """A worker with threads."""
    one = Worker(url, folder, source, queue="io", pool="threads", concurrency=20)
    try:
        yield one
    finally:
        one.kill()


@contextmanager
def beat(url: str, folder: Path, name: str = "beat", *, fast: float = 0.0) -> Iterator[subprocess.Popen[bytes]]:
    """A beat whose clock goes so many seconds fast, if there is what makes it do so."""
    skewed = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{fast:+}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-q", "-A", "workers:app", "beat", "--loglevel", "INFO", "--pidfile="],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "BIG_BRAIN_APP": "served",
                "BIG_BRAIN_REDIS_URL": url,
                **(skewed if fast and FAKETIME.exists() else {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def noted(client: redis.Redis) -> list[tuple[int, str]]:
    """The instant and the run of each time that the body ran."""
    rows = (row.decode().split() for row in client.lrange("noted", 0, -1))
    return [(int(at), run) for at, run in rows]


def show(firings: int, folder: Path, *, stopped: float) -> Counter[int]:
    """How often each instant fired, of at least so many in a row; the last may still be under way.

    stopped: for how many seconds one of the beats is stopped, while Redis is killed.
    """
    with ExitStack() as stack:
        there = stack.enter_context(server(folder / "redis"))
        stack.enter_context(worker(there.url, folder, EVERY_SECOND))
        stack.enter_context(beat(there.url, folder, "one"))
        other = stack.enter_context(beat(there.url, folder, "other", fast=2.0))
        client = stack.enter_context(redis.Redis.from_url(there.url, retry_on_error=[redis.ConnectionError]))
        wait_for(client, firings // 4)
        other.send_signal(signal.SIGSTOP)
        time.sleep(stopped / 2)
        restart(there)
        time.sleep(stopped / 2)
        other.send_signal(signal.SIGCONT)
        wait_for(client, firings // 2)
        restart(there)
        wait_for(client, firings)
        return Counter(at for at, _ in noted(client))


def wait_for(client: redis.Redis, firings: int) -> None:
    """Waits until so many have fired."""
    until = time.monotonic() + firings * 2 + 60
    while True:
        try:
            if client.llen("noted") >= firings:
                return
        except redis.RedisError:
            pass
        assert time.monotonic() < until, f"there are no {firings} firings"
        time.sleep(0.2)


def missing(fired: Counter[int]) -> list[int]:
    """The instants between the first and the last that did not fire; the last two may still be under way."""
    return [at for at in range(min(fired), max(fired) - 2) if at not in fired]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        fired = show(int(sys.argv[1]), Path(folder), stopped=20)
    twice = {at: times for at, times in fired.items() if times > 1}
    clocks = "2 s apart" if FAKETIME.exists() else "the same: there is no libfaketime here"
    print(f"{len(fired)} instants, {len(missing(fired))} missing, {len(twice)} more than once; clocks {clocks}")


if __name__ == "__main__":
    main()
