"""A run's next steps as one Celery chain, closed by `finish`.

A chain is a projection of the plan from where the run is: this is the one place that
builds it, at the start of a run, when a choice was made and when a run is taken up again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis
from celery import Signature, chain
from kombu.exceptions import OperationalError

from bigbrain.engine.plan import Step
from workers import app

logger = logging.getLogger(__name__)

STEP = "workers.tasks.step"
FINISH = "workers.tasks.finish"
IO = "io"
CPU = "cpu"


class CeleryQueue:
    """Sends steps to the workers; safe to share between threads and greenlets."""

    def send(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """Enqueues the first step's message, which carries the others' names with it.

        A step that is run again goes before all that wait: its client is in the middle of an answer. A broker that is away costs the run some seconds: it is on record, and `wake` sends it again.
        """
        links = [_step(run_id, step, attempt if number == 0 else 1) for number, step in enumerate(steps)]
        if closed:
            links.append(app.signature(FINISH, args=(run_id,), immutable=True, queue=IO, headers={"run": run_id}))
        # a chain of one is its link; the canvas would only cost time
        work = chain(*links) if len(links) > 1 else links[0]
        try:
            work.apply_async()
            if attempt > 1 and steps:
                _put_first(_queue_of(steps[0]))
        except OperationalError as exc:
            logger.warning("run %s waits to be sent again: %s", run_id, exc)

    def names(self) -> Sequence[str]:
        """The lists in which messages wait, named as the queues."""
        return (IO, CPU)


def _queue_of(step: Step) -> str:
    return CPU if step.cpu else IO


def _put_first(queue: str) -> None:
    """Has the message that came last be taken next; another one, should it have come in between, which harms nobody."""
    with app.pool.acquire(block=True) as connection:
        try:
            connection.default_channel.client.lmove(queue, queue, "LEFT", "RIGHT")
        except redis.RedisError as exc:
            logger.warning("a step that is run again waits behind others: %s", exc)


def _step(run_id: str, step: Step, attempt: int) -> Signature:
    link = app.signature(STEP, args=(run_id, step.path, attempt), immutable=True, queue=_queue_of(step))
    # what people see in Flower instead of the bare arguments
    agents = ", ".join(step.agents)
    shown = f"run {run_id}, flow {step.flow}, agent {agents}, step {step.path}, attempt {attempt}"
    # by the headers, `wake` tells which messages wait, and since when
    return link.set(argsrepr=shown, headers={"run": run_id, **({"again": True} if attempt > 1 else {})})
