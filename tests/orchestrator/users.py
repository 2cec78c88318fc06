"""The agents that the tests of tasks work with: one that knows users, and one that routes sums."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from bigbrain.messages import JSON
from bigbrain.orchestrator import Agent, Field, Orchestrator, TaskResult, Tool
from bigbrain.testing import ScriptedModel

USERS = {"User 1": {"name": "User 1", "born": 2001, "wife": "User 2"}}


@dataclass
class Desk:
    """Two agents whose tools remember what they were given."""

    given: list[tuple[str, JSON]] = field(default_factory=list)

    def retrieve(self, name: str) -> str:
        self.given.append(("user-retriever", name))
        return json.dumps(USERS[name]) if name in USERS else ""

    def add(self, given: dict[str, float]) -> str:
        self.given.append(("add", given))
        return str(given["a"] + given["b"])

    @property
    def agents(self) -> list[Agent]:
        retriever = Tool(
            "user-retriever", "Retrieve a user.", "The user's name", "A JSON object, or nothing", self.retrieve
        )
        add = Tool("add", "Add two numbers.", [Field("a", "first"), Field("b", "second")], "The sum", self.add)
        basic = Agent("basic", "Add, subtract, multiply.", [add])
        advanced = Agent(
            "advanced", "Calculus.", [Tool("diff", "Differentiate.", "A term", "A term", lambda term: term)]
        )
        return [
            Agent("user-agent", "Answers questions about users.", [retriever]),
            Agent("math", "Routes math questions.", [], [basic, advanced]),
        ]


DESCRIBE = '{"action": "describe", "agent": "user-agent"}'
RETRIEVE = '{"action": "call", "agent": "user-agent", "tool": "user-retriever", "input": "User 1"}'
ADD = '{"action": "call", "agent": "math/basic", "tool": "add", "input": {"a": 1, "b": 2}}'
FINISH = '{"action": "finish", "answer": "User 1 was born in 2001."}'
ABORT = '{"action": "abort", "reason": "no tool knows"}'


def told(model: ScriptedModel) -> list[tuple[str, str]]:
    """What the model was asked last, behind the instructions."""
    return [(message.role, message.text) for message in model.last.messages[1:]]


def carried_out(*replies: object, desk: Desk | None = None, **options: object) -> tuple[TaskResult, ScriptedModel]:
    """What a task comes to whose model replies so, and the model."""
    model = ScriptedModel(*replies)  # type: ignore[arg-type]
    orchestrator = Orchestrator((desk or Desk()).agents, model=model, **options)  # type: ignore[arg-type]
    return orchestrator.execute_task("When was User 1 born?"), model
