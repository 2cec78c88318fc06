"""From tools and agents of a brain to tools of an orchestrator, and back.

What was converted knows what it was made of, so the way back gives the very same value.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec

from bigbrain import agents, tools
from bigbrain.agents import ActsAsAgent
from bigbrain.errors import ToolError, WiringError
from bigbrain.messages import JSON, Text, ToolCall, user
from bigbrain.models import Askable, Asks, Models, connect
from bigbrain.orchestrator.tools import Field, Tool
from bigbrain.rounds import write_result
from bigbrain.run import NoRounds, Run
from bigbrain.schemas import Shape
from bigbrain.schemas.kinds import Defs, Faults, Place
from bigbrain.settings import Settings
from bigbrain.tools import TIMEOUT
from bigbrain.turns import Turn

GIVES = "Gives: "
"""How a tool of a brain tells what it gives, in its description."""


def to_tool(tool: Tool) -> tools.Tool[..., object]:
    """The tool for `chat.resolve(tools=…)`: its input as a JSON Schema, its output told in the description."""
    if isinstance(tool.call, _BrainTool) and tool == tool.call.offered:
        return tool.call.tool
    description = "\n\n".join(filter(None, (tool.description, tool.output and GIVES + tool.output)))
    return tools.Tool(
        tool.tag,
        description,
        schema=Shape(_Input(tool), name=tool.tag),
        handler=_Offered(tool),
        timeout=tool.timeout,
        longest=tool.longest,
        as_value=True,
    )


def from_tool(tool: tools.Tool[..., object]) -> Tool:
    """A tool of a brain as one of an orchestrator: its parameters as fields, each with its JSON Schema.

    Its arguments are checked as ever. Raises `WiringError` for a bare tool, which has no function to call.
    """
    if tool.handler is None:
        raise WiringError(f"tool `{tool.name}` has no function: give it one with `bind`, so that it can be called")
    if isinstance(tool.handler, _Offered) and _alike(tool, to_tool(tool.handler.tool)):
        return tool.handler.tool
    return _BrainTool(tool).offered


def from_agent(
    agent: agents.Agent | ActsAsAgent,
    *,
    description: str,
    tag: str = "",
    output: str = "Its answer.",
    model: Askable | None = None,
    timeout: float = TIMEOUT,
) -> Tool:
    """An agent of a brain, or an orchestrator, as a tool: it is asked a text, and what it replies is the result.

    tag: by default the agent's name. model: what it asks, unless it names a model of its own. timeout: seconds for one
    call, all that it asks included. What it spends is spent by the task, which stops it too. It sees nothing of the task but the text that it is asked.
    Raises `WiringError` when it has no model and cannot do without one.
    """
    acting = agent if isinstance(agent, agents.Agent) else agent.as_agent()
    models = Models()
    if model is not None:
        models.add(model)
    found = models.ladder(acting.model)
    if found is None and (acting.plain or acting.needs_model):
        raise WiringError(f"agent `{acting.name}` has no model: give it one, or `from_agent(…, model=…)`")
    asked = _BrainAgent(acting, found, tag or acting.name)
    return Tool(
        asked.tag, description, "What it is asked, as one text.", output, asked, timeout, call_within=asked.within
    )


@dataclass(frozen=True)
class _Offered:
    """A tool of an orchestrator as the function of one of a brain."""

    tool: Tool

    def __call__(self, given: JSON) -> object:
        return self.tool.call(given)


@dataclass(frozen=True)
class _BrainTool:
    """A tool of a brain as the function of one of an orchestrator."""

    tool: tools.Tool[..., object]

    def __call__(self, given: JSON) -> str | Awaitable[str]:
        found = self.tool.run(ToolCall("", self.tool.name, msgspec.json.encode(given).decode()))
        return self._later(found) if inspect.isawaitable(found) else self._written(found)

    async def _later(self, found: Awaitable[object]) -> str:
        return self._written(await found)

    def _written(self, found: object) -> str:
        parts = write_result(found, self.tool.longest)
        if not all(isinstance(part, Text) for part in parts):
            raise ToolError(
                f"tool `{self.tool.name}` gave a picture or a file; an orchestrator's model reads text only"
            )
        return "".join(part.text for part in parts if isinstance(part, Text))

    @property
    def offered(self) -> Tool:
        of = self.tool
        return Tool(of.name, of.description, _fields(of.shape.schema), "Text, or JSON.", self, of.timeout, of.longest)


@dataclass(frozen=True)
class _BrainAgent:
    """An agent of a brain as the function of a tool."""

    agent: agents.Agent
    model: Askable | None
    tag: str

    def __call__(self, text: JSON) -> str:
        return self.within(text, Run())

    def within(self, text: JSON, run: Run) -> str:
        own = replace(run, path=f"{run.path}/{self.tag}", rounds=NoRounds())
        turn = Turn((user(text),), run=own, answer=None, last=False)
        chat = self.agent.chat(self._connected(), turn, own)
        try:
            self.agent.act(turn, chat)
            turn.close()
        finally:
            chat.close()
        run.scope.check()
        if any(message.calls for message in turn.made):
            raise ToolError(f"agent `{self.agent.name}` asks its client to call tools, which a tool cannot")
        return "\n\n".join(message.text for message in turn.made if message.text)

    def _connected(self) -> Asks | None:
        return None if self.model is None else connect(self.model, Settings.read())


@dataclass(frozen=True)
class _Input:
    """The input of a tool as a kind of value; see `bigbrain.schemas.kinds.Kind`."""

    tool: Tool
    made: ClassVar[tuple[type, ...]] = (dict, str)

    @property
    def accepts(self) -> frozenset[type]:
        return frozenset({str if self.tool.fields is None else dict})

    @property
    def wanted(self) -> str:
        return "a text" if self.tool.fields is None else "an object"

    def schema(self, _: Defs, /) -> dict[str, JSON]:
        fields = self.tool.fields
        if fields is None:
            return {"type": "string", "description": self.tool.input}
        properties = {one.name: _described(one.schema, one.description) for one in fields}
        required = [one.name for one in fields if one.required]
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    def read(self, value: JSON, place: Place, faults: Faults, /) -> JSON:
        try:
            return self.tool.read(value)
        except ToolError as exc:
            faults.add(place, str(exc))
            return None

    def write(self, value: JSON, /) -> JSON:
        return value


def _described(schema: Mapping[str, JSON], description: str) -> dict[str, JSON]:
    return {**schema, "description": description} if description else dict(schema)


def _fields(schema: Mapping[str, JSON]) -> tuple[Field, ...]:
    required = schema.get("required", ())
    return tuple(_field(name, one, name in required, schema) for name, one in schema.get("properties", {}).items())


def _field(name: str, schema: Mapping[str, JSON], required: bool, whole: Mapping[str, JSON]) -> Field:
    own = {key: value for key, value in schema.items() if key != "description"}
    if "$defs" in whole and "$ref" in str(own):
        own["$defs"] = whole["$defs"]
    return Field(name, schema.get("description", ""), required, own)


def _alike(one: tools.Tool[..., object], other: tools.Tool[..., object]) -> bool:
    names = ("name", "description", "timeout", "longest")
    return all(getattr(one, name) == getattr(other, name) for name in names)
