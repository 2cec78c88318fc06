"""Fixtures for all tests: a clean environment, a store for the fast ones, a real server for the slow ones."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import fakeredis
import pytest

from bigbrain.engine.store import RunStore


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
def store() -> RunStore:
    """Runs in a Redis of this test's own, inside this process; short leases so that lapsing needs no patience."""
    return RunStore(fakeredis.FakeRedis(server=fakeredis.FakeServer()), lease=0.4, grace=0.2)
