from __future__ import annotations

import socket
import threading
from functools import partial

import pytest

from bigbrain.errors import ModelTimeout, RunCancelled
from bigbrain.scope import Scope


def test_a_scope_lets_work_go_on_until_it_is_cancelled() -> None:
    scope = Scope()
    scope.check()
    scope.cancel(RunCancelled("enough"))

    assert scope.cancelled
    with pytest.raises(RunCancelled, match="enough"):
        scope.check()


def test_only_the_first_cancellation_counts() -> None:
    scope = Scope()
    scope.cancel(RunCancelled())
    scope.cancel(ModelTimeout())

    with pytest.raises(RunCancelled):
        scope.check()


def test_a_blocked_read_ends_and_gives_the_scopes_error() -> None:
    scope = Scope()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        threading.Timer(0.02, scope.cancel, [RunCancelled("stop")]).start()
        with pytest.raises(RunCancelled, match="stop") as caught, scope.guard(partial(ours.shutdown, socket.SHUT_RDWR)):
            if not ours.recv(1):
                raise ConnectionError("the reader's own error")

    assert isinstance(caught.value.__cause__, ConnectionError)


def test_without_cancellation_a_guard_passes_errors_on() -> None:
    with pytest.raises(ZeroDivisionError), Scope().guard():
        1 / 0


def test_a_released_stop_is_never_called() -> None:
    scope = Scope()
    called: list[str] = []
    release = scope.hold(partial(called.append, "released"))
    scope.hold(partial(called.append, "held"))
    release()
    scope.cancel(RunCancelled())

    assert called == ["held"]


def test_a_cancelled_scope_takes_no_new_stop() -> None:
    scope = Scope()
    scope.cancel(RunCancelled())

    with pytest.raises(RunCancelled):
        scope.hold(lambda: None)
    with pytest.raises(RunCancelled), scope.guard():
        pytest.fail("the block was entered")


def test_a_wait_ends_at_once() -> None:
    scope = Scope()
    threading.Timer(0.02, scope.cancel, [RunCancelled()]).start()

    with pytest.raises(RunCancelled):
        scope.wait(60)


def test_one_scope_cancels_another() -> None:
    outer, inner = Scope(), Scope()
    release = outer.hold(partial(inner.cancel, RunCancelled("from outside")))
    outer.cancel(RunCancelled())
    release()

    with pytest.raises(RunCancelled, match="from outside"):
        inner.check()


def test_every_thread_raises_an_error_of_its_own() -> None:
    scope = Scope()
    scope.cancel(RunCancelled("stop", retry_after=3))
    errors = []
    for _ in range(2):
        with pytest.raises(RunCancelled) as caught:
            scope.check()
        errors.append(caught.value)

    assert errors[0] is not errors[1]
    assert errors[1].retry_after == 3


def test_work_whose_time_is_over_stops_at_its_next_look_though_nobody_cancels_it() -> None:
    scope, over, heard = Scope(), list[RunCancelled](), threading.Event()
    scope.limit(lambda: over[0] if over else None)
    scope.check()
    scope.hold(heard.set)
    over.append(RunCancelled("time is over"))

    assert not scope.cancelled
    with pytest.raises(RunCancelled, match="time is over"):
        scope.check()
    assert scope.cancelled
    assert heard.is_set()
