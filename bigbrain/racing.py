"""Several pieces of work at once, each in a thread and a scope of its own.

Threads are what models are waited for in; a member that is stopped has its scope
cancelled, which closes its connections at once. Nobody waits for a member that does
not heed that: what it still makes is dropped, and its thread ends with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Generic, TypeVar

from bigbrain.errors import BrainError, HandlerFailed, RunCancelled
from bigbrain.scope import Scope

T = TypeVar("T")


class Race(Generic[T]):
    """Members at work; `outcomes` tells of each as it ends."""

    def __init__(self, members: Sequence[tuple[str, Callable[[Scope], T]]]) -> None:
        """members: names for people, and what each does within its scope."""
        self._members = members
        self._scopes = [Scope() for _ in members]
        self._ended: SimpleQueue[tuple[int, T | BrainError]] = SimpleQueue()

    @contextmanager
    def running(self, scope: Scope) -> Iterator[Iterator[tuple[int, T | BrainError]]]:
        """Has all members at work while the block runs: their outcomes, or errors, by number, as they end.

        Leaving the block stops those that are still at work. `scope` stops all of them.
        """
        with scope.guard(lambda: self._give_up(scope.error or RunCancelled())):
            for number in range(len(self._members)):
                threading.Thread(target=self._work, args=(number,), name="member", daemon=True).start()
            try:
                yield (self._ended.get() for _ in self._members)
            finally:
                self._stop(RunCancelled("another member has decided"))

    def _give_up(self, error: BrainError) -> None:
        self._stop(error)
        # a member that does not heed its scope must not keep the one who waits
        self._ended.put((-1, error))

    def _stop(self, error: BrainError) -> None:
        for scope in self._scopes:
            scope.cancel(error)

    def _work(self, number: int) -> None:
        name, work = self._members[number]
        try:
            self._ended.put((number, work(self._scopes[number])))
        except BrainError as exc:
            self._ended.put((number, exc))
        # whatever a member raises ends the member, never the process
        except BaseException as exc:
            error = HandlerFailed(f"member `{name}`")
            error.__cause__ = exc
            self._ended.put((number, error))


def all_of(scope: Scope, members: Sequence[tuple[str, Callable[[Scope], T]]]) -> list[T]:
    """What every member made, in the order of the members.

    Raises the first error, and stops the other members.
    """
    made: dict[int, T] = {}
    with Race(members).running(scope) as outcomes:
        for number, outcome in outcomes:
            scope.check()
            if isinstance(outcome, BrainError):
                raise outcome
            made[number] = outcome
    return [made[number] for number in range(len(members))]


def first_of(scope: Scope, members: Sequence[tuple[str, Callable[[Scope], T]]]) -> T:
    """What the first member that succeeded made; the others are stopped.

    Raises the last error when all fail.
    """
    error: BrainError = HandlerFailed("there is no member")
    with Race(members).running(scope) as outcomes:
        for _, outcome in outcomes:
            scope.check()
            if not isinstance(outcome, BrainError):
                return outcome
            error = outcome
    raise error
