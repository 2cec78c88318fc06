"""Requests become runs, one for each id, and whoever leaves leaves them alone."""

from __future__ import annotations

import threading

import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import Conflict
from bigbrain.events import Delta, Started
from bigbrain.flows import Flow
from bigbrain.messages import Request, user
from bigbrain.models import FixedModel
from bigbrain.turns import Turn
from tests.engine.acting import until
from tests.house import House, living

HELLO = Request(messages=(user("hello"),))


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


def test_an_id_that_is_taken_is_a_conflict_and_harms_nobody() -> None:
    with living(fixed()) as house:
        with house.reception.receive(HELLO, "r1", 5.0) as (_, follower):
            with pytest.raises(Conflict, match="`r1` is taken"), house.reception.receive(HELLO, "r1", 5.0):
                pass
            events = list[object]()
            until(lambda: events.extend(follower.read(0.1)) or follower.over)

        assert Delta(0, "hi") in events
        assert len(house.record("r1").steps) == 1
        assert len(house.hub) == 0


def test_of_many_with_one_id_one_is_received() -> None:
    together = threading.Barrier(8)
    results = list[str]()

    def ask(house: House) -> None:
        together.wait(10)
        try:
            results.append(house.ask(HELLO, "r1").text)
        except Conflict:
            results.append("conflict")

    with living(fixed()) as house:
        threads = [threading.Thread(target=ask, args=(house,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)

    assert sorted(results) == ["conflict"] * 7 + ["hi"]


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
