"""Requests become runs, one for each id, and whoever leaves leaves them alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import BrainChanged, BrainError, Conflict, ModelBusy, RunExpired
from bigbrain.events import Delta, Started, collect
from bigbrain.flows import Flow, respond
from bigbrain.messages import Request, user
from bigbrain.models import FixedModel
from bigbrain.turns import Turn
from tests.engine.acting import until
from tests.house import House, living

HELLO = Request(messages=(user("hello"),))
OTHER = Request(messages=(user("goodbye"),))


def fixed(text: str = "hi") -> Brain:
    return Brain("b", Flow(model=FixedModel(text)))


def test_a_run_begins_with_an_event_that_needs_no_waiting() -> None:
    with living(fixed()) as house, house.reception.receive(HELLO, "r1", 7.9) as begun:
        assert begun.started == Started("r1", "b", 7)
        assert begun.follower.seq == 1


def test_a_request_is_answered_by_the_flow_of_its_model_or_the_default() -> None:
    brain = fixed("default")
    brain.add_flow(Flow(model=FixedModel("other")), name="other")
    with living(brain) as house:
        answers = [house.ask(Request(model=name, messages=(user("x"),))) for name in ("other", "gpt-9", "")]

    assert [(answer.model, answer.text) for answer in answers] == [
        ("other", "other"),
        ("b", "default"),
        ("b", "default"),
    ]


def test_the_id_of_another_request_is_a_conflict_and_harms_nobody() -> None:
    with living(fixed()) as house:
        with house.reception.receive(HELLO, "r1", 5.0) as begun:
            with pytest.raises(Conflict, match="another request"), house.reception.receive(OTHER, "r1", 5.0):
                pass
            events = list[object]()
            until(lambda: events.extend(begun.follower.read(0.1)) or begun.follower.over)

        assert Delta(0, "hi") in events
        assert len(house.record("r1").steps) == 1
        assert len(house.hub) == 0


def test_of_many_with_one_id_all_get_the_answer_of_one_run() -> None:
    together = threading.Barrier(10)
    asked = count(1)

    @agent
    def number(turn: Turn, chat: Chat) -> None:
        turn.reply(f"answer {next(asked)}")

    def ask(house: House) -> str:
        together.wait(10)
        return house.ask(HELLO, "r1").text

    with living(Brain("b", Flow(number))) as house, ThreadPoolExecutor(10) as pool:
        texts = list(pool.map(ask, [house] * 10))

        assert texts == ["answer 1"] * 10
        assert len(house.record("r1").steps) == 1


def test_a_complete_answer_is_given_again_and_counted() -> None:
    with living(
        Brain("b", Flow(model=FixedModel("one")) >> respond >> Flow(model=FixedModel("two")) >> respond)
    ) as house:
        first = house.events(HELLO, "r1")
        with house.reception.receive(HELLO, "r1", 99.0) as (started, follower, how):
            again = [started, *follower.read(5)]
        record = house.record("r1")

    assert how == "replayed"
    assert collect(again) == collect(first)
    assert collect(again).text.count("one") == collect(again).text.count("two") == 1
    assert (record.replayed, len(record.steps)) == (1, 2)


def test_a_run_that_failed_goes_on_from_its_last_step_when_it_is_asked_again() -> None:
    done = list[str]()

    @agent
    def first(turn: Turn, chat: Chat) -> None:
        done.append("first")

    @agent
    def second(turn: Turn, chat: Chat) -> None:
        done.append("second")
        if done.count("second") == 1:
            raise ModelBusy
        turn.reply("at last")

    with living(Brain("b", (Flow(first) >> Flow(second)).named("kept").durable())) as house:
        failed = house.fail(HELLO, "r1")
        answer = house.ask(HELLO, "r1")
        record = house.record("r1")

    assert failed.code == "model_busy"
    assert answer.text == "at last"
    assert done == ["first", "second", "second"]
    assert (record.status, record.replayed) == ("done", 0)


def test_a_run_that_is_gone_starts_anew() -> None:
    with living(fixed()) as house:
        house.ask(HELLO, "r1")
        house.record("r1")
        house.store.client.delete("bb:run:r1", "bb:run:r1:log", "bb:run:r1:steps")
        with house.reception.receive(OTHER, "r1", 5.0) as begun:
            pass

    assert begun.how == "started"


@pytest.mark.parametrize("error", [BrainChanged, RunExpired])
def test_a_run_that_can_never_go_on_is_begun_anew(error: type[BrainError]) -> None:
    tries = count(1)

    @agent
    def fail_once(turn: Turn, chat: Chat) -> None:
        if next(tries) == 1:
            raise error
        turn.reply("anew")

    with living(Brain("b", Flow(fail_once))) as house:
        failed = house.fail(HELLO, "r1")
        with house.reception.receive(HELLO, "r1", 5.0) as begun:
            pass
        record = house.record("r1")

    assert failed.code == error.code
    assert begun.how == "started"
    assert (record.status, len(record.steps)) == ("done", 1)


def test_a_run_that_is_being_stopped_goes_on_for_a_client_that_comes_back() -> None:
    reached, may_go_on = threading.Event(), threading.Event()

    @agent
    def wait(turn: Turn, chat: Chat) -> None:
        if not reached.is_set():
            reached.set()
            assert may_go_on.wait(10)
        turn.reply("done")

    with living(Brain("b", Flow(wait))) as house:
        with house.reception.receive(HELLO, "r1", 5.0):
            assert reached.wait(10)
        assert house.store.stop("r1", if_abandoned=True)
        threading.Timer(0.2, may_go_on.set).start()
        answer = house.ask(HELLO, "r1")

    assert answer.text == "done"


def test_a_client_that_leaves_leaves_the_run_alone() -> None:
    left = threading.Event()

    @agent
    def wait(turn: Turn, chat: Chat) -> None:
        assert left.wait(10)
        turn.reply("done")

    with living(Brain("b", Flow(wait))) as house:
        with house.reception.receive(HELLO, "r1", 5.0):
            pass
        assert house.store.client.scard("bb:run:r1:followers") == 0
        left.set()

        assert house.record("r1").status == "done"
        with house.hub.follow("r1") as late:
            assert Delta(0, "done") in late.catch_up()
            assert late.over
