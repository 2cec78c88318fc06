"""What is on record of a run's attempts: times, costs, errors, also of those that were lost with their worker."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from bigbrain import All, Brain, Budget, Chat, Flow, Turn, agent, respond
from bigbrain.engine.records import RunRecord
from bigbrain.engine.store import RunStore
from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started
from bigbrain.messages import Request, Text, Usage
from bigbrain.progress import Attempt, attempts_of, spent_of
from bigbrain.savepoints import BILL
from bigbrain.scope import Scope
from bigbrain.testing import Client, Says, ScriptedModel

FIVE = Usage(5, 5)


def says(*texts: str) -> ScriptedModel:
    """Answers so, each for five tokens in and five out."""
    return ScriptedModel(*(Says(text, usage=FIVE) for text in texts))


def record_of(client: Client, run_id: str) -> RunRecord:
    """A run's record with what its next step has put by, once it is over."""
    client.record(run_id)
    record = client.reception.runs.store.record(run_id, BILL)
    assert record is not None
    return record


def results(attempts: list[Attempt]) -> list[tuple[str, int, str]]:
    return [(one.path, one.attempt, one.result) for one in attempts]


def test_an_attempt_has_its_times_its_names_and_its_costs() -> None:
    @agent(name="asker")
    def ask(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask("a").text)

    flow = Flow(ask, model=says("first")).named("first") >> respond >> Flow(model=says("second")).named("second")
    with Client(Brain("b", flow)) as client:
        client.chat("go", run_id="r")
        record = record_of(client, "r")
    first, second = attempts_of(record)

    assert (first.flow, first.agents, first.usage, first.calls) == ("b/first", ("asker",), FIVE, 1)
    assert first.begun is not None
    assert first.ended is not None
    assert second.begun is not None
    assert record.begun <= first.begun <= first.ended
    # the worker's clock measures how long, the server's says when
    assert second.begun >= first.ended - 1
    assert (first.waited is not None and first.waited >= 0, first.error, first.inside) == (True, None, ())


def test_an_attempt_that_failed_says_with_what_and_the_next_one_is_beside_it() -> None:
    model = ScriptedModel(ModelBroke("the upstream's words"), Says("at last", usage=FIVE))
    with Client(Brain("b", Flow(model=model).named("x").durable(retries=1))) as client:
        client.chat("go", run_id="r")
        attempts = attempts_of(record_of(client, "r"))

    assert results(attempts) == [("0", 1, "model_broke"), ("0", 2, "done")]
    assert attempts[0].error is not None
    assert (attempts[0].error.message, attempts[0].error.detail) == (ModelBroke.safe, "the upstream's words")
    assert attempts[1].begun is not None
    assert attempts[0].ended is not None
    # the back-off is between them, and is no waiting for a worker
    assert attempts[1].begun - attempts[0].ended >= 900


def test_a_lost_attempt_is_told_with_what_its_calls_cost_and_is_paid() -> None:
    with Client(Brain("b", Flow(model=says("one", "one", "one")).named("x").durable() >> respond)) as client:
        client.crash_at("0", done=True, times=2)
        answer = client.chat("go", run_id="r")
        record = record_of(client, "r")
    attempts = attempts_of(record)

    assert results(attempts) == [("0", 1, "lost"), ("0", 2, "lost"), ("0", 3, "done")]
    assert [(one.usage, one.calls) for one in attempts] == [(FIVE, 1)] * 3
    assert answer.response.usage == Usage(15, 15)
    assert (spent_of(attempts_of(record)).usage, spent_of(attempts_of(record)).calls) == (Usage(15, 15), 3)


def test_an_attempt_that_was_lost_before_it_asked_anybody_is_told_as_well() -> None:
    with Client(Brain("b", Flow(model=says("one")).named("x").durable() >> respond)) as client:
        client.crash_at("0")
        client.chat("go", run_id="r")
        attempts = attempts_of(record_of(client, "r"))

    assert results(attempts) == [("0", 1, "lost"), ("0", 2, "done")]
    assert attempts[0].usage == Usage()


def test_what_a_poisoned_step_cost_is_on_record_though_no_attempt_of_it_ended() -> None:
    with Client(Brain("b", Flow(model=says("one", "one", "one")).named("x").durable() >> respond)) as client:
        client.crash_at("0", done=True, times=3)
        assert client.ask("go", run_id="r").failed is not None
        record = record_of(client, "r")
    attempts = attempts_of(record)

    assert results(attempts) == [("0", 1, "lost"), ("0", 2, "lost"), ("0", 3, "lost")]
    assert attempts[-1].error is not None
    assert attempts[-1].error.code == "run_failed"
    assert spent_of(attempts_of(record)).usage == Usage(15, 15)


def test_a_run_without_durable_flow_that_lost_its_worker_says_so() -> None:
    with Client(Brain("b", Flow(model=says("one")))) as client:
        client.crash_at("0", done=True)
        assert client.ask("go", run_id="r").failed is not None
        record = record_of(client, "r")

    assert results(attempts_of(record)) == [("0", 1, "lost")]
    # nothing of such a run is put by, so nobody knows
    assert spent_of(attempts_of(record)).usage == Usage()


