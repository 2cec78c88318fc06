"""A server that is killed may forget a whole run that had just begun: whoever waits for the answer gets it all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.engine.channels import Follower
from bigbrain.errors import RunExpired, RunInterrupted
from bigbrain.events import Event, Failed, collect
from bigbrain.flows import Flow
from bigbrain.messages import Request, user
from bigbrain.turns import Turn
from tests.house import House, living

HELLO = Request(messages=(user("hello"),))


class Halting:
    """An agent whose first attempt says `old` and never ends; each later one says `new`."""

    def __init__(self, said: str = "old") -> None:
        self.said = said
        self.reached = threading.Event()
        self.attempts = count(1)

    def flow(self) -> Flow:
        """The flow of it."""

        @agent
        def halt(turn: Turn, chat: Chat) -> None:
            turn.reply(self._old(turn) if next(self.attempts) == 1 else "new")

        return Flow(halt)

    def _old(self, turn: Turn) -> Iterator[str]:
        if self.said:
            yield self.said
        self.reached.set()
        while True:
            turn.check()
            time.sleep(0.01)


def forget(house: House) -> None:
    """Has the server come back without anything, and be asked, as after a kill."""
    house.store.client.flushdb()
    time.sleep(0.002)  # none is back in less


def rest(follower: Follower, *, until: type[Event]) -> list[Event]:
    """All events up to one of that kind, at most so many."""
    events: list[Event] = []
    for _ in range(100):
        events += follower.read(0.1)
        if follower.over or any(isinstance(event, until) for event in events):
            return events
    raise AssertionError(events)


def lasting(halting: Halting) -> Brain:
    return Brain("b", halting.flow().named("once").durable())


def test_a_client_that_has_nothing_yet_notices_nothing() -> None:
    halting = Halting(said="")
    with living(lasting(halting)) as house, house.reception.receive(HELLO, "r1", 5.0) as begun:
        assert halting.reached.wait(10)
        forget(house)
        begun.follower.post("again")
        events = rest(begun.follower, until=Failed)

    assert collect(events).text == "new"


def test_a_client_that_gets_the_answer_whole_notices_nothing() -> None:
    halting = Halting()
    with living(lasting(halting)) as house, house.reception.receive(HELLO, "r1", 5.0) as begun:
        begun.follower.whole = True
        assert halting.reached.wait(10)
        old = begun.follower.read(10)
        forget(house)
        begun.follower.post("again")
        events = rest(begun.follower, until=Failed)

    assert collect(old).text == "old"
    assert begun.follower.anew
    assert collect(events).text == "new"


def test_a_client_that_has_some_of_it_hears_so_and_gets_the_whole_when_it_asks_again() -> None:
    halting = Halting()
    with living(lasting(halting)) as house:
        with house.reception.receive(HELLO, "r1", 5.0) as begun:
            assert halting.reached.wait(10)
            assert collect(begun.follower.read(10)).text == "old"
            forget(house)
            begun.follower.post("again")
            events = rest(begun.follower, until=Failed)
        answer = house.ask(HELLO, "r1")

    assert events == [Failed.of(RunInterrupted())]
    assert answer.text == "new"


def test_a_run_whose_step_must_not_be_done_twice_is_interrupted() -> None:
    halting = Halting()
    with living(Brain("b", halting.flow())) as house, house.reception.receive(HELLO, "r1", 5.0) as begun:
        assert halting.reached.wait(10)
        begun.follower.read(10)
        forget(house)
        begun.follower.post("again")
        with pytest.raises(RunInterrupted):
            rest(begun.follower, until=Failed)
        assert house.store.record("r1") is None


def test_a_run_that_may_be_gone_because_it_was_over_long_ago_does_not_begin_again() -> None:
    halting = Halting()
    with living(lasting(halting)) as house, house.reception.receive(HELLO, "r1", 5.0) as begun:
        assert halting.reached.wait(10)
        begun.follower.read(10)
        house.store.kept = 0.01
        forget(house)
        time.sleep(0.02)
        begun.follower.post("again")
        with pytest.raises(RunExpired):
            rest(begun.follower, until=Failed)
