"""A brain of empty steps, and a bare Celery task in the same worker to compare them with."""

from __future__ import annotations

from bigbrain import Brain
from bigbrain.engine.server import connect
from bigbrain.settings import Settings
from tests.brains import hops
from workers import app
from workers.chains import CeleryQueue

brain = Brain("bench")
brain.add_flow(hops(20), name="hops")
client = connect(Settings.read().redis_url)


@app.task(name="bench.noop")
def noop(key: str) -> None:
    """Does nothing; the last of a chain says that it is over."""
    if key:
        client.lpush(key, "over")


def queue() -> CeleryQueue:
    """The queue that the brain's steps go to."""
    return CeleryQueue(client)
