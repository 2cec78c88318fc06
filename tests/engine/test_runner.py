"""One step of a run, executed: claimed once, committed once, and nothing from whoever lost it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bigbrain.engine.plan import Fork, Mark, Plan, Step
from bigbrain.engine.records import END, Claim, LogId, Outcome
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import RunStore
from bigbrain.engine.writer import Tape
from bigbrain.errors import RunCancelled, RunInterrupted
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, checked, collect, read_events
from bigbrain.messages import Text
from bigbrain.scope import Scope
from tests.engine.acting import Act, Acts, Kept, Plans, new_run, numbered, until

Make = Callable[..., Engine]


@pytest.fixture
def engine(store: RunStore) -> Iterator[Make]:
    """Makes an engine for a plan and what its steps do."""
    engines: list[Engine] = []

    def make(plan: Plan, acts: dict[str, Act], of: RunStore = store) -> Engine:
        engines.append(Engine(Acts(acts), Runs(Plans(main=plan), of, Kept())))
        return engines[-1]

    yield make
    for one in engines:
        one.close()


def going_to(path: str, *events: Event, answered: bool = False) -> Act:
    return lambda claim, tape, scope: Outcome(next=path, state=b"{}", events=events, answered=answered)


def logged(store: RunStore, run_id: str = "r1") -> tuple[list[int], list[Event]]:
    """The numbers and the events of a run's log."""
    _, entries = store.follow(run_id, "test", LogId(0)) or ("", [])
    return [entry.seq for entry, _ in entries], [event for _, line in entries for event in read_events(line)]


