"""A run's next steps as one Celery chain, closed by `finish`.

A chain is a projection of the plan from where the run is: this is the one place that
builds it, at the start of a run, when a choice was made and when a run is taken up again.

Its message is written here, as Celery's protocol 2 has it in a Redis list, and not by Celery's producer: that takes
half a millisecond of each request, and could not put it into its list in the same transaction as the run.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Mapping, Sequence
from uuid import uuid4

import msgspec
import redis
from celery.utils.nodenames import anon_nodename

from bigbrain.engine.plan import Step
from bigbrain.engine.records import Message
from bigbrain.messages import JSON

logger = logging.getLogger(__name__)

STEP = "workers.tasks.step"
FINISH = "workers.tasks.finish"
IO = "io"
CPU = "cpu"

_Link = dict[str, JSON]
"""A task of a chain, as Celery writes a signature."""


class CeleryQueue:
    """Sends steps to the workers; safe to share between threads and greenlets."""

    def __init__(self, client: redis.Redis) -> None:
        """client: of the Redis that is the workers' broker."""
        self._client = client

    def message(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> Message:
        """The message of the first step, which carries the names of the others with it."""
        links = [_step(run_id, step, attempt if number == 0 else 1) for number, step in enumerate(steps)]
        if closed:
            links.append(_link(FINISH, (run_id,), IO, {"headers": {"run": run_id}}))
        first, *rest = links
        queue = first["options"]["queue"]
        return Message(queue, _envelope(first, rest, queue))

    def send(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """Enqueues these steps.

        A step that is run again goes before all that wait: its client is in the middle of an answer. A broker that is
        away costs the run some seconds: it is on record, and `wake` sends it again.
        """
        message = self.message(run_id, attempt, steps, closed=closed)
        # workers take from the right
        push = self._client.rpush if attempt > 1 and steps else self._client.lpush
        try:
            push(message.queue, message.body)
        except redis.RedisError as exc:
            logger.warning("run %s waits to be sent again: %s", run_id, exc)

    def names(self) -> Sequence[str]:
        """The lists in which messages wait, named as the queues."""
        return (IO, CPU)


def _step(run_id: str, step: Step, attempt: int) -> _Link:
    # what people see in Flower instead of the bare arguments
    agents = ", ".join(step.agents)
    shown = f"run {run_id}, flow {step.flow}, agent {agents}, step {step.path}, attempt {attempt}"
    # by the headers, `wake` tells which messages wait, and since when
    headers = {"run": run_id, **({"again": True} if attempt > 1 else {})}
    queue = CPU if step.cpu else IO
    return _link(STEP, (run_id, step.path, attempt), queue, {"argsrepr": shown, "headers": headers})


def _link(task: str, args: Sequence[JSON], queue: str, options: Mapping[str, JSON]) -> _Link:
    return {
        "task": task,
        "args": args,
        "kwargs": {},
        "options": {"queue": queue, **options, "task_id": str(uuid4())},
        "subtask_type": None,
        "immutable": True,
    }


def _envelope(link: _Link, rest: Sequence[_Link], queue: str) -> bytes:
    """A task as it lies in its list, with the rest of its chain, of which Celery reads the last one first."""
    task_id, shown = link["options"]["task_id"], link["options"].get("argsrepr") or repr(link["args"])
    chain = list(reversed(rest)) or None
    body = (link["args"], link["kwargs"], {"callbacks": None, "errbacks": None, "chain": chain, "chord": None})
    headers = {
        "lang": "py",
        "task": link["task"],
        "id": task_id,
        "shadow": None,
        "eta": None,
        "expires": None,
        "group": None,
        "group_index": None,
        "retries": 0,
        "timelimit": (None, None),
        "root_id": task_id,
        "parent_id": None,
        "argsrepr": shown,
        "kwargsrepr": "{}",
        "origin": anon_nodename(),
        "ignore_result": None,
        "replaced_task_nesting": 0,
        "stamped_headers": None,
        "stamps": {},
        **link["options"]["headers"],
    }
    properties = {
        "correlation_id": task_id,
        # nothing is replied
        "reply_to": "",
        "delivery_mode": 2,
        "delivery_info": {"exchange": "", "routing_key": queue},
        "priority": 0,
        "body_encoding": "base64",
        "delivery_tag": task_id,
    }
    return msgspec.json.encode(
        {
            "body": b64encode(msgspec.json.encode(body)).decode(),
            "content-encoding": "utf-8",
            "content-type": "application/json",
            "headers": headers,
            "properties": properties,
        }
    )
