"""Runs what a reply asks for, one action at a time; whatever goes wrong with one is its result."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeAlias

from bigbrain import tools
from bigbrain.errors import ToolError
from bigbrain.messages import JSON, Text, ToolCall, ToolResult
from bigbrain.orchestrator.actions import Call, Describe
from bigbrain.orchestrator.agents import Agent, resolve_agent_path
from bigbrain.orchestrator.prompting import description
from bigbrain.orchestrator.tools import Tool
from bigbrain.rounds import answer
from bigbrain.run import Run

Input: TypeAlias = str | dict[str, JSON]


@dataclass(frozen=True)
class Done:
    """What came of one action. `fault` is what only the author can mend, so that it makes no sense to go on."""

    result: ToolResult
    called: bool = False
    """Whether a tool was called."""
    fault: ToolError | None = None


def carry_out(action: Describe | Call, agents: tuple[Agent, ...], run: Run) -> Done:
    """Describes an agent or calls a tool. Raises what the run's scope is cancelled with."""
    try:
        if isinstance(action, Describe):
            return Done(ToolResult("", (Text(description(resolve_agent_path(agents, action.agent))),)))
        tool, given = _tool_of(action, agents)
    except ToolError as exc:
        return Done(ToolResult("", (Text(str(exc)),), is_error=True))
    call = _ToolCall(tool, given, run)
    path = f"{action.agent}/{tool.tag}"
    message = answer((ToolCall("", path),), {path: call.runnable}, run)
    return Done(message.results[0], called=True, fault=call.fault)


def given_to(action: Call, agents: tuple[Agent, ...]) -> Input | None:
    """What the tool of a call is given; None when there is no such tool, or not for this input."""
    try:
        return _tool_of(action, agents)[1]
    except ToolError:
        return None


def _tool_of(action: Call, agents: tuple[Agent, ...]) -> tuple[Tool, Input]:
    tool = resolve_agent_path(agents, action.agent).tool(action.tool)
    return tool, tool.read(action.input)


class _ToolCall:
    """One call, as a tool without arguments: `bigbrain.rounds` runs it within its time, and tells of it."""

    def __init__(self, tool: Tool, given: Input, run: Run) -> None:
        self._tool = tool
        self._given = given
        self._run = run
        self.fault: ToolError | None = None

    @property
    def runnable(self) -> tools.Tool[[], object]:
        return tools.Tool(self._tool.tag, handler=self._do, timeout=self._tool.timeout, longest=self._tool.longest)

    def _do(self) -> object:
        within = self._tool.call_within
        given = self._tool.call(self._given) if within is None else within(self._given, self._run)
        return self._awaited(given) if inspect.isawaitable(given) else self._text(given)

    async def _awaited(self, given: Awaitable[str]) -> str:
        return self._text(await given)

    def _text(self, given: str) -> str:
        if isinstance(given, str):
            return given
        self.fault = ToolError(
            f"tool `{self._tool.tag}` gave a `{type(given).__name__}`: a tool must return text, such as `json.dumps(…)`"
        )
        raise self.fault
