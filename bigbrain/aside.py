"""A tracer that hands events to a thread of its own, so that nobody who tells has to wait.

It starts with the first event, so it costs nothing where nothing happens, and starts anew
in the child of a fork. Events wait in bounded room: when whoever takes them is too slow or
away for too long, later ones are given up and counted, and the number is told in their place.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from bigbrain.trace import TraceEvent, Tracer

logger = logging.getLogger(__name__)

Write = Callable[[Sequence[TraceEvent]], None]

ROOM = 10_000
"""Events that may wait in one process: some 5 MB, a minute of a busy worker."""
BATCH = 500
"""Events that are handed over at a time."""
GATHER = 0.05
"""Seconds in which events gather: at most so many threads are woken a second as that fits into it."""
PAUSE = 1.0
"""Seconds before a batch that was refused is tried again."""


class Aside:
    """Hands events over in batches, from one thread, in the order in which they were told."""

    def __init__(
        self, write: Write, *, name: str = "trace", room: int = ROOM, gather: float = GATHER, pause: float = PAUSE
    ) -> None:
        """write: takes a batch; when it raises, the batch is kept and tried again after `pause` seconds."""
        self._write = write
        self._name = name
        self._room = room
        self._gather = gather
        self._pause = pause
        self._begin()
        os.register_at_fork(after_in_child=_Anew(self))

    @classmethod
    def of(cls, tracer: Tracer, **options: float) -> Aside:
        """Lets a tracer that may be slow hear of events aside; an event that it fails on is logged and forgotten."""

        def write(events: Sequence[TraceEvent]) -> None:
            for event in events:
                try:
                    tracer.trace(event)
                except Exception:
                    logger.exception("a tracer failed on `%s`", event.kind)

        return cls(write, **options)  # type: ignore[arg-type]

    @property
    def dropped(self) -> int:
        """How many events were given up since that was last told."""
        return self._dropped

    def trace(self, event: TraceEvent) -> None:
        """Takes an event; never waits."""
        if self._closed or len(self._events) >= self._room:
            with self._lock:
                self._dropped += 1
            return
        self._events.append(event)
        if not self._news.is_set():
            self._news.set()
        if self._thread is None:
            self._start()

    def close(self, timeout: float = 2.0) -> None:
        """Hands over what waits, and ends the thread; gives up what is left after `timeout` seconds."""
        self._closed = True
        self._ending.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(timeout)

    def _begin(self) -> None:
        """Starts from nothing: also in the child of a fork, where the parent's thread is not and its events are not ours."""
        self._events: deque[TraceEvent] = deque()
        self._dropped = 0
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._ending = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def _work(self) -> None:
        complained = False
        while not self._ending.is_set() or self._events:
            self._news.wait()
            self._ending.wait(self._gather)
            # before the events are taken: one that comes meanwhile sets it again
            self._news.clear()
            try:
                self._hand_over()
                complained = False
            except Exception as exc:
                if not complained:
                    logger.warning("%s: events cannot be handed over, they wait: %s", self._name, exc)
                complained = True
                self._news.set()
                if self._ending.is_set():
                    return
                self._ending.wait(self._pause)

    def _hand_over(self) -> None:
        while self._events:
            # this thread alone takes events out, so these are still the first ones afterwards
            batch = [self._events[index] for index in range(min(BATCH, len(self._events)))]
            self._write(batch)
            for _ in batch:
                self._events.popleft()
        if count := self._dropped:
            self._write([TraceEvent("trace.dropped", "", time.time(), detail={"count": count})])
            with self._lock:
                self._dropped -= count


class _Anew:
    """Has a tracer start from nothing in a child, as long as there is one."""

    def __init__(self, aside: Aside) -> None:
        self._aside = weakref.ref(aside)

    def __call__(self) -> None:
        aside = self._aside()
        if aside is not None:
            aside._begin()
