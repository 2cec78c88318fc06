"""The queue inside one process: a pool of threads that executes chains, one that wakes.

The same `Engine.run_step` runs here as in a worker; only the way the news travels
is shorter. Nothing here needs to survive: what this process loses, `wake` finds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import redis

from bigbrain.engine.plan import Step
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import SOONEST

logger = logging.getLogger(__name__)

LAST_WORD = 2.0
"""Seconds that a look for what is due may take that is under way when the queue is closed."""


class LocalQueue:
    """Executes chains in threads of this process."""

    def __init__(self, threads: int = 64) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="step")
        self._waiting: set[tuple[str, str, int]] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._engine: Engine | None = None
        self._waking: threading.Thread | None = None

    def attach(self, engine: Engine, *, every: float = 1.0) -> None:
        """Lets the engine execute what is sent, and wakes it every so many seconds (0: never)."""
        self._engine = engine
        if every:
            self._waking = threading.Thread(target=self._wake, args=(engine, every), name="wake", daemon=True)
            self._waking.start()

    def send(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """Queues a chain; one that waits already is not queued again."""
        chain = (run_id, steps[0].path if steps else "", attempt)
        with self._lock:
            if chain in self._waiting or self._closing.is_set():
                return
            self._waiting.add(chain)
            self._pool.submit(self._execute, chain, steps, closed)

    def message(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """None: a chain waits in this process alone."""

    def names(self) -> Sequence[str]:
        """None: what waits here does not wait in Redis."""
        return ()

    def close(self) -> None:
        """Lets steps under way finish and drops those that wait."""
        with self._lock:
            self._closing.set()
        if self._waking is not None:
            # whoever closes it says that this process is gone, and nothing may say the contrary after that
            self._waking.join(LAST_WORD)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _execute(self, chain: tuple[str, str, int], steps: Sequence[Step], closed: bool) -> None:
        run_id, _, attempt = chain
        with self._lock:
            self._waiting.discard(chain)
        engine = self._engine
        if engine is None:
            raise RuntimeError("the queue has no engine: call `attach` first")
        try:
            for step in steps:
                if not engine.run_step(run_id, step.path, attempt):
                    return
                attempt = 1
            if closed:
                engine.runs.finish(run_id)
        except Exception:
            logger.exception("run %s: a step could not be executed", run_id)

    def _wake(self, engine: Engine, every: float) -> None:
        pause = every
        while not self._closing.wait(pause):
            try:
                pause = min(max(engine.runs.wake().pause, SOONEST), every)
            except redis.RedisError as exc:
                pause = every
                logger.warning("what is due could not be taken up: %s", exc)
            except Exception:
                pause = every
                logger.exception("what is due could not be taken up")
