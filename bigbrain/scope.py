"""What a piece of work that may be stopped from outside runs in.

One thread works, any other may call `cancel`. Work that blocks registers how to wake
it (`guard`, `hold`): a socket to shut down, a process to kill. `cancel` runs these at
once, so a read that waits for a silent server ends within milliseconds; whatever then
comes up in the working thread is turned into the error that was given to `cancel`.
Work that does not block asks `check` now and then.

A stop function never runs after its registration has been released: both happen
under one lock, so a socket that goes back to its pool cannot be shut down late.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy

from bigbrain.errors import BrainError


class Scope:
    """The life of one cancellable piece of work; not to be used again once it is cancelled."""

    def __init__(self) -> None:
        # Reentrant: a stop function may end work whose release comes back here in the same thread.
        self._lock = threading.RLock()
        self._stops: dict[int, Callable[[], None]] = {}
        self._count = 0
        self._error: BrainError | None = None
        self._cancelled = threading.Event()
        self._over: Callable[[], BrainError | None] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled this work."""
        return self._error is not None

    @property
    def error(self) -> BrainError | None:
        """What the work was cancelled with, if it was."""
        return self._error

    def cancel(self, error: BrainError) -> None:
        """Stop the work: it raises (a copy of) `error`. From any thread; only the first call counts."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            self._cancelled.set()
            for stop in tuple(self._stops.values()):
                stop()

    def limit(self, over: Callable[[], BrainError | None]) -> None:
        """Have `check` ask, too, whether the time of this work is over: it is cancelled with the error that `over` gives.

        A process that was frozen goes on with all its threads at once, and the one that would cancel this work may be the last.
        """
        self._over = over

    def check(self) -> None:
        """Go on, unless the work was cancelled.

        Raises the error given to `cancel`.
        """
        if self._error is None and self._over is not None and (error := self._over()) is not None:
            self.cancel(error)
        if self._error is not None:
            # A copy, because several threads may raise it and each adds its own traceback.
            raise copy(self._error)

    def wait(self, seconds: float) -> None:
        """Sleep.

        Raises the error given to `cancel`, at once when it is called.
        """
        self._cancelled.wait(seconds)
        self.check()

    def hold(self, stop: Callable[[], None]) -> Callable[[], None]:
        """Have `stop` called on `cancel`; gives the function that ends this.

        stop: quick, harmless when its work has just ended, and never raising; it
        runs in the thread that cancels.

        Raises the error given to `cancel` when it was called before.
        """
        with self._lock:
            self.check()
            self._count += 1
            number = self._count
            self._stops[number] = stop

        def release() -> None:
            with self._lock:
                self._stops.pop(number, None)

        return release

    @contextmanager
    def guard(self, stop: Callable[[], None] | None = None) -> Iterator[None]:
        """Run a block that `stop` wakes on `cancel`.

        Raises the error given to `cancel` on entering, and instead of whatever the block raises because of it.
        """
        self.check()
        release = self.hold(stop) if stop else None
        try:
            yield
        except Exception as exc:
            if self._error is not None:
                raise copy(self._error) from exc
            raise
        finally:
            if release:
                release()
