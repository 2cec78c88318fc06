"""Points that one agent reaches and others wait for, anew in each run."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from bigbrain.errors import RunError
from bigbrain.scope import Scope


class Barriers:
    """Which checkpoints were reached in one run."""

    def __init__(self, reached: Iterable[str] = ()) -> None:
        self._reached = set(reached)
        self._changed = threading.Condition()

    @property
    def reached(self) -> tuple[str, ...]:
        """The names of those that were reached, sorted."""
        return tuple(sorted(self._reached))

    def reach(self, name: str) -> None:
        """Lets all go on who wait for it, now and later."""
        with self._changed:
            self._reached.add(name)
            self._changed.notify_all()

    def wait(self, name: str, scope: Scope, timeout: float | None) -> None:
        """Waits until it is reached.

        Raises what the scope is cancelled with, and `RunError` after `timeout` seconds.
        """
        with scope.guard(self._wake), self._changed:
            self._changed.wait_for(lambda: name in self._reached or scope.cancelled, timeout)
        scope.check()
        if name not in self._reached:
            raise RunError(f"nobody reached the checkpoint `{name}` within {timeout} seconds")

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True)
class Checkpoint:
    """A point in a run, declared once: `turn.reach(there)` in one agent, `turn.wait_for(there)` in others.

    Each run has its own: what one request reached is not reached in the next. It holds among the
    agents and members that run at once, and for those that come later in the run.
    """

    name: str
