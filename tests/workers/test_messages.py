"""The messages that we write ourselves are those that Celery writes."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import fakeredis
import pytest
from celery import chain
from kombu import Connection

from bigbrain.engine.plan import Step
from bigbrain.messages import JSON
from workers import app
from workers.chains import FINISH, STEP, CeleryQueue

STEPS = (
    Step("0", "main", ("a", "b")),
    Step("1/left/0", "left", cpu=True),
    Step("2", "main", ("ü",)),
)


def celery_writes(run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> tuple[str, JSON]:
    """The queue and the message of the same chain, as Celery's own producer gives it to kombu."""
    links = []
    for number, step in enumerate(steps):
        nth = attempt if number == 0 else 1
        shown = f"run {run_id}, flow {step.flow}, agent {', '.join(step.agents)}, step {step.path}, attempt {nth}"
        queue = "cpu" if step.cpu else "io"
        link = app.signature(STEP, args=(run_id, step.path, nth), immutable=True, queue=queue)
        links.append(link.set(argsrepr=shown, headers={"run": run_id, **({"again": True} if nth > 1 else {})}))
    if closed:
        links.append(app.signature(FINISH, args=(run_id,), immutable=True, queue="io", headers={"run": run_id}))
    queue = links[0].options["queue"]
    with Connection("memory://") as connection:
        (chain(*links) if len(links) > 1 else links[0]).apply_async(connection=connection)
        return queue, connection.default_channel._get(queue)


def comparable(message: JSON) -> JSON:
    """A message with its body read, and a word for each value that is another one in each message."""
    message = json.loads(json.dumps(message))
    args, options, embed = json.loads(base64.b64decode(message["body"]))
    for link in embed["chain"] or []:
        link["options"] |= {"task_id": "an id", "reply_to": ""}
    message["body"] = [args, options, embed]
    task_id = message["headers"]["id"]
    assert message["headers"]["root_id"] == message["properties"]["correlation_id"] == task_id
    message["headers"] |= {"id": "an id", "root_id": "an id"}
    message["properties"] |= {"correlation_id": "an id", "reply_to": "", "delivery_tag": "a tag"}
    # Celery passes on to kombu what it has written into the headers already
    message["properties"].pop("argsrepr", None)
    return message


@pytest.mark.parametrize("attempt", [1, 3])
@pytest.mark.parametrize(("count", "closed"), [(0, True), (1, True), (1, False), (2, True), (3, True), (3, False)])
def test_a_message_is_what_celery_would_have_sent(count: int, closed: bool, attempt: int) -> None:
    written = CeleryQueue(fakeredis.FakeRedis()).message("r1", attempt, STEPS[:count], closed=closed)
    queue, theirs = celery_writes("r1", attempt, STEPS[:count], closed=closed)

    assert written.queue == queue
    assert comparable(json.loads(written.body)) == comparable(theirs)


def test_each_task_has_an_id_of_its_own() -> None:
    queue = CeleryQueue(fakeredis.FakeRedis())
    written = [json.loads(queue.message("r1", 1, STEPS, closed=True).body) for _ in range(2)]
    ids = [message["headers"]["id"] for message in written]
    for message in written:
        ids += [link["options"]["task_id"] for link in json.loads(base64.b64decode(message["body"]))[2]["chain"]]

    assert len(set(ids)) == len(ids) == 8
