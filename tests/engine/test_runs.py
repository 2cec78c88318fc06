"""Runs are started, sent and taken up again as their plan says."""

from __future__ import annotations

import logging

import pytest

from bigbrain.engine.plan import Fork, Plan, Step
from bigbrain.engine.records import END, LogId, Outcome
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import LAPSES, RunStore
from bigbrain.events import Failed, read_events
from tests.engine.acting import Kept, Plans, new_run, numbered

FORKED = Plan(
    (Step("0", "main"), Step("1", "main"), Fork("2", "rooms", {"a": (Step("2/a/0", "main"),)}), Step("3", "main"))
)


def runs(store: RunStore, *queues: str, **flows: Plan) -> tuple[Runs, Kept]:
    queue = Kept(*queues)
    return Runs(Plans(**flows), store, queue), queue


def due(store: RunStore, run_id: str = "r1") -> None:
    store.client.zadd("bb:due", {run_id: 0})
    store.client.hset(f"bb:run:{run_id}", "lease", 0)


def claim(store: RunStore, attempt: int, run_id: str = "r1") -> None:
    assert store.claim(run_id, "0", attempt, f"owner of attempt {attempt}") is not None


def test_a_start_sends_all_steps_that_are_sure_to_come(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(3))
    other, forked = runs(store, main=FORKED)

    assert some.start(new_run("r1"))
    assert other.start(new_run("r2"))

    assert queue.sent == [("r1", 1, ("0", "1", "2"), True)]
    assert forked.sent == [("r2", 1, ("0", "1"), False)]


def test_an_id_that_is_taken_sends_nothing(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(1))
    some.start(new_run())

    assert not some.start(new_run())
    assert len(queue.sent) == 1


def test_what_is_left_when_all_steps_are_done_is_to_finish(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(1))
    some.send("r1", "main", END, 1)

    assert queue.sent == [("r1", 1, (), True)]


def test_a_run_of_a_lost_message_is_sent_from_where_it_is(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(3))
    some.start(new_run())
    first = store.claim("r1", "0", 1, "a")
    assert first is not None
    store.commit(first, Outcome(next="1", state=b"{}"), 2)
    due(store)

    assert len(some.wake().steps) == 1

    assert queue.sent[1:] == [("r1", 1, ("1", "2"), True)]


def test_a_run_whose_finish_was_lost_is_finished(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(1))
    some.start(new_run())
    first = store.claim("r1", "0", 1, "a")
    assert first is not None
    store.commit(first, Outcome(next=END, state=b"{}"), 2)
    due(store)
    some.wake()

    assert queue.sent[1:] == [("r1", 1, (), True)]
    assert some.finish("r1")


def test_a_durable_step_whose_owner_was_lost_is_sent_under_a_new_attempt(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(2))
    some.start(new_run(durable=True))
    claim(store, 1)
    due(store)
    some.wake()

    assert queue.sent[1:] == [("r1", 2, ("0", "1"), True)]
    assert store.claim("r1", "0", 1, "a stale message") is None


def test_a_poisoned_step_is_given_up_and_its_client_told(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(1))
    some.start(new_run(durable=True))
    for attempt in range(1, LAPSES + 1):
        claim(store, attempt)
        due(store)
        some.wake()

    assert [attempt for _, attempt, _, _ in queue.sent] == [1, 2, 3]
    status, entries = store.follow("r1", "web", LogId(1)) or ("", [])
    [event] = [event for _, line in entries for event in read_events(line)]
    assert status == "failed"
    assert isinstance(event, Failed)
    assert event.code == "run_failed"


def test_a_commit_forgives_the_lapses_before_it(store: RunStore) -> None:
    some, queue = runs(store, main=numbered(2))
    some.start(new_run(durable=True))
    for attempt in (1, 2):
        claim(store, attempt)
        due(store)
        some.wake()
    held = store.claim("r1", "0", 3, "a")
    assert held is not None
    store.commit(held, Outcome(next="1", state=b"{}", durable=True), 2)
    for attempt in (1, 2):
        assert store.claim("r1", "1", attempt, f"b{attempt}") is not None
        due(store)
        some.wake()

    assert queue.sent[-1] == ("r1", 3, ("1",), True)


def test_a_step_that_may_still_wait_in_a_queue_is_not_sent_twice(store: RunStore) -> None:
    some, queue = runs(store, "io", "cpu", main=numbered(1))
    some.start(new_run())
    store.client.lpush("cpu", "a message")
    due(store)

    assert len(some.wake().steps) == 0
    store.client.delete("cpu")
    due(store)
    assert len(some.wake().steps) == 1
    assert len(queue.sent) == 2


def test_a_lost_worker_is_noticed_although_messages_wait(store: RunStore) -> None:
    some, _ = runs(store, "io", main=numbered(1))
    some.start(new_run(durable=True))
    store.client.lpush("io", "a message")
    claim(store, 1)
    due(store)

    assert len(some.wake().steps) == 1


def test_a_step_of_a_flow_that_this_process_does_not_know_is_sent_on_to_whoever_does(
    store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    some, queue = runs(store, main=numbered(1))
    store.start(new_run("stranger", "other"))
    store.start(new_run("r1"))
    due(store, "stranger")
    due(store, "r1")

    with caplog.at_level(logging.WARNING):
        assert len(some.wake().steps) == 2

    assert {run_id for run_id, *_ in queue.sent} == {"r1", "stranger"}
    assert "no step 0 in flow other" in caplog.text
    assert store.client.zscore("bb:due", "stranger") > 0


def test_what_is_due_of_a_run_that_is_gone_is_forgotten(store: RunStore) -> None:
    some, _ = runs(store, main=numbered(1))
    store.client.zadd("bb:due", {"gone": 0})

    assert len(some.wake().steps) == 0
    assert store.client.zscore("bb:due", "gone") is None


def test_one_of_many_that_wake_at_once_gets_each_run(store: RunStore) -> None:
    store.grace = 60.0  # so that none is due again on a slow machine
    some, queue = runs(store, main=numbered(1))
    other, others = runs(store, main=numbered(1))
    for n in range(210):
        store.start(new_run(f"r{n}"))
        due(store, f"r{n}")

    woken = [len(one.wake().steps) for one in (some, other, some)]

    assert woken == [200, 10, 0]
    assert len({run_id for run_id, *_ in queue.sent + others.sent}) == 210