def saying(words: list[str], path: str = END) -> Act:
    """A step that says words live, in one text."""

    def act(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        tape.write(Opened(0, Text()))
        for word in words:
            tape.write(Delta(0, word))
        return Outcome(next=path, state=b"{}", events=(Closed(0), Finished("end")), answered=True)

    return act


def test_a_message_that_names_no_next_step_does_nothing(engine: Make, store: RunStore) -> None:
    one = engine(numbered(2), {"0": going_to("1"), "1": going_to(END)})
    store.start(new_run())

    assert not one.run_step("r1", "1", 1)
    assert not one.run_step("r1", "0", 2)
    assert not one.run_step("other", "0", 1)
    assert one.run_step("r1", "0", 1)
    assert not one.run_step("r1", "0", 1)
    assert one.acts.done == [("r1", "0", 1)]


def test_live_events_and_the_outcomes_stand_in_the_log_in_order(engine: Make, store: RunStore) -> None:
    words = [f"{n} " for n in range(500)]
    one = engine(numbered(1), {"0": saying(words)})
    store.start(new_run())

    assert one.run_step("r1", "0", 1)

    numbers, events = logged(store)
    assert numbers == list(range(1, len(numbers) + 1))
    assert collect(checked(events)).text == "".join(words)


def test_a_step_of_a_run_that_was_stopped_before_is_cancelled_from_its_start(engine: Make, store: RunStore) -> None:
    seen: list[object] = []

    def look(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        seen.append(scope.error)
        return Outcome(next="0", state=b"{}", status="cancelled")

    one = engine(numbered(1), {"0": look})
    store.start(new_run())
    store.client.hset("bb:run:r1", "stop", 1)

    assert not one.run_step("r1", "0", 1)

    assert isinstance(seen[0], RunCancelled)
    record = store.record("r1")
    assert record is not None
    assert record.status == "cancelled"


def test_a_step_that_is_stopped_under_way_hears_so_at_once(engine: Make, store: RunStore) -> None:
    def wait(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        store.stop("r1")
        with pytest.raises(RunCancelled):
            scope.wait(30)
        return Outcome(next="0", state=b"{}", status="cancelled", events=(Failed("run_cancelled", "x"),))

    one = engine(numbered(1), {"0": wait})
    store.start(new_run())

    assert not one.run_step("r1", "0", 1)
    assert [type(event) for event in logged(store)[1][1:]] == [Failed]


@pytest.mark.parametrize("knows", [True, False])
def test_whoever_lost_its_lease_commits_nothing_whether_it_knows_or_not(
    engine: Make, store: RunStore, knows: bool
) -> None:
    def lose(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        store.client.hset("bb:run:r1", "lease", 0)
        store.client.zadd("bb:due", {"r1": 0})
        store.wake()
        new = store.claim("r1", "0", 2, "the new owner")
        assert new is not None
        if knows:
            scope.cancel(RunInterrupted())
        return Outcome(next=END, state=b'"old"', events=(Finished("end"),), answered=True)

    one = engine(numbered(1), {"0": lose})
    store.start(new_run(durable=True))

    assert not one.run_step("r1", "0", 1)

    record = store.record("r1")
    assert record is not None
    assert (record.status, record.cursor, record.state) == ("running", "0", {})
    assert len(logged(store)[1]) == 1
    assert len(one.leases) == 0


def test_a_step_longer_than_its_lease_stays_ours(engine: Make, store: RunStore) -> None:
    def long(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        begun = float(store.client.hget("bb:run:r1", "lease"))
        until(lambda: float(store.client.hget("bb:run:r1", "lease")) > begun + 1100 * store.lease)
        assert store.wake().steps == ()
        return Outcome(next=END, state=b"{}")

    one = engine(numbered(1), {"0": long})
    store.start(new_run())

    assert one.run_step("r1", "0", 1)


def test_a_failed_step_ends_its_chain(engine: Make, store: RunStore) -> None:
    failing: Act = lambda claim, tape, scope: Outcome(next="0", state=b"{}", status="failed", error=b"{}")  # noqa: E731
    one = engine(numbered(2), {"0": failing})
    store.start(new_run())

    assert not one.run_step("r1", "0", 1)
    assert one.runs.queue.sent == []


def test_a_choice_sends_a_new_chain_of_the_member_and_what_follows(engine: Make, store: RunStore) -> None:
    member = (Step("1/a/0", "main"), Step("1/a/1", "main"))
    plan = Plan((Step("0", "main"), Fork("1", "rooms", {"a": member}), Step("2", "main"), Mark("3")))
    one = engine(plan, {"0": going_to("1/a/0")})
    store.start(new_run())

    assert not one.run_step("r1", "0", 1)

    assert one.runs.queue.sent == [("r1", 1, ("1/a/0", "1/a/1", "2"), True)]


def test_one_of_many_doubled_messages_is_executed(engine: Make, store: RunStore) -> None:
    begun = threading.Event()

    def slow(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        assert begun.wait(10)
        return Outcome(next=END, state=b"{}")

    one, other = (engine(numbered(1), {"0": slow}) for _ in range(2))
    store.start(new_run())
    with ThreadPoolExecutor(8) as pool:
        told = [pool.submit((one, other)[n % 2].run_step, "r1", "0", 1) for n in range(8)]
        until(lambda: sum(future.done() for future in told) == 7)
        begun.set()

    assert sorted(future.result() for future in told) == [False] * 7 + [True]
    assert len(one.acts.done + other.acts.done) == 1


def test_two_hundred_runs_at_once_are_each_exact(engine: Make, store: RunStore) -> None:
    together = threading.Barrier(200)

    def act(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        together.wait(20)
        return saying([f"{claim.run_id}:{n} " for n in range(8)])(claim, tape, scope)

    patient = RunStore(store.client, lease=30.0)
    one = engine(numbered(1), {"0": act}, patient)
    ids = [f"r{n}" for n in range(200)]
    for run_id in ids:
        patient.start(new_run(run_id))
    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(lambda run_id: one.run_step(run_id, "0", 1), ids))

    for run_id in ids:
        numbers, events = logged(patient, run_id)
        assert numbers == list(range(1, len(numbers) + 1))
        assert collect(checked(events)).text == "".join(f"{run_id}:{n} " for n in range(8))
