"""A task is stopped from any thread, and a question when its time is over."""

from __future__ import annotations

import threading
import time

import pytest

from bigbrain.errors import ModelTimeout, RunCancelled
from bigbrain.orchestrator.cancellation import Cancellation, joined, limited
from bigbrain.scope import Scope


def test_a_cancellation_stays_set_and_keeps_its_first_reason() -> None:
    stop = Cancellation()
    assert not stop.cancelled

    stop.cancel("the window was closed")
    stop.cancel("another reason")

    assert stop.cancelled
    with pytest.raises(RunCancelled, match="the window was closed"):
        stop.scope.check()


@pytest.mark.parametrize("which", [0, 1])
def test_whoever_is_cancelled_first_stops_the_block(which: int) -> None:
    scopes = Scope(), Scope()
    with joined(*scopes) as own:
        scopes[which].cancel(RunCancelled(f"by {which}"))

        with pytest.raises(RunCancelled, match=f"by {which}"):
            own.check()


def test_a_block_in_a_cancelled_scope_is_not_begun() -> None:
    scope = Scope()
    scope.cancel(RunCancelled("too late"))

    with pytest.raises(RunCancelled, match="too late"), joined(Scope(), scope):
        pytest.fail("the block ran")


def test_what_ends_well_leaves_nothing_on_the_scopes_around() -> None:
    scope = Scope()
    with limited(scope, time.monotonic() + 60) as own:
        pass

    scope.cancel(RunCancelled("later"))

    assert not own.cancelled


def test_the_deadline_wakes_what_waits() -> None:
    with limited(Scope(), time.monotonic() + 0.02) as own, pytest.raises(ModelTimeout, match="`timeout`"):
        own.wait(30)


def test_another_thread_wakes_what_waits() -> None:
    stop = Cancellation()
    with limited(stop.scope, time.monotonic() + 60) as own:
        threading.Timer(0.02, stop.cancel).start()

        with pytest.raises(RunCancelled):
            own.wait(30)


def test_a_deadline_that_is_over_lets_nothing_begin() -> None:
    with pytest.raises(ModelTimeout), limited(Scope(), time.monotonic() - 1):
        pytest.fail("the block ran")


def test_a_cancelled_scope_goes_before_a_deadline_that_is_over() -> None:
    stop = Cancellation()
    stop.cancel("first")

    with pytest.raises(RunCancelled, match="first"), limited(stop.scope, time.monotonic() - 1):
        pytest.fail("the block ran")
