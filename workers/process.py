"""What one worker process holds: the brain built, an engine, the thread that wakes what is due.

A pool of threads has one engine for all of them. A pool of processes has one in each
child, made after the fork, because threads and connections do not survive one.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

import redis
from celery import signals

from bigbrain.engine.leases import hand_back
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import SOONEST, Runs
from bigbrain.engine.server import connect
from bigbrain.engine.store import RENEWAL, RunStore
from bigbrain.initiative import Initiative, own_scope, with_initiative
from bigbrain.loading import load
from bigbrain.messages import JSON
from bigbrain.metrics import Meters
from bigbrain.program import Program
from bigbrain.ring import RedisRing
from bigbrain.settings import Settings
from bigbrain.telemetry import Telemetry, telemetry
from bigbrain.traced import Traced
from workers.chains import CeleryQueue
from workers.metrics import expose

logger = logging.getLogger(__name__)

ALIVE = 10
"""Seconds after which a worker that says nothing counts as gone."""
PRESENT = 1.0
"""Seconds that a new process waits to be heard of before it takes its first step; usually it takes a few ms."""
LAST_WORD = 2.0
"""Seconds that the end of a worker may take to be told."""


class Process:
    """The parts of a worker process, each made when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settings = Settings.read()
        self._name = ""
        self._program: Program | None = None
        self._runs: Runs | None = None
        self._initiative: Initiative | None = None
        self._engine: Engine | None = None
        self._ring: RedisRing | None = None
        self._meters: Meters | None = None
        self._telemetry: Telemetry | None = None
        self._closing = threading.Event()
        self._waking: threading.Thread | None = None
        self.pool: JSON = None
        """Celery's pool of this worker, once it takes messages."""

    def program(self) -> Program:
        """The brain built. Raises `WiringError` when it is faulty."""
        if self._program is None:
            brain = load(self._settings.app)
            self._program, self._name = brain.program(self._settings), brain.name
        return self._program

    def runs(self) -> Runs:
        """The runs of the brain."""
        with self._lock:
            if self._runs is None:
                program = self.program()
                store = RunStore(connect(self._settings.redis_url), kept=self._settings.keep)
                self._runs = Runs(program, store, CeleryQueue(store.client))
                self._initiative = with_initiative(self._name, program, self._runs, own_scope(self._settings))
            return self._runs

    def engine(self) -> Engine:
        """The engine of this process."""
        runs = self.runs()
        with self._lock:
            if self._engine is None:
                program = self.program()
                program.warm()
                hasty = connect(self._settings.redis_url, connections=2, retries=0, timeout=RENEWAL)
                self.tell()
                program.listen(self.meters())
                self._engine = Engine(Traced(program, program.tracers), runs, renewing=RunStore(hasty))
                # a step that is claimed before that is missed only when its lease is over
                self._engine.leases.wait_present(PRESENT)
            return self._engine

    def tell(self) -> Program:
        """Has the deployment's trace hear of what this process does; the brain built."""
        program = self.program()
        if self._ring is None:
            self._ring = RedisRing(connect(self._settings.redis_url, connections=2))
            program.listen(self._ring)
            self._telemetry = telemetry(self._settings, self._name)
            if self._telemetry is not None:
                program.listen(self._telemetry)
        return program

    def meters(self) -> Meters:
        """The metrics of this process."""
        if self._meters is None:
            self._meters = Meters(self._settings.metrics)
        return self._meters

    def show_metrics(self) -> None:
        """Opens the port for Prometheus, if the settings name one."""
        if self._settings.metrics_port:
            expose(self._settings.metrics_port, self.meters())

    def leave_parent(self) -> None:
        """Forgets what belongs to the parent of a forked process: its connections, threads and locks."""
        self._lock = threading.Lock()
        self._runs = None
        self._engine = None
        self._ring = None
        self._telemetry = None
        self._waking = None

    def keep_awake(self, name: str) -> None:
        """Starts the thread that takes up what is due and says that worker `name` is alive."""
        self._waking = threading.Thread(target=self._watch, args=(name,), name="wake", daemon=True)
        self._waking.start()

    def _watch(self, name: str) -> None:
        runs = self.runs()
        key = f"bb:worker:{name}"
        begun = False
        while True:
            pause = 1.0
            try:
                runs.store.client.set(key, os.getpid(), ex=ALIVE)
                if self._initiative is not None and not begun:
                    self._initiative.begin(name)
                    begun = True
                pause = max(runs.wake().pause, SOONEST)
            except redis.RedisError as exc:
                logger.warning("what is due could not be taken up: %s", exc)
            except Exception:
                logger.exception("what is due could not be taken up")
            if self._closing.wait(pause):
                break
        runs.store.client.delete(key)
        runs.schedules.leave(name)

    def drain(self, children: Sequence[int]) -> None:
        """After the seconds that steps get to finish, gives up those that are under way, here and in the pool's `children`."""
        if self._closing.wait(self._settings.drain):
            return
        try:
            if self._engine is not None:
                self._engine.hand_back()
            hand_back(self.runs().store.client, children)
        except redis.RedisError as exc:
            # their leases lapse
            logger.warning("steps under way could not be handed back: %s", exc)

    def close(self) -> None:
        """Ends the threads."""
        self._closing.set()
        if self._waking is not None:
            # it says that this worker is gone, so that the next one that comes up may be the first
            self._waking.join(LAST_WORD)
        if self._engine is not None:
            self._engine.close()
        if self._ring is not None:
            self._ring.close()
        if self._telemetry is not None:
            self._telemetry.close()


process = Process()


def ready(sender: JSON, **_: JSON) -> None:
    """A worker takes messages."""
    process.pool = sender.pool
    process.keep_awake(sender.hostname)
    process.show_metrics()


def leave(**_: JSON) -> None:
    """A worker was asked to end: it takes no more steps and waits for those under way."""
    children = process.pool.info.get("processes", ()) if process.pool is not None else ()
    threading.Thread(target=process.drain, args=(children,), name="drain", daemon=True).start()


def begin(sender: JSON, **_: JSON) -> None:
    """A worker begins: the brain is built now, so that a faulty one stops the worker and not a run."""
    try:
        process.program()
        if "prefork" not in str(sender.pool_cls):
            process.engine()
    except Exception as exc:
        # of an exception, Celery would only write a line into the log and go on
        raise SystemExit(f"the worker cannot start: {exc}") from exc


def fork(**_: JSON) -> None:
    """A child of a worker begins."""
    process.leave_parent()
    process.engine()


def end(**_: JSON) -> None:
    """A worker, or a child of one, ends."""
    process.close()


signals.worker_ready.connect(ready)
signals.worker_init.connect(begin)
signals.worker_shutting_down.connect(leave)
signals.worker_process_init.connect(fork)
signals.worker_process_shutdown.connect(end)
signals.worker_shutdown.connect(end)
