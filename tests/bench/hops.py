"""A committed step of ours against a task of a bare Celery chain, on the same worker and the same Redis."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psutil
from celery import Celery, chain

from bigbrain.embedded import redis_server
from bigbrain.engine.channels import Hub
from bigbrain.engine.runs import Runs
from bigbrain.engine.server import connect
from bigbrain.engine.store import RunStore
from bigbrain.messages import Request, user
from bigbrain.reception import Reception
from bigbrain.settings import Settings, broker_url
from tests.bench.targets import cpu_seconds, process

HOPS = 20


def measure_hops(*, rounds: int, each: int) -> None:
    """Prints the time and the processor time of a hop, ours and Celery's, and their ratio."""
    with TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder))
        with redis_server(settings) as server:
            env = {"BIG_BRAIN_REDIS_URL": server.url, "BIG_BRAIN_APP": "tests.bench.noop"}
            argv = [sys.executable, "-m", "celery", "-q", "-A", "workers:app", "worker", "-P", "threads", "-c", "50"]
            argv += ["-Q", "io", "--without-mingle", "--without-gossip", "--loglevel", "WARNING"]
            with process(argv, env) as worker:
                os.environ.update(env)
                _measure(server.url, worker, rounds, each)


def _measure(url: str, worker: psutil.Process, rounds: int, each: int) -> None:
    from tests.bench import noop  # noqa: PLC0415 - reads the environment that was just set

    store = RunStore(connect(url))
    program = noop.brain.program(Settings())
    hub = Hub(store)
    reception = Reception(noop.brain, program, Runs(program, store, noop.queue()), hub)
    app = Celery("bare", broker=broker_url(url))

    def ours() -> None:
        request = Request(model="hops", messages=(user("go"),))
        with reception.receive(request, uuid4().hex, time.time()) as (_, follower, _):
            while not follower.over:
                follower.read(5.0)

    def bare() -> None:
        key = uuid4().hex
        links = [
            app.signature("bench.noop", args=(key if number == HOPS - 1 else "",), immutable=True, queue="io")
            for number in range(HOPS)
        ]
        chain(*links).apply_async(ignore_result=True)
        assert store.client.brpop([key], timeout=30)

    def timed(call: Callable[[], None]) -> tuple[float, float]:
        cpu, times = cpu_seconds(worker), list[float]()
        for _ in range(each):
            begun = time.perf_counter()
            call()
            times.append(time.perf_counter() - begun)
        return statistics.median(times) * 1000 / HOPS, (cpu_seconds(worker) - cpu) * 1000 / each / HOPS

    for _ in range(5):
        ours()
        bare()
    results = [(timed(bare), timed(ours)) for _ in range(rounds)]
    hub.close()
    for index, what in enumerate(("time of a hop, p50 ms", "worker's cpu ms a hop")):
        theirs = statistics.median(pair[0][index] for pair in results)
        own = statistics.median(pair[1][index] for pair in results)
        ratio = statistics.median(pair[1][index] / pair[0][index] for pair in results)
        print(f"{what:24} bare chain {theirs:6.2f}   bigbrain {own:6.2f}   x {ratio:.2f}")
