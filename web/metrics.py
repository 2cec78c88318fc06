"""`/metrics`: what Prometheus reads, and how a request and its answer are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from types import TracebackType
from typing import Self

import redis
from flask import Blueprint, Response
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from werkzeug.exceptions import HTTPException

from bigbrain.engine.store import RunStore
from bigbrain.errors import BrainError
from bigbrain.events import Delta, Event, Failed, Finished
from bigbrain.metrics import Exposition, Meters
from web.failures import AWAY

LEFT = 499
"""What nginx calls the status of a request whose client left."""


def routes(meters: Meters, store: RunStore, queues: Callable[[], Sequence[str]]) -> Blueprint:
    """`/metrics`. queues: the Redis lists in which messages wait."""
    blueprint = Blueprint("metrics", __name__)
    page = Exposition(meters, InRedis(store, queues))

    @blueprint.get("/metrics")
    def metrics() -> Response:
        return Response(page.text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)

    return blueprint


class InRedis(Collector):
    """What only Redis knows, asked when somebody looks; the same from every web process, so not to be summed.

    While Redis is away the page says so and has everything else.
    """

    def __init__(self, store: RunStore, queues: Callable[[], Sequence[str]]) -> None:
        self._store = store
        self._queues = queues

    def collect(self) -> Iterable[Metric]:
        """How much is on record, due and waiting."""
        names = self._queues()
        try:
            load = self._store.load(names)
        except redis.RedisError:
            yield GaugeMetricFamily("bigbrain_redis_up", "Whether Redis answers.", value=0)
            return
        yield GaugeMetricFamily("bigbrain_redis_up", "Whether Redis answers.", value=1)
        yield GaugeMetricFamily("bigbrain_runs_open", "Runs that are not over.", value=load.open)
        yield GaugeMetricFamily(
            "bigbrain_runs_due", "Runs that somebody should have looked after by now: lost workers.", value=load.due
        )
        waiting = GaugeMetricFamily("bigbrain_queue_length", "Messages that wait for a worker.", labels=["queue"])
        for name, length in zip(names, load.queues, strict=True):
            waiting.add_metric([name], length)
        yield waiting


class Exchange:
    """One request and its answer, measured from the request's arrival until the block is left.

    It ends with the status that the client read, or would have read had the answer not begun.
    """

    def __init__(self, meters: Meters, protocol: str, accepted: float) -> None:
        """accepted: when the request came, by `perf_counter`."""
        self._meters = meters
        self._protocol = protocol
        self._accepted = accepted
        self._status = 200
        self._first = False
        self._over = False
        self.stream = False
        """Whether the answer is streamed; known once the body is read."""

    def __enter__(self) -> Self:
        self._meters.open.inc()
        return self

    def saw(self, events: Sequence[Event]) -> None:
        """Hears of events on their way to the client; there is at least one."""
        if not self._first and any(isinstance(event, Delta) for event in events):
            self._first = True
            if self.stream:
                self._meters.request_first.labels(self._protocol).observe(perf_counter() - self._accepted)
        match events[-1]:
            case Finished():
                self._over = True
            case Failed() as failed:
                self._over = True
                self._status = failed.status

    def left(self) -> None:
        """Hears that the client has gone."""
        if not self._over:
            self._status = LEFT

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._meters.open.dec()
        stream = "true" if self.stream else "false"
        status = self._status if error is None else _status(error)
        self._meters.requests.labels(self._protocol, stream, str(status)).inc()
        self._meters.request_seconds.labels(self._protocol, stream).observe(perf_counter() - self._accepted)


def _status(error: BaseException) -> int:
    match error:
        case BrainError():
            return error.status
        case HTTPException():
            return error.code or 500
        case redis.RedisError():
            return AWAY.status
        case _:
            return 500
