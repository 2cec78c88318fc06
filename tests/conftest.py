"""Fixtures for all tests: a clean environment, a store for the fast ones, a real server for the slow ones."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import fakeredis
import pytest
import redis

from bigbrain.embedded import EmbeddedRedis
from bigbrain.engine.store import RunStore
from tests.workers.processes import Worker


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings or the keys of the one who runs it."""
    for name in list(os.environ):
        if name.startswith(("BIG_BRAIN_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """A test ends the threads that it starts (daemon threads of libraries excepted)."""
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    for thread in left:
        thread.join(timeout=5)
    assert [thread.name for thread in left if thread.is_alive()] == []


@pytest.fixture
def fake_server() -> fakeredis.FakeServer:
    """The Redis of `store`; it is away while its `connected` is False."""
    return fakeredis.FakeServer()


@pytest.fixture
def store(fake_server: fakeredis.FakeServer) -> RunStore:
    """Runs in a Redis of this test's own, inside this process; short leases so that lapsing needs no patience."""
    return RunStore(fakeredis.FakeRedis(server=fake_server, max_connections=1000), lease=0.4, grace=0.2)


@pytest.fixture(scope="session")
def _server() -> Iterator[EmbeddedRedis]:
    # not pytest's own folder: the path of a socket has room for some 100 bytes only
    with tempfile.TemporaryDirectory(prefix="bb-") as folder:
        server = EmbeddedRedis(Path(folder))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def redis_server(_server: EmbeddedRedis) -> EmbeddedRedis:
    """A real server on a unix socket, empty; a test that kills it may `start` it again."""
    if not _server.alive():
        _server.start()
    with redis.Redis.from_url(_server.url) as client:
        client.flushall()
        client.config_resetstat()
    return _server


@pytest.fixture
def worker(redis_server: EmbeddedRedis, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts a real worker: `worker(queue, source)` serves the brain of `source`, the text of a module; see `Worker`."""
    workers: list[Worker] = []

    def start(queue: str, source: str, *, pool: str = "threads", concurrency: int = 20) -> Worker:
        workers.append(Worker(redis_server.url, tmp_path, source, queue=queue, pool=pool, concurrency=concurrency))
        return workers[-1]

    yield start
    for one in workers:
        one.kill()
