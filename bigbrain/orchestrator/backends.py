"""Who writes an orchestrator's replies: the seam, and its first implementation, any model of bigbrain.

A backend only gives text. What the text means, what it costs the run and what is told of it
is the orchestrator's business.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from bigbrain.messages import AnswerSchema, Message, Request, Stop, Text, Usage, system
from bigbrain.models import Asks
from bigbrain.orchestrator.cancellation import limited
from bigbrain.replies import Reply
from bigbrain.scope import Scope

CACHED = {"cache_control": {"type": "ephemeral"}}
"""The mark behind which a provider keeps what it has read."""


@dataclass(frozen=True)
class Conversation:
    """What a model is asked in one step of a task."""

    system: str
    """The instructions: the protocol and the agents. The same in every step of every task of one orchestrator."""
    history: tuple[Message, ...] = ()
    """What was said before this task, as its caller gave it. A backend with a memory of its own leaves it out."""
    task: tuple[Message, ...] = ()
    """This task: what is known already (a system message), the prompt, then the model's replies and what came of them
    (a user's message each). The last message is never the model's."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of it, for a model without a memory."""
        return (*((system(self.system),) if self.system else ()), *self.history, *self.task)

    @property
    def fresh(self) -> tuple[Message, ...]:
        """What the model has not been told yet in this task: all that follows its last reply."""
        for index in range(len(self.task) - 1, -1, -1):
            if self.task[index].role == "assistant":
                return self.task[index + 1 :]
        return self.task


@dataclass(frozen=True)
class Said:
    """A whole reply; `stop` is why it ended, `end` where a backend does not know."""

    text: str
    stop: Stop = "end"


class Backend(Protocol):
    """Whoever can be asked for the next reply of a task."""

    @property
    def name(self) -> str:
        """What traces call it, such as the model's name."""

    def ask(
        self,
        conversation: Conversation,
        *,
        told: Callable[[str], None],
        spent: Callable[[Usage], None],
        scope: Scope,
        deadline: float,
    ) -> Said:
        """Asks, and returns the whole reply.

        told: hears each piece of the text as it comes; together they are the text. spent: hears once what the reply
        cost, also when it breaks off. scope: whoever cancels it ends the call within milliseconds. deadline: when it
        must be over, by `time.monotonic`; `cancellation.limited` makes one scope of both.

        May be called by several threads at once. Raises the scope's error once it is cancelled, `ModelTimeout` at the
        deadline, and `ModelError` for whatever else goes wrong; never anything that is not a `BrainError`, but for what
        `told` raises.
        """


@dataclass(frozen=True)
class ModelBackend:
    """A model of bigbrain: OpenAI-compatible, native Anthropic, or anything else that can be asked."""

    model: Asks
    name: str
    json_only: bool = False
    """Asks the provider for nothing but one JSON object."""
    caching: bool = False
    """Marks the instructions, so that a provider that needs a mark keeps them from step to step."""

    def ask(
        self,
        conversation: Conversation,
        *,
        told: Callable[[str], None],
        spent: Callable[[Usage], None],
        scope: Scope,
        deadline: float,
    ) -> Said:
        """See `Backend.ask`."""
        request = Request(
            messages=_marked(conversation.messages) if self.caching else conversation.messages,
            schema=AnswerSchema() if self.json_only else None,
        )
        with limited(scope, deadline) as own, own.guard(), closing(Reply(self.model.ask(request, own), spent)) as reply:
            for piece in reply:
                told(piece)
            response = reply.response
            return Said(response.text, response.stop or "end")


def _marked(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    first, *others = messages
    marked = Text(first.text, vendor={"anthropic": CACHED, "openai": CACHED})
    return (Message(first.role, (marked,)), *others)
