"""Flows: what runs, and in which order. A chain of flows is a flow, and so is a group.

Flows are values: `named`, `>>` and the like give new ones. What a flow consists of
is its `body`, a closed union that the compiler (`compiling`) takes apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, TypeAlias

from bigbrain.agents import Agent
from bigbrain.errors import WiringError
from bigbrain.models import Askable, ModelRef


@dataclass(frozen=True)
class Acting:
    """The body of a flow in which an agent takes its turn."""

    agent: Agent


@dataclass(frozen=True)
class Chained:
    """The body of a flow that runs others one after the other."""

    flows: tuple[Flow, ...]


@dataclass(frozen=True)
class Responding:
    """The body of a flow that ends a stage of the answer."""


Body: TypeAlias = Acting | Chained | Responding


class Flow:
    """Something that runs on a conversation and hands it on."""

    def __init__(self, agent: Agent | None = None, *, model: Askable | ModelRef | None = None, role: str = "") -> None:
        """agent: who takes the turn; without one the model itself answers, as a transparent proxy, in its `role`.

        model: what the agent asks when it names none.
        Raises `WiringError` for a role beside an agent, which has its own.
        """
        if agent is not None and role:
            raise WiringError(f"`role` is the agent's business: give it to `@agent(role=…)` of `{agent.name}`")
        self._body: Body = Acting(agent or Agent(name="model", role=role))
        self._model = model
        self._id = ""

    @property
    def body(self) -> Body:
        """What the flow consists of."""
        return self._body

    @property
    def model(self) -> Askable | ModelRef | None:
        """What is asked by the agents in it that name no model."""
        return self._model

    @property
    def id(self) -> str:
        """The id that `named` gave it, or nothing."""
        return self._id

    def named(self, id: str) -> NamedFlow:
        """The same flow under an id, by which people and other flows know it.

        Raises `WiringError` for an id that is empty or has a slash or a space in it, because paths are made of ids.
        """
        if not id or any(char in "/ \t\n" for char in id):
            raise WiringError(f"`{id}` is no id for a flow: it must not be empty nor have slashes or spaces in it")
        return NamedFlow._of(self._body, self._model, id)

    def asking(self, model: Askable | ModelRef) -> Self:
        """The same flow with a model for all agents in it that name none."""
        return self._of(self._body, model, self._id)

    def next(self, flow: Flow) -> Flow:
        """A chain: this flow, then `flow` on what this one made of the conversation."""
        return Flow._of(Chained((*_links(self), *_links(flow))))

    def __rshift__(self, flow: Flow) -> Flow:
        """`a >> b` is `a.next(b)`."""
        return self.next(flow)

    @classmethod
    def _of(cls, body: Body, model: Askable | ModelRef | None = None, id: str = "") -> Self:
        flow = cls.__new__(cls)
        flow._body, flow._model, flow._id = body, model, id
        return flow


class NamedFlow(Flow):
    """A flow with an id."""


def _links(flow: Flow) -> tuple[Flow, ...]:
    """What a flow adds to a chain: a plain chain its links, anything with a name or a model itself."""
    if isinstance(flow.body, Chained) and not flow.id and flow.model is None:
        return flow.body.flows
    return (flow,)


respond = Flow._of(Responding())
"""Ends a stage of the answer: the client gets all that was replied since the last one, or since the start.

May stand several times in a chain. The answer is complete at the last one; what comes
after it goes on in the background, and the client hears nothing of it.
"""
