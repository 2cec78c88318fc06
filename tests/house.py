"""A brain with all that it needs to run inside one test: a Redis of its own, an engine, a reception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import fakeredis
import redis

from bigbrain.brain import Brain
from bigbrain.engine.channels import Hub
from bigbrain.engine.local import LocalQueue
from bigbrain.engine.records import RunRecord
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import RunStore
from bigbrain.events import Event, Failed, Finished, checked, collect
from bigbrain.messages import Request, Response, user
from bigbrain.reception import Reception
from bigbrain.settings import Settings


class House:
    """One brain in one process."""

    def __init__(self, brain: Brain, client: redis.Redis) -> None:
        self.brain = brain
        self.store = RunStore(client, lease=2.0, grace=2.0)
        self.queue = LocalQueue()
        program = brain.program(Settings())
        self.runs = Runs(program, self.store, self.queue)
        self.engine = Engine(program, self.runs)
        self.queue.attach(self.engine, every=0.05)
        self.hub = Hub(self.store)
        self.reception = Reception(brain, program, self.runs, self.hub)
        self._ids = (f"run-{n}" for n in count(1))

    def events(self, request: Request | str, run_id: str = "") -> list[Event]:
        """All events of the answer to a request, known to be in legal order."""
        asked = Request(messages=(user(request),)) if isinstance(request, str) else request
        with self.reception.receive(asked, run_id or next(self._ids), 5.0) as (started, follower):
            events: list[Event] = [started]
            for _ in range(200):
                events += follower.read(0.1)
                if follower.over:
                    return list(checked(events))
        raise AssertionError(f"the answer has no end after 20 s: {events}")

    def ask(self, request: Request | str, run_id: str = "") -> Response:
        """The whole answer to a request."""
        events = self.events(request, run_id)
        assert isinstance(events[-1], Finished), events[-1]
        return collect(events)

    def fail(self, request: Request | str, run_id: str = "") -> Failed:
        """How the answer to a request fails."""
        last = self.events(request, run_id)[-1]
        assert isinstance(last, Failed), last
        return last

    def record(self, run_id: str) -> RunRecord:
        """A run's record once it is over."""
        for _ in range(400):
            record = self.store.record(run_id)
            assert record is not None
            if record.status not in ("queued", "running"):
                return record
            self.queue._closing.wait(0.01)
        raise AssertionError(f"run {run_id} is still {record.status}")

    def close(self) -> None:
        self.hub.close()
        self.queue.close()
        self.engine.close()


@contextmanager
def living(brain: Brain) -> Iterator[House]:
    """A house for a brain, closed at the end."""
    house = House(brain, fakeredis.FakeRedis(server=fakeredis.FakeServer()))
    try:
        yield house
    finally:
        house.close()
