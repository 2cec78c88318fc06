"""How many calls of one model are under way in this process, and who waits for one of them to end.

Only calls with a limit are counted, those of one server, key and name together,
however their models differ otherwise; each waits until fewer than its own limit are
under way. Who has waited longest goes first, unless its limit is lower than another's.
Waiting is no part of a call: no timeout and no retry counts it, and no fallback is
asked meanwhile. Other processes have gates of their own.

One exception keeps handlers from waiting for themselves: a thread in which a counted
answer is still open (asked for and not read to its end) is let through at once.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bigbrain.scope import Scope


@dataclass(eq=False)
class _Ticket:
    """A call that wants in."""

    model: Hashable
    limit: int
    thread: int = field(default_factory=threading.get_ident)
    woken: threading.Event = field(default_factory=threading.Event)
    admitted: bool = False


class Gates:
    """The gates of all models in one process; for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Ticket] = []
        self._open: Counter[Hashable] = Counter()
        self._held: Counter[int] = Counter()

    @contextmanager
    def passed(self, model: Hashable, limit: int, scope: Scope) -> Iterator[None]:
        """Runs a block as one of at most `limit` calls of `model`; waits until it may.

        Raises the scope's error when it is cancelled meanwhile.
        """
        ticket = _Ticket(model, limit)
        self._enter(ticket, scope)
        try:
            yield
        finally:
            self._leave(ticket)

    def waiting(self) -> int:
        """How many calls wait at this moment."""
        return len(self._waiting)

    def _enter(self, ticket: _Ticket, scope: Scope) -> None:
        with self._lock:
            if self._held[ticket.thread] or self._open[ticket.model] < ticket.limit:
                self._admit(ticket)
                return
            self._waiting.append(ticket)
        try:
            with scope.guard(ticket.woken.set):
                ticket.woken.wait()
                scope.check()
        except BaseException:
            self._leave(ticket)
            raise

    def _admit(self, ticket: _Ticket) -> None:
        ticket.admitted = True
        self._open[ticket.model] += 1
        self._held[ticket.thread] += 1
        ticket.woken.set()

    def _leave(self, ticket: _Ticket) -> None:
        with self._lock:
            if not ticket.admitted:
                self._waiting.remove(ticket)
                return
            self._open[ticket.model] -= 1
            self._held[ticket.thread] -= 1
            # zeros would stay for every thread that there ever was
            self._open, self._held = +self._open, +self._held
            for other in tuple(self._waiting):
                if self._open[other.model] < other.limit:
                    self._waiting.remove(other)
                    self._admit(other)


_gates: dict[int, Gates] = {}


def gates() -> Gates:
    """The gates of this process; a forked child, in which none of its parent's calls goes on, has its own."""
    return _gates.setdefault(os.getpid(), Gates())
