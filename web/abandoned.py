"""Runs whose client has left: stopped after a short grace, unless the store knows a reason not to."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque

import redis

from bigbrain.engine.store import RunStore

logger = logging.getLogger(__name__)

GRACE = 0.5
"""Seconds between a client's departure and the stop of its run: short enough that a model stops within a second to write
what nobody reads."""

RETURN = 5.0
"""The same for a run to which its client comes back: it has named it, or it has waited as long as its SDK does and asks again."""


class Abandoned:
    """The runs of this process that nobody may want any more; a thread stands by only while there are some."""

    def __init__(self, store: RunStore, *, grace: float = GRACE) -> None:
        self._store = store
        self._grace = grace
        self._waiting: deque[tuple[float, str]] = deque()
        self._lock = threading.Lock()
        self._running = False

    def add(self, run_id: str) -> None:
        """Has a run stopped after the grace, if by then nobody follows it, its answer is owed and nothing of it lasts."""
        with self._lock:
            self._waiting.append((time.monotonic() + self._grace, run_id))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="abandoned", daemon=True).start()

    def _run(self) -> None:
        while (entry := self._next()) is not None:
            due, run_id = entry
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                self._store.stop(run_id, if_abandoned=True)
            except redis.RedisError as exc:
                logger.warning("run %s has lost its client and could not be stopped: %s", run_id, exc)

    def _next(self) -> tuple[float, str] | None:
        with self._lock:
            self._running = bool(self._waiting)
            return self._waiting.popleft() if self._running else None
