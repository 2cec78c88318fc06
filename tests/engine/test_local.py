"""The queue inside one process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import fakeredis
import pytest

from bigbrain.engine.local import LocalQueue
from bigbrain.engine.plan import Plan
from bigbrain.engine.records import END, Claim, Outcome
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import RunStore
from bigbrain.engine.writer import Tape
from bigbrain.scope import Scope
from tests.engine.acting import Act, Acts, Plans, new_run, numbered, until

Make = Callable[..., tuple[Runs, Acts]]


@pytest.fixture
def living(store: RunStore) -> Iterator[Make]:
    """Makes a process that executes what it is sent."""
    made: list[tuple[LocalQueue, Engine]] = []

    def make(plan: Plan, acts: dict[str, Act], *, every: float = 0.0, threads: int = 4) -> tuple[Runs, Acts]:
        queue, known = LocalQueue(threads), Acts(acts)
        runs = Runs(Plans(main=plan), store, queue)
        engine = Engine(known, runs)
        queue.attach(engine, every=every)
        made.append((queue, engine))
        return runs, known

    yield make
    for queue, engine in made:
        queue.close()
        engine.close()


def going_to(path: str, **more: object) -> Act:
    return lambda claim, tape, scope: Outcome(next=path, state=b"{}", **more)


def status(store: RunStore, run_id: str = "r1") -> str:
    record = store.record(run_id)
    return record.status if record else ""


def test_a_chain_is_executed_to_the_end_of_its_run(living: Make, store: RunStore) -> None:
    runs, acts = living(numbered(3), {"0": going_to("1"), "1": going_to("2"), "2": going_to(END)})
    runs.start(new_run())
    until(lambda: status(store) == "done")

    assert acts.done == [("r1", "0", 1), ("r1", "1", 1), ("r1", "2", 1)]


def test_a_chain_ends_where_a_step_fails(living: Make, store: RunStore) -> None:
    runs, acts = living(numbered(2), {"0": going_to("0", status="failed", error=b"{}")})
    runs.start(new_run())
    until(lambda: status(store) == "failed")

    assert acts.done == [("r1", "0", 1)]


def test_a_lost_chain_is_taken_up(living: Make, store: RunStore) -> None:
    store.start(new_run())
    living(numbered(1), {"0": going_to(END)}, every=0.02)
    until(lambda: status(store) == "done")


def test_a_durable_step_of_a_lost_process_runs_again(living: Make, store: RunStore) -> None:
    store.start(new_run(durable=True))
    assert store.claim("r1", "0", 1, "a process that is gone") is not None
    _, acts = living(numbered(1), {"0": going_to(END)}, every=0.02)
    until(lambda: status(store) == "done")

    assert acts.done == [("r1", "0", 2)]


def test_what_waits_here_is_not_queued_twice(living: Make, store: RunStore) -> None:
    free = threading.Event()

    def wait(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        assert free.wait(10)
        return Outcome(next=END, state=b"{}")

    runs, acts = living(numbered(1), {"0": wait}, threads=1)
    runs.start(new_run("first"))
    until(lambda: acts.done)
    runs.start(new_run("second"))
    for _ in range(5):
        runs.send("second", "main", "0", 1)
    assert len(runs.queue._waiting) == 1
    free.set()
    until(lambda: status(store, "second") == "done")

    assert acts.done == [("first", "0", 1), ("second", "0", 1)]


def test_a_step_that_raises_ends_no_thread(living: Make, store: RunStore, caplog: pytest.LogCaptureFixture) -> None:
    def act(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        if claim.run_id == "bad":
            raise ZeroDivisionError
        return Outcome(next=END, state=b"{}")

    runs, _ = living(numbered(1), {"0": act}, threads=1)
    with caplog.at_level(logging.ERROR):
        runs.start(new_run("bad"))
        runs.start(new_run("good"))
        until(lambda: status(store, "good") == "done")

    assert "run bad: a step could not be executed" in caplog.text


def test_waking_goes_on_after_redis_was_away(
    living: Make, store: RunStore, fake_server: fakeredis.FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    living(numbered(1), {"0": going_to(END)}, every=0.02)
    fake_server.connected = False
    until(lambda: "could not be taken up" in caplog.text)
    fake_server.connected = True
    store.start(new_run())
    until(lambda: status(store) == "done")


def test_a_queue_that_is_closed_takes_nothing_more(store: RunStore) -> None:
    queue, acts = LocalQueue(1), Acts({"0": going_to(END)})
    runs = Runs(Plans(main=numbered(1)), store, queue)
    engine = Engine(acts, runs)
    queue.attach(engine, every=0)
    queue.close()

    assert runs.start(new_run())
    assert acts.done == []
    engine.close()
