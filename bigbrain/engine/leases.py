"""The leases of this process's steps: one thread renews them all, one hears who must stop.

A step whose lease is refused has a new owner somewhere; one whose lease could not
be renewed for its whole length may have. Both are stopped before they ask a model
or run a tool again, and the fence keeps what they still write out of the record.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

import redis

from bigbrain.engine.records import Claim
from bigbrain.engine.store import RunStore, subscribed
from bigbrain.errors import RunCancelled, RunInterrupted
from bigbrain.scope import Scope

logger = logging.getLogger(__name__)


class Leases:
    """The steps that this process holds."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._held: dict[str, tuple[int, Scope, float]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        for target, name in ((self._renew, "lease renewal"), (self._listen, "stop listener")):
            threading.Thread(target=target, name=name, daemon=True).start()

    @contextlib.contextmanager
    def hold(self, claim: Claim, scope: Scope) -> Iterator[None]:
        """Keeps a claimed step ours while the block runs."""
        with self._lock:
            older = self._held.get(claim.run_id)
            self._held[claim.run_id] = (claim.fence, scope, time.monotonic())
        if older:
            # this process slept through its own lease and has claimed the step anew
            older[1].cancel(RunInterrupted("the lease of this step was lost"))
        try:
            yield
        finally:
            with self._lock:
                if self._held.get(claim.run_id, (None,))[0] == claim.fence:
                    del self._held[claim.run_id]

    def __len__(self) -> int:
        """How many steps are held."""
        return len(self._held)

    def stop(self, run_id: str) -> None:
        """Stops a step of this process because its run was cancelled; nothing when it is not here."""
        held = self._held.get(run_id)
        if held:
            held[1].cancel(RunCancelled())

    def close(self) -> None:
        """Has the threads end, which takes them up to a second; leases that are held lapse."""
        self._closing.set()

    def _renew(self) -> None:
        while not self._closing.wait(self._store.lease / 4):
            with self._lock:
                held = dict(self._held)
            try:
                if held:
                    self._renew_once(held)
            except Exception:
                # whatever it is, all steps of this process hang on this thread
                logger.exception("leases could not be renewed")

    def _renew_once(self, held: dict[str, tuple[int, Scope, float]]) -> None:
        asked = time.monotonic()
        try:
            lost, stopped = self._store.renew((run_id, fence) for run_id, (fence, _, _) in held.items())
        except redis.RedisError as exc:
            logger.warning("leases could not be renewed: %s", exc)
            lost, stopped = set(), set()
            asked = 0.0
        now = time.monotonic()
        for run_id, (fence, scope, renewed) in held.items():
            if run_id in stopped:
                scope.cancel(RunCancelled())
            elif run_id in lost or now - max(renewed, asked) > self._store.lease:
                scope.cancel(RunInterrupted("the lease of this step was lost"))
            elif asked:
                self._renewed(run_id, fence, asked)

    def _renewed(self, run_id: str, fence: int, at: float) -> None:
        with self._lock:
            now_held = self._held.get(run_id)
            if now_held and now_held[0] == fence:
                self._held[run_id] = (fence, now_held[1], at)

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                with subscribed(self._store.client, "bb:stop") as channel:
                    while not self._closing.is_set():
                        message = channel.get_message(ignore_subscribe_messages=True, timeout=1.0)
                        if message:
                            self.stop(message["data"].decode())
            except redis.RedisError as exc:
                # nothing is lost meanwhile: each renewal and each write says who is to stop
                if not self._closing.is_set():
                    logger.warning("the stop listener lost its connection: %s", exc)
                self._closing.wait(1.0)
