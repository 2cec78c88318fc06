"""What an agent is: configuration, and what it does on its turn.

An agent cannot act by itself: it has no `ask`. On its turn its handler gets the two
handles that can, `turn` for the client and `chat` for the model, and neither of
them can change the agent.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, overload

from bigbrain.chat import Chat
from bigbrain.errors import WiringError
from bigbrain.messages import ToolSpec
from bigbrain.models import Askable, Asks, ModelRef
from bigbrain.run import Run
from bigbrain.schemas import shape
from bigbrain.tools import Tool, specs
from bigbrain.turns import Turn

Handler: TypeAlias = Callable[[Turn, Chat], Awaitable[None] | None]
"""An author's function for a turn, `def` or `async def`."""

Role: TypeAlias = str | Callable[[Turn], str]
"""The system text of an agent, or a function of the turn that gives it, called for each question."""


def answer_as_the_model(turn: Turn, chat: Chat) -> None:
    """What an agent without a handler does: the model's answer is its answer, tools and all."""
    turn.relay(chat.ask(*turn.messages, forward=True, beginning=turn.begun))


@dataclass(frozen=True, kw_only=True)
class Agent:
    """How one agent acts: by its handler, or without one as the model behind it.

    model: what `chat` asks; None leaves it to the flow, the groups around it, the brain.
    role: the system text of everything it asks. schema: the shape of every answer that it gets, see `Chat.ask`;
    without a handler its JSON is the answer, whole. repairs: how often a bad one is put back to the model.
    selects: the ids that its turn may select, so that a typo is found when the brain is built.
    tools: what an agent without a handler runs when its model calls it, beside the client's tools, which go
    to the client. cpu: the handler keeps a processor busy, so its flow runs in the workers for that.

    Raises `WiringError` for a schema without JSON Schema, for two tools of one name and for tools beside a handler.
    """

    name: str
    handler: Handler = answer_as_the_model
    model: Askable | ModelRef | None = None
    role: Role = ""
    schema: object = None
    repairs: int = 1
    selects: Sequence[str] = ()
    tools: Sequence[Tool[..., object] | ToolSpec] = ()
    cpu: bool = False
    needs_model: bool = False
    """Whether its handler cannot do without a model, so that a missing one is found when the brain is built."""
    parts: Sequence[str] = ()
    """Lines about what it is made of, for those who read the brain's tree."""

    def __post_init__(self) -> None:
        if isinstance(self.selects, str):
            raise WiringError(f"agent `{self.name}`: `selects` is text; give a tuple of ids, `({self.selects!r},)`")
        # a list would make the agent change when its author changes it
        object.__setattr__(self, "selects", tuple(self.selects))
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "parts", tuple(self.parts))
        if self.repairs < 0:
            raise WiringError(f"agent `{self.name}`: `repairs` is {self.repairs}; give 0 or more")
        if self.schema is not None:
            shape(self.schema)
        if self.tools and not self.plain:
            raise WiringError(
                f"agent `{self.name}` has a handler: name the tools where they are used, `chat.resolve(tools=…)`"
            )
        tuple(specs(tuple(self.tools)))

    @property
    def plain(self) -> bool:
        """Whether it has no handler of its own, so that it cannot do without a model."""
        return self.handler is answer_as_the_model

    def chat(self, model: Asks | None, turn: Turn, run: Run) -> Chat:
        """The chat of one of its turns."""
        role = self.role if isinstance(self.role, str) else partial(self.role, turn)
        return Chat(model, role=role, run=run, schema=self.schema, repairs=self.repairs)

    def act(self, turn: Turn, chat: Chat) -> None:
        """Takes its turn; an `async def` handler gets an event loop of its own, so it may block as it likes."""
        if self.plain and self.tools:
            turn.relay(chat.resolve(*turn.messages, tools=self.tools, forward=True))
            return
        done = self.handler(turn, chat)
        if inspect.isawaitable(done):
            asyncio.run(_awaited(done))
        chat.settle()


class ActsAsAgent(Protocol):
    """Something else that can take turns in a flow, such as an `Orchestrator`."""

    def as_agent(self) -> Agent:
        """The agent that it is in a flow."""


async def _awaited(done: Awaitable[None]) -> None:
    await done


@overload
def agent(handler: Handler, /) -> Agent: ...
@overload
def agent(
    *,
    model: Askable | ModelRef | None = None,
    role: Role = "",
    schema: object = None,
    repairs: int = 1,
    selects: Sequence[str] = (),
    name: str = "",
    cpu: bool = False,
) -> Callable[[Handler], Agent]: ...
def agent(
    handler: Handler | None = None,
    /,
    *,
    model: Askable | ModelRef | None = None,
    role: Role = "",
    schema: object = None,
    repairs: int = 1,
    selects: Sequence[str] = (),
    name: str = "",
    cpu: bool = False,
) -> Agent | Callable[[Handler], Agent]:
    """Makes an agent of a handler: `@agent`, or `@agent(model=…, role=…)`; named as its function by default.

    Without a handler it is `Agent(name=…, …)`, which answers as its model does.
    """

    def made(handler: Handler) -> Agent:
        return Agent(
            name=name or getattr(handler, "__name__", "agent"),
            handler=handler,
            model=model,
            role=role,
            schema=schema,
            repairs=repairs,
            selects=selects,
            cpu=cpu,
        )

    return made if handler is None else made(handler)
