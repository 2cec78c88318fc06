"""A web process that is asked to end while answers are open."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from bigbrain.engine.channels import Hub
from bigbrain.engine.store import RunStore
from bigbrain.events import Failed
from tests.engine.acting import new_run, until
from web.endings import end_with_notice


@pytest.fixture
def hub(store: RunStore) -> Iterator[Hub]:
    one = Hub(store)
    yield one
    one.close()


@pytest.fixture
def ended() -> Iterator[threading.Event]:
    """Set when whoever runs this process was asked to end it."""
    heard = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    yield heard
    signal.signal(signal.SIGTERM, before)


def in_a_thread(after: float, do: Callable[[], None]) -> None:
    timer = threading.Timer(after, do)
    timer.daemon = True
    timer.start()


def test_an_open_answer_ends_with_an_error_that_can_be_tried_again_and_its_run_goes_on(
    hub: Hub, store: RunStore, ended: threading.Event
) -> None:
    end_with_notice(hub, after=0.05, later=in_a_thread)
    with hub.follow("r1", seq=1) as follower:
        store.start(new_run(), hub.channel)
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: follower.read(0.1) if not follower.over else True)
        assert ended.is_set()

        assert follower.over
    record = store.record("r1")
    assert record is not None
    assert record.status == "queued"


def test_what_is_told_until_then_is_told(hub: Hub, store: RunStore, ended: threading.Event) -> None:
    end_with_notice(hub, after=60, later=in_a_thread)
    with hub.follow("r1", seq=1) as follower:
        store.start(new_run(), hub.channel)
        os.kill(os.getpid(), signal.SIGTERM)
        assert follower.read(0.05) == []
        assert not follower.over


def test_the_error_says_what_to_do(hub: Hub, store: RunStore, ended: threading.Event) -> None:
    end_with_notice(hub, after=0.0, later=in_a_thread)
    with hub.follow("r1", seq=1) as follower:
        store.start(new_run(), hub.channel)
        os.kill(os.getpid(), signal.SIGTERM)
        [event] = follower.read(5)

    assert isinstance(event, Failed)
    assert (event.code, event.status, event.retryable) == ("server_ending", 503, True)
    assert "same run id" in event.message
