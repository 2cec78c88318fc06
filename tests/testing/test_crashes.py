"""Workers that die where a test says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.compiling import Compiled
from bigbrain.engine.local import LocalQueue
from bigbrain.engine.records import END, Claim, Outcome
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import LAPSES, RunStore
from bigbrain.engine.writer import Tape
from bigbrain.flows import Flow, respond
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.testing import AnswerFailed, Client
from bigbrain.testing.crashes import Mortal
from bigbrain.turns import Turn
from tests.engine.acting import Acts, Plans, new_run, numbered, until


class Counting:
    """A brain of two steps that counts how often each was done."""

    def __init__(self) -> None:
        self.done: list[str] = []

        @agent
        def first(turn: Turn, chat: Chat) -> None:
            self.done.append("first")

        @agent
        def second(turn: Turn, chat: Chat) -> None:
            self.done.append("second")
            turn.reply("there")

        self.brain = Brain("b", Flow(first).named("begin") >> Flow(second).named("end"))


def test_a_run_without_a_durable_flow_ends_when_its_worker_dies() -> None:
    counting = Counting()

    with Client(counting.brain, crash_at="1") as client:
        with pytest.raises(AnswerFailed) as caught:
            client.chat("hi")
        record = client.record("run-1")

    assert (caught.value.code, caught.value.status, caught.value.failed.retryable) == ("run_interrupted", 503, True)
    assert record.status == "failed"
    assert [(step["path"], step["result"]) for step in record.steps] == [("0", "done"), ("1", "lost")]
    assert counting.done == ["first"]


@pytest.mark.parametrize("step", ["1", "end", "second"])
def test_a_step_goes_by_its_path_its_flow_and_its_agent(step: str) -> None:
    counting = Counting()

    with Client(counting.brain, crash_at=step) as client:
        assert client.ask("hi").failed is not None

    assert counting.done == ["first"]


def test_a_worker_dies_as_often_as_it_is_told_to() -> None:
    counting = Counting()

    with Client(counting.brain) as client:
        client.crash_at("begin", times=2)
        codes = [answer.failed.code if (answer := client.ask("hi")).failed else "" for _ in range(3)]

        assert codes == ["run_interrupted", "run_interrupted", ""]
        assert client.crashes == 2


def test_a_worker_may_die_when_the_work_is_done_but_not_on_record() -> None:
    counting = Counting()

    with Client(counting.brain) as client:
        client.crash_at("begin", done=True)
        failed = client.ask("hi").failed
        record = client.record("run-1")

    assert failed is not None
    assert failed.code == "run_interrupted"
    assert counting.done == ["first"]
    assert [(step["path"], step["result"]) for step in record.steps] == [("0", "lost")]


def test_a_crash_after_the_last_stage_is_not_told_to_the_client() -> None:
    counting = Counting()
    brain = Brain("b", Flow(model=FixedModel("answer")) >> respond >> counting.brain.flows["b"])

    with Client(brain, crash_at="begin") as client:
        answer = client.chat("hi")
        record = client.record(answer.run_id)

    assert answer.text == "answer"
    assert (record.status, record.error["code"]) == ("failed", "run_interrupted")


def test_a_step_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="no step goes by `middle`; steps go by `0`, `1`, `begin`, `end`"):
        Client(Counting().brain, crash_at="middle")


class TestTakingOver:
    """What another worker does with a step that may be run again."""

    @pytest.fixture
    def acts(self) -> Acts:
        def act(claim: Claim, tape: Tape, scope: Scope) -> Outcome:
            last = claim.path == "1"
            return Outcome(END if last else "1", b"{}", durable=True)

        return Acts({"0": act, "1": act})

    @pytest.fixture
    def mortal(self, store: RunStore, acts: Acts) -> Iterator[Mortal]:
        plan = numbered(2)
        mortal = Mortal(acts, store, {"main": Compiled(plan, {}, ())})
        queue = LocalQueue(2)
        self.runs = Runs(Plans(main=plan), store, queue)
        engine = Engine(mortal, self.runs)
        queue.attach(engine, every=0.02)
        yield mortal
        queue.close()
        engine.close()

    def over(self) -> str:
        def status() -> str:
            record = self.runs.store.record("r1")
            assert record is not None
            return record.status

        until(lambda: status() not in ("queued", "running"))
        return status()

    def test_the_step_runs_again_as_its_next_attempt(self, mortal: Mortal, acts: Acts) -> None:
        mortal.die_at("1", times=1, done=True)
        self.runs.start(new_run(durable=True))

        assert self.over() == "done"
        assert acts.done == [("r1", "0", 1), ("r1", "1", 1), ("r1", "1", 2)]

    def test_a_step_that_kills_worker_after_worker_is_given_up(self, mortal: Mortal, acts: Acts) -> None:
        mortal.die_at("0", times=LAPSES, done=False)
        self.runs.start(new_run(durable=True))

        assert self.over() == "failed"
        assert (mortal.deaths, acts.done) == (LAPSES, [])
