"""What a task has done so far: its conversation, its tool calls, and how a later attempt takes it up.

Kept are the model's replies as they came and the results of their actions, one by one, so that
whoever takes the task up repeats no finished action: it reads the last reply again and goes on
behind the results that there are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from bigbrain.errors import SchemaError
from bigbrain.messages import Message, Text, ToolResult
from bigbrain.orchestrator import prompting
from bigbrain.orchestrator.actions import Call, Plan, read_reply
from bigbrain.orchestrator.agents import Agent
from bigbrain.orchestrator.calling import given_to
from bigbrain.orchestrator.results import ToolTrace
from bigbrain.run import Rounds

FAULT = "fault"
"""The id of a result that is not an action's: what was wrong with the reply."""


@dataclass
class Step:
    """One reply and what came of it; `plan` is None while it is unread, or when it is outside the protocol."""

    reply: str
    plan: Plan | None = None
    results: list[ToolResult] = field(default_factory=list)

    @property
    def faulty(self) -> bool:
        """Whether the reply was put back."""
        return any(result.call_id == FAULT for result in self.results)


class Record:
    """The steps of one task."""

    def __init__(self, begin: Sequence[Message], history: Sequence[Message], agents: tuple[Agent, ...], rounds: Rounds):
        """begin: what is known, and the prompt. rounds: keeps what is done, and knows what was."""
        self._begin = tuple(begin)
        self._agents = agents
        self._rounds = rounds
        self._id = _id((*history, *begin))
        self.steps: list[Step] = []
        self.traces: list[ToolTrace] = []
        for messages in rounds.known(self._id):
            for message in messages:
                self._take_up(message)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The task as the model is told it."""
        return (*self._begin, *(message for step in self.steps for message in _told(step)))

    @property
    def faults(self) -> int:
        """How many replies just before the newest were outside the protocol, one after the other."""
        count = 0
        for step in reversed(self.steps[:-1]):
            if not step.faulty:
                break
            count += 1
        return count

    def replied(self, text: str) -> Step:
        """A new reply. Raises `SchemaError` when it is outside the protocol; it counts as a step either way."""
        step = Step(text)
        self.steps.append(step)
        step.plan = read_reply(text)
        return step

    def done(self, step: Step, result: ToolResult) -> None:
        """Keeps a result of the newest reply; returns once it would survive this process."""
        result = replace(result, call_id=result.call_id or str(len(step.results)))
        reply = (Message("assistant", (Text(step.reply),)),) if not step.results else ()
        self._rounds.settled(self._id, (*reply, Message("tool", (result,))))
        self._add(step, result)

    def ended(self, step: Step) -> None:
        """Keeps the reply that ends the task."""
        self._rounds.settled(self._id, (Message("assistant", (Text(step.reply),)),))

    def _add(self, step: Step, result: ToolResult) -> None:
        number = len(step.results)
        step.results.append(result)
        if result.call_id == FAULT:
            step.plan = None
        if step.plan is None:
            return
        action = step.plan.todo[number]
        given = given_to(action, self._agents) if isinstance(action, Call) else None
        if isinstance(action, Call) and given is not None:
            self.traces.append(ToolTrace(action.tool, given, result.text, action.agent))

    def _take_up(self, message: Message) -> None:
        if message.role == "assistant":
            step = Step(message.text)
            self.steps.append(step)
            try:
                step.plan = read_reply(step.reply)
            except SchemaError:
                step.plan = None
            return
        for result in message.results:
            self._add(self.steps[-1], result)


def _told(step: Step) -> Iterator[Message]:
    yield prompting.replied(step.reply)
    if step.faulty:
        yield Message("user", (Text(step.results[0].text),))
    elif step.plan is not None and step.results:
        yield prompting.results(zip(step.plan.todo, step.results, strict=False), early=step.plan.early)


def _id(asked: Sequence[Message]) -> str:
    """The name of a task: the same when a step runs again and asks the same."""
    return f"task-{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:32]}"
