"""Stopping a task from another thread, and stopping one question to its model when the time for it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bigbrain.errors import BrainError, ModelTimeout, RunCancelled
from bigbrain.scope import Scope


class Cancellation:
    """Stops the tasks of every orchestrator that has it; any thread may set it, and it stays set.

    >>> stop = Cancellation()
    >>> stop.cancel("the user closed the window")
    >>> stop.cancelled
    True
    """

    def __init__(self) -> None:
        self.scope = Scope()
        """What the tasks watch; see `bigbrain.scope`."""

    def cancel(self, reason: str = "the task was cancelled") -> None:
        """Ends the tasks with this reason, within milliseconds; only the first call counts."""
        self.scope.cancel(RunCancelled(reason))

    @property
    def cancelled(self) -> bool:
        """Whether somebody has called `cancel`."""
        return self.scope.cancelled


@contextmanager
def joined(*scopes: Scope) -> Iterator[Scope]:
    """A scope for one block, cancelled with the first of `scopes` that is, and with its error.

    Raises the error of one that was cancelled before.
    """
    own = Scope()
    with ExitStack() as stack:
        for scope in scopes:
            scope.check()
            stack.callback(scope.hold(_passing(scope, own)))
        yield own


@contextmanager
def limited(scope: Scope, deadline: float) -> Iterator[Scope]:
    """A scope for one block, cancelled with `scope`, and with `ModelTimeout` at `deadline`, by `time.monotonic`.

    Whatever blocks in it registers how to wake it: `with scope.guard(stop): …`, see `Scope`.
    Raises the error of `scope`, or `ModelTimeout`, when it is too late already.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        scope.check()
        raise _too_late()
    with joined(scope) as own:
        timer = threading.Timer(left, lambda: own.cancel(_too_late()))
        timer.daemon = True
        timer.start()
        try:
            yield own
        finally:
            timer.cancel()


def _passing(scope: Scope, own: Scope) -> Callable[[], None]:
    def stop() -> None:
        error = scope.error
        own.cancel(error if error is not None else RunCancelled())

    return stop


def _too_late() -> BrainError:
    return ModelTimeout("the model's reply took longer than the orchestrator's `timeout`; raise it, or ask for less")
