"""A brain at work in this process, without HTTP: its engine, its triggers, and a reception for whoever serves it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from socket import gethostname
from types import FrameType

import click

from bigbrain.brain import Brain
from bigbrain.embedded import RedisServer, redis_server
from bigbrain.engine.channels import Hub
from bigbrain.engine.local import LocalQueue
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.server import connect
from bigbrain.engine.store import RENEWAL, RunStore
from bigbrain.initiative import own_scope, with_initiative
from bigbrain.metrics import Meters
from bigbrain.program import Program
from bigbrain.reception import Reception
from bigbrain.ring import RedisRing
from bigbrain.settings import Settings
from bigbrain.telemetry import telemetry
from bigbrain.traced import Traced

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(brain: Brain) -> None:
    """Has a brain act on its own, and take up what was put off, until SIGINT or SIGTERM; call it in the main thread.

    Raises `WiringError` with every fault of the wiring, and when the data folder is taken.
    """
    settings = Settings.read()
    program = brain.program(settings)
    meters = Meters(settings.metrics)
    with stopping() as stopped, redis_server(settings) as redis, at_work(brain, program, meters, settings, redis):
        click.echo(f"`{brain.name}` acts on its own (redis: {redis.about})")
        stopped.get()
        click.echo("stopping: steps under way finish first; interrupt again to end at once")


@contextmanager
def at_work(
    brain: Brain, program: Program, meters: Meters, settings: Settings, redis: RedisServer, *, initiative: bool = True
) -> Iterator[Reception]:
    """A reception whose runs are executed by this process while the block runs, as are those that others have lost.

    initiative: whether it also acts for the brain: puts its schedules on record and fires what is due.
    """
    ring = RedisRing(connect(redis.url, connections=2))
    sent = telemetry(settings, brain.name)
    program.listen(ring, meters, *([sent] if sent else []))
    store, queue = RunStore(connect(redis.url), kept=settings.keep), LocalQueue()
    runs = Runs(program, store, queue)
    hasty = RunStore(connect(redis.url, connections=2, retries=0, timeout=RENEWAL))
    engine = Engine(Traced(program, program.tracers), runs, renewing=hasty)
    hub = Hub(store)
    process = f"{gethostname()}:{os.getpid()}"
    if initiative:
        with_initiative(brain.name, program, runs, own_scope(settings)).begin(process)
    queue.attach(engine)
    try:
        yield Reception(brain, program, runs, hub)
    finally:
        queue.close()
        runs.schedules.leave(process)
        hub.close()
        engine.close()
        ring.close()
        if sent is not None:
            sent.close()


@contextmanager
def stopping() -> Iterator[SimpleQueue[int]]:
    """A queue that gets the first signal; the second one ends the process as if nobody had asked.

    A queue and not an event: only its `put` may come into the midst of its `get`.
    """
    stopped: SimpleQueue[int] = SimpleQueue()

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  (the signature of a handler)
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        stopped.put(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
