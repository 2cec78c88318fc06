"""Agents, flows and clients for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

from bigbrain import Agent, Brain, Chat, Flow, Request, Turn, agent, user
from bigbrain.events import Delta, Failed
from bigbrain.testing import Client
from bigbrain.trace import TraceEvent

PATIENCE = 5.0
"""Seconds after which something that should have happened did not."""


def say(*texts: str, select: str = "", name: str = "say") -> Agent:
    """An agent that replies with these texts and selects."""

    @agent(name=name)
    def handler(turn: Turn, chat: Chat) -> None:
        for text in texts:
            turn.reply(text)
        if select:
            turn.select(select)

    return handler


def saying(*texts: str, select: str = "") -> Flow:
    return Flow(say(*texts, select=select))


def looking(seen: list[tuple[str, ...]]) -> Flow:
    """A flow that notes the texts of the conversation and says nothing."""

    @agent
    def look(turn: Turn, chat: Chat) -> None:
        seen.append(tuple(message.text for message in turn.messages))

    return Flow(look)


def answer(flow: Flow, asked: str = "go") -> str:
    """The text of a flow's answer."""
    with Client(Brain("b", flow)) as client:
        return client.chat(asked).text


def failure(flow: Flow) -> tuple[Failed, str]:
    """How a flow's answer fails, and what only its record says."""
    with Client(Brain("b", flow)) as client:
        failed = client.ask("go", run_id="r").failed
        assert failed is not None
        return failed, client.record("r").error["detail"]


def told(flow: Flow) -> list[TraceEvent]:
    """All that is told of a run of a flow."""
    with Client(Brain("b", flow)) as client:
        client.chat("go", run_id="r")
        client.record("r")
        return client.trace("r")


def heard_live(flow: Flow, *gates: tuple[str, Event]) -> str:
    """The text of an answer; each gate is opened once the client has the text that stands beside it."""
    with Client(Brain("b", flow)) as client:
        with client.reception.receive(Request(messages=(user("go"),)), "r", 0.0) as (_, follower, _):
            text = ""
            while not follower.over:
                for event in follower.read(PATIENCE):
                    text += event.text if isinstance(event, Delta) else ""
                for seen, gate in gates:
                    if seen in text:
                        gate.set()
        return text


def gated(first: str, gate: Event, rest: str) -> Callable[[], Iterator[str]]:
    """Pieces of text of which the rest comes only once the gate is open."""

    def pieces() -> Iterator[str]:
        yield first
        assert gate.wait(PATIENCE), f"nobody has heard `{first}`"
        yield rest

    return pieces
