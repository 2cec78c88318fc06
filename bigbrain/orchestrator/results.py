"""What a task came to, and what its tools were asked and gave."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeAlias

from bigbrain.errors import BrainError
from bigbrain.messages import JSON, Usage

Status: TypeAlias = Literal["success", "error"]


@dataclass(frozen=True)
class ToolTrace:
    """One call of a tool during a task: its tag, what it was given, the text that it gave back."""

    tool: str
    input: str | dict[str, JSON]
    result: str
    agent: str = ""
    """The path of the agent whose tool it is, such as `math/basic`."""


@dataclass(frozen=True)
class TaskResult:
    """How a task ended. Look at `status` before `answer`: with `error` it is what went wrong, not an answer."""

    status: Status
    answer: str
    tool_traces: tuple[ToolTrace, ...] = ()
    """Every tool call of this task, in order; not those that were given to it as known."""
    _: KW_ONLY
    usage: Usage = field(default_factory=Usage)
    """Tokens of all the model's replies together; zeros where the model reports nothing."""
    steps: int = 0
    """How often the model was asked."""
    error: BrainError | None = field(default=None, repr=False, compare=False)
    """What the task failed with, for whoever wants to raise it or look at its class."""

    @property
    def ok(self) -> bool:
        """Whether `answer` is an answer."""
        return self.status == "success"
