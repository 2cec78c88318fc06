"""What an agent is: configuration, and what it does on its turn.

An agent cannot act by itself: it has no `ask`. On its turn its handler gets the two
handles that can, `turn` for the client and `chat` for the model, and neither of
them can change the agent.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, overload

from bigbrain.chat import Chat
from bigbrain.models import Askable, ModelRef
from bigbrain.turns import Turn

Handler: TypeAlias = Callable[[Turn, Chat], Awaitable[None] | None]
"""An author's function for a turn, `def` or `async def`."""


def answer_as_the_model(turn: Turn, chat: Chat) -> None:
    """What an agent without a handler does: the model's answer is its answer, tools and all."""
    turn.relay(chat.ask(*turn.messages, forward=True))


@dataclass(frozen=True, kw_only=True)
class Agent:
    """How one agent acts: by its handler, or without one as the model behind it.

    model: what `chat` asks; None leaves it to the flow, the groups around it, the brain.
    role: the system text of everything it asks. cpu: the handler keeps a processor busy,
    so its flow runs in the workers for that.
    """

    name: str
    handler: Handler = answer_as_the_model
    model: Askable | ModelRef | None = None
    role: str = ""
    cpu: bool = False

    @property
    def plain(self) -> bool:
        """Whether it has no handler of its own, so that it cannot do without a model."""
        return self.handler is answer_as_the_model

    def act(self, turn: Turn, chat: Chat) -> None:
        """Takes its turn; an `async def` handler gets an event loop of its own, so it may block as it likes."""
        done = self.handler(turn, chat)
        if inspect.isawaitable(done):
            asyncio.run(_awaited(done))


async def _awaited(done: Awaitable[None]) -> None:
    await done


@overload
def agent(handler: Handler, /) -> Agent: ...
@overload
def agent(
    *, model: Askable | ModelRef | None = None, role: str = "", name: str = "", cpu: bool = False
) -> Callable[[Handler], Agent]: ...
def agent(
    handler: Handler | None = None,
    /,
    *,
    model: Askable | ModelRef | None = None,
    role: str = "",
    name: str = "",
    cpu: bool = False,
) -> Agent | Callable[[Handler], Agent]:
    """Makes an agent of a handler: `@agent`, or `@agent(model=…, role=…)`; named as its function by default."""

    def made(handler: Handler) -> Agent:
        return Agent(
            name=name or getattr(handler, "__name__", "agent"), handler=handler, model=model, role=role, cpu=cpu
        )

    return made if handler is None else made(handler)
