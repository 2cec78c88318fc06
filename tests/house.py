"""A brain with all that it needs to run inside one test, for the tests of the parts themselves: they see the engine's insides.

A test of what a brain does needs no more than `bigbrain.testing.Client`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from bigbrain.brain import Brain
from bigbrain.engine.records import RunRecord
from bigbrain.events import Event, Failed
from bigbrain.messages import Request, Response
from bigbrain.testing import Client, Clock


class House:
    """One brain in one process."""

    def __init__(self, brain: Brain, server: redis.Redis | None = None) -> None:
        self.brain = brain
        self.client = Client(brain, server=server, now=Clock(5.0).now)
        self.reception = self.client.reception
        self.runs = self.reception.runs
        self.engine = self.client.engine
        self.hub = self.reception.hub
        self.store = self.hub.store

    def events(self, request: Request | str, run_id: str = "") -> list[Event]:
        """All events of the answer to a request, known to be in legal order."""
        return list(self.client.ask(request, run_id=run_id).events)

    def ask(self, request: Request | str, run_id: str = "") -> Response:
        """The whole answer to a request."""
        return self.client.chat(request, run_id=run_id).response

    def fail(self, request: Request | str, run_id: str = "") -> Failed:
        """How the answer to a request fails."""
        answer = self.client.ask(request, run_id=run_id)
        assert answer.failed is not None, answer
        return answer.failed

    def record(self, run_id: str) -> RunRecord:
        """A run's record once it is over."""
        return self.client.record(run_id)

    def close(self) -> None:
        self.client.close()


@contextmanager
def living(brain: Brain) -> Iterator[House]:
    """A house for a brain, closed at the end."""
    house = House(brain)
    try:
        yield house
    finally:
        house.close()
