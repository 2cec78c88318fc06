"""The flows of a soak: one of each kind, quick, without a model's server, each with one right answer.

A flow's name is its kind; `EXPECTED` has the texts of which its answer must be one, none for one that must fail.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from datetime import timedelta
from functools import reduce

from bigbrain import (
    All,
    Brain,
    Chat,
    FixedModel,
    Flow,
    Group,
    Notify,
    Once,
    One,
    Select,
    Turn,
    Webhook,
    agent,
    respond,
    tool,
)
from bigbrain.errors import ModelBroke
from bigbrain.events import Event, replay
from bigbrain.messages import Request, Response, Text, ToolCall, Usage
from bigbrain.scope import Scope

WORDS = "word " * 400


class Calls:
    """A model that has a tool called twice, then says how often it looked."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        scope.check()
        looked = sum(len(message.results) for message in request.messages)
        part = ToolCall(f"c{looked}", "look", "{}") if looked < 2 else Text(f"looked {looked} times")
        stop = "calls" if looked < 2 else "end"
        yield from replay(Response("up", "up", 0, (part,), stop=stop, usage=Usage(3, 2)))


def says(text: str) -> Flow:
    return Flow(model=FixedModel(text))


def chain(*flows: Flow) -> Flow:
    return reduce(lambda flow, following: flow >> following, flows)


@tool
def look() -> str:
    """Looks somewhere."""
    return "seen " * 50


@agent
def house(turn: Turn, chat: Chat) -> None:
    """Answers with the help of a tool."""
    turn.reply(chat.resolve(turn.last, tools=[look]))


@agent(selects=("left", "right"))
def choose(turn: Turn, chat: Chat) -> None:
    """Goes left."""
    turn.select("left")


@agent
def breaks(turn: Turn, chat: Chat) -> None:
    """Breaks off in mid answer."""

    def pieces() -> Generator[str]:
        yield "half"
        raise ModelBroke

    turn.reply(pieces())


@agent
def stumbles(turn: Turn, chat: Chat) -> None:
    """Fails in the first attempt of a step, and remembers that it did."""
    if brain.memory.get(turn.idempotency_key) is None:
        brain.memory.put(turn.idempotency_key, True, ttl=10)
        raise ModelBroke
    turn.reply("at last")


@agent
def waits(turn: Turn, chat: Chat) -> None:
    """Says a word, then waits for 20 seconds to be stopped."""
    turn.reply(iter(["begun"]))
    for _ in range(1000):
        turn.check()
        time.sleep(0.02)


def nobody(text: str) -> None:
    """Is told, and forgets it."""


def looking(name: str) -> Flow:
    return Flow(house, model=Calls()).named(name).durable()


brain = Brain("plain", says("plain"))
FLOWS = {
    "long": says(WORDS),
    "stages": says("one") >> respond >> says("two") >> respond >> Notify(nobody),
    "hops": chain(*(says(str(number)) for number in range(20))),
    "select": Flow(choose) >> Select(says("left").named("left"), says("right").named("right")) >> respond,
    "all": All(says("a"), says("b")) >> respond,
    "one": One(says("a"), chain(says("a"), says("a"))) >> respond,
    "group": Group(says("a"), says("b")) >> respond,
    "spread": All(says("a"), says("b"), spread=True) >> respond,
    "tools": looking("tools"),
    "lasting": chain(says("one"), respond, looking("look"), All(says("a"), says("b"), spread=True), respond)
    .named("lasting")
    .durable(retries=1),
    "stumbles": Flow(stumbles).named("stumbles").durable(retries=1),
    "breaks": Flow(breaks),
    "waits": Flow(waits),
}
for name, flow in FLOWS.items():
    brain.add_flow(flow, name=name)

brain.add_trigger(Webhook("hook", unsigned=True) >> says("called").named("hook") >> respond)
brain.add_flow(says("now") >> respond >> Once(timedelta(seconds=1)) >> says("later").named("later"), name="puts off")

EXPECTED: dict[str, tuple[str, ...]] = {
    "plain": ("plain",),
    "long": (WORDS,),
    "stages": ("one\n\ntwo",),
    "hops": ("19",),
    "select": ("left",),
    "all": ("a\n\nb",),
    "one": ("a", "a\n\na"),
    "group": ("a\n\nb", "b\n\na"),
    "spread": ("a\n\nb",),
    "tools": ("looked 2 times",),
    "lasting": ("one\n\nlooked 2 times\n\na\n\nb",),
    "stumbles": ("at last",),
    "breaks": (),
    "hook": ("called",),
    "puts off": ("now",),
}
