"""The leases of this process's steps: one thread renews them all, one hears who must stop.

The thread that hears is this process's presence, too: whoever looks after lost steps asks the server whether
anybody listens to our channel. A process that is killed stops listening in the same moment.

A step whose lease is refused has a new owner somewhere; one whose lease could not
be renewed for its whole length may have. Both are stopped before they ask a model
or run a tool again, and the fence keeps what they still write out of the record.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import redis

from bigbrain.engine.records import Claim
from bigbrain.engine.server import subscribed
from bigbrain.engine.store import RunStore
from bigbrain.errors import RunCancelled, RunInterrupted
from bigbrain.scope import Scope

logger = logging.getLogger(__name__)


SOON = 0.1
"""Seconds until leases that could not be renewed are tried again; a server that is back must hear who lives at once."""

LEAVE = b"!leave"
"""Said on a process's own channel: it is to hand back what it holds."""


def _place(pid: int) -> str:
    return f"{socket.gethostname()}.{pid}"


def hand_back(client: redis.Redis, pids: Iterable[int]) -> None:
    """Has processes of this machine hand back the steps that they hold, as `Leases.hand_back` does."""
    places = tuple(f"{_place(pid)}." for pid in pids)
    for process, _ in client.zscan_iter("bb:here") if places else ():
        if process.decode().startswith(places):
            client.publish(f"bb:here:{process.decode()}", LEAVE)


class Leases:
    """The steps that this process holds."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._process = f"{_place(os.getpid())}.{uuid4().hex}"
        self._present = threading.Event()
        self._held: dict[str, tuple[int, Scope, float]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        for target, name in ((self._renew, "lease renewal"), (self._listen, "stop listener")):
            threading.Thread(target=target, name=name, daemon=True).start()

    def owner(self) -> str:
        """A name for the owner of one claim: this process, if it can be heard, and what no other claim has."""
        return f"{self._process if self._present.is_set() else ''}:{uuid4().hex}"

    def wait_present(self, seconds: float) -> bool:
        """Whether this process can be heard within so many seconds."""
        return self._present.wait(seconds)

    @contextlib.contextmanager
    def hold(self, claim: Claim, scope: Scope) -> Iterator[None]:
        """Keeps a claimed step ours while the block runs."""
        with self._lock:
            older = self._held.get(claim.run_id)
            self._held[claim.run_id] = (claim.fence, scope, time.monotonic())
        scope.limit(partial(self._lapsed, claim.run_id, claim.fence))
        if older:
            # this process slept through its own lease and has claimed the step anew
            older[1].cancel(RunInterrupted("the lease of this step was lost"))
        try:
            yield
        finally:
            with self._lock:
                if self._held.get(claim.run_id, (None,))[0] == claim.fence:
                    del self._held[claim.run_id]

    def _lapsed(self, run_id: str, fence: int) -> RunInterrupted | None:
        held = self._held.get(run_id)
        if held and held[0] == fence and time.monotonic() - held[2] > self._store.lease:
            return RunInterrupted("the lease of this step has run out")
        return None

    def __len__(self) -> int:
        """How many steps are held."""
        return len(self._held)

    def stop(self, run_id: str) -> None:
        """Stops a step of this process because its run was cancelled; nothing when it is not here."""
        held = self._held.get(run_id)
        if held:
            held[1].cancel(RunCancelled())

    def hand_back(self) -> int:
        """Gives up all steps that are held, for other processes to go on with at once; how many."""
        with self._lock:
            held = dict(self._held)
        for _, scope, _ in held.values():
            # first of all, so that nothing is told any more that the next attempt would not know of
            scope.cancel(RunInterrupted("this process ends"))
        self._store.release(((run_id, fence) for run_id, (fence, _, _) in held.items()), self._process)
        return len(held)

    def close(self) -> None:
        """Has the threads end, which takes them up to a second; leases that are held lapse."""
        self._closing.set()

    def _renew(self) -> None:
        away = False
        while not self._closing.wait(min(SOON, self._store.lease / 4) if away else self._store.lease / 4):
            with self._lock:
                held = dict(self._held)
            try:
                away = bool(held) and not self._renew_once(held, quiet=away)
            except Exception:
                # whatever it is, all steps of this process hang on this thread
                logger.exception("leases could not be renewed")

    def _renew_once(self, held: dict[str, tuple[int, Scope, float]], *, quiet: bool) -> bool:
        """Whether the server was there; `quiet`: that it was not has been said before."""
        asked = time.monotonic()
        try:
            lost, stopped = self._store.renew(
                ((run_id, fence) for run_id, (fence, _, _) in held.items()),
                self._process if self._present.is_set() else "",
            )
        except redis.RedisError as exc:
            if not quiet:
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
        return bool(asked)

    def _renewed(self, run_id: str, fence: int, at: float) -> None:
        with self._lock:
            now_held = self._held.get(run_id)
            if now_held and now_held[0] == fence:
                self._held[run_id] = (fence, now_held[1], at)

    def _listen(self) -> None:
        heard = True
        while not self._closing.is_set():
            try:
                with subscribed(self._store.client, "bb:stop", f"bb:here:{self._process}") as channel:
                    while not self._closing.is_set():
                        self._hear(channel.get_message(timeout=1.0))
                        heard = True
            except redis.RedisError as exc:
                # nothing is lost meanwhile: each renewal and each write says who is to stop
                if heard and not self._closing.is_set():
                    logger.warning("the stop listener lost its connection: %s", exc)
                # once is enough to say it
                heard = False
                self._closing.wait(0.1)

    def _hear(self, message: dict[str, Any] | None) -> None:
        if not message:
            return
        if message["data"] == LEAVE:
            self.hand_back()
        elif message["type"] == "message":
            self.stop(message["data"].decode())
        elif message["data"] == 2:
            # of both channels
            self._present.set()