def test_a_failed_attempt_after_a_lost_one_is_counted_once() -> None:
    model = ScriptedModel(Says("x", usage=FIVE), ModelBroke, Says("x", usage=FIVE))
    with Client(Brain("b", Flow(model=model).named("x").durable(retries=1))) as client:
        client.crash_at("0", done=True)
        client.chat("go", run_id="r")
        record = record_of(client, "r")

    assert results(attempts_of(record)) == [("0", 1, "lost"), ("0", 2, "model_broke"), ("0", 3, "done")]
    assert spent_of(attempts_of(record)).usage == Usage(10, 10)


def test_a_budget_counts_what_lost_attempts_have_spent() -> None:
    brain = Brain("b", Flow(model=says("one", "one")).named("x").durable() >> respond, budget=Budget(calls=1))
    with Client(brain) as client:
        client.crash_at("0", done=True)
        failed = client.ask("go").failed

    assert failed is not None
    assert failed.code == "budget_spent"


def test_a_budget_of_a_flow_counts_them_too() -> None:
    inner = Flow(model=says("one", "one"), budget=Budget(tokens=8)).named("x").durable()
    with Client(Brain("b", inner >> respond)) as client:
        client.crash_at("0", done=True)
        failed = client.ask("go").failed

    assert failed is not None
    assert failed.code == "budget_spent"


@dataclass
class Dies:
    """A model during whose second answer the worker is lost."""

    client: Client | None = None
    asked: list[str] = field(default_factory=list)

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        self.asked.append(request.messages[-1].text)
        yield Started("up", "up")
        yield Opened(0, Text())
        yield Delta(0, self.asked[-1])
        if len(self.asked) == 2:
            assert self.client is not None
            # its lease is over, and it hears of nothing any more
            runs = RunStore(self.client.engine.store.client, lease=0.0)
            record = runs.record("r")
            assert record is not None
            runs.renew([("r", record.fence)])
            scope.wait(30)
        yield Closed(0)
        yield Finished("end", FIVE)


def test_a_call_under_way_when_its_worker_dies_is_on_no_bill() -> None:
    @agent
    def twice(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask("a").text + chat.ask("b").text)

    model = Dies()
    with Client(Brain("b", Flow(twice, model=model).named("x").durable() >> respond)) as client:
        model.client = client
        answer = client.chat("go", run_id="r")
        attempts = attempts_of(record_of(client, "r"))

    assert model.asked == ["a", "b", "a", "b"]
    assert [(one.result, one.usage, one.calls) for one in attempts] == [("lost", FIVE, 1), ("done", Usage(10, 10), 2)]
    assert answer.response.usage == Usage(15, 15)


def test_a_step_under_way_is_told() -> None:
    seen: list[Attempt] = []

    @agent
    def look(turn: Turn, chat: Chat) -> None:
        record = client.reception.runs.store.record("r", BILL)
        assert record is not None
        seen.extend(attempts_of(record))

    with Client(Brain("b", Flow(model=says("first")) >> Flow(look))) as client:
        client.chat("go", run_id="r")

    assert results(seen) == [("0", 1, "done"), ("1", 1, "running")]
    assert seen[1].begun is not None
    assert seen[1].ended is None


@pytest.mark.parametrize("done", [False, True])
def test_flows_inside_a_group_have_their_times_and_costs_and_are_kept(done: bool) -> None:
    flow = All(Flow(model=says("a")).named("a") >> Flow(model=says("a2")), Flow(model=says("b")).named("b"))
    with Client(Brain("b", flow.named("g").durable() >> respond)) as client:
        client.crash_at("0", done=done)
        client.chat("go", run_id="r")
        attempts = attempts_of(record_of(client, "r"))
    lost, last = attempts
    inside = {piece.path: piece for piece in last.inside}

    assert (lost.result, lost.usage) == ("lost", Usage(15, 15) if done else Usage())
    assert sorted(inside) == ["0/0/0", "0/0/1", "0/1/0"]
    assert {piece.kept for piece in last.inside} == {done}
    assert {piece.flow for piece in last.inside} == {"b/g/a", "b/g", "b/g/b"}
    assert sum((piece.usage for piece in last.inside), Usage()) == last.usage
    assert all(last.begun is not None and piece.begun >= last.begun for piece in last.inside)
    assert last.ended is not None
    assert all(piece.ended <= last.ended + 1 for piece in last.inside)


def test_a_group_that_waits_for_its_members_has_lost_no_attempt() -> None:
    flow = All(Flow(model=says("a")), Flow(model=says("b")), spread=True).named("g").durable()
    with Client(Brain("b", flow >> respond)) as client:
        client.chat("go", run_id="r")
        attempts = attempts_of(record_of(client, "r"))

    assert [(one.path, one.result, one.members, one.usage) for one in attempts] == [("0", "done", 2, Usage(10, 10))]


def test_a_queued_run_is_told_as_queued() -> None:
    with Client(Brain("b", Flow(model=says("one")))) as client:
        reception = client.reception
        client.close()
        with reception.receive(Request(), "r", 5.0):
            record = reception.runs.store.record("r", BILL)
            assert record is not None

    assert [(one.result, one.begun, one.waited) for one in attempts_of(record)] == [("queued", None, None)]
