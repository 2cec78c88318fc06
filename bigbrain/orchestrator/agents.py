"""Agents: named bundles of tools, and of further agents below them, each found by its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bigbrain.errors import ToolError, WiringError
from bigbrain.messages import JSON
from bigbrain.orchestrator.tools import Tool

SHOWN = 20
"""How many names an error lists at most."""


@dataclass(frozen=True)
class Agent:
    """A theme with its tools. The model sees name and description; it asks for the rest when it needs it.

    name: how the model addresses it; below another agent, `parent/name`. sub_agents: finer themes, which the model
    sees only once it has asked about this one.
    Raises `WiringError` for a name that is empty or has a `/` or blanks at its ends, and for tools with the same tag
    or agents with the same name inside it.
    """

    name: str
    description: str
    tools: Sequence[Tool] = ()
    sub_agents: Sequence[Agent] = ()

    def __post_init__(self) -> None:
        # a list would make the agent change when its author changes it
        object.__setattr__(self, "tools", tuple(self.tools))
        object.__setattr__(self, "sub_agents", tuple(self.sub_agents))
        faults = tuple(_faults(self))
        if faults:
            raise WiringError(*faults)

    def tool(self, tag: str) -> Tool:
        """The tool with this tag. Raises `ToolError` naming those that there are."""
        for one in self.tools:
            if one.tag == tag:
                return one
        raise ToolError(f'agent "{self.name}" has no tool "{tag}"; {_there_are([one.tag for one in self.tools])}')

    def write(self) -> dict[str, JSON]:
        """What the model is told about it: its tools in full, its sub-agents by name and description only."""
        return {
            "tools": [one.write() for one in self.tools],
            "subAgents": [{"name": one.name, "description": one.description} for one in self.sub_agents],
        }


def resolve_agent_path(roots: Sequence[Agent], path: str) -> Agent:
    """The agent at a path such as `math/basic`, from the agents at the top.

    Raises `ToolError` with what there is instead.
    """
    level, found = roots, None
    for name in path.split("/"):
        found = next((one for one in level if one.name == name), None)
        if found is None:
            raise ToolError(f'No matching agent found for path "{path}"; {_instead(roots, path)}')
        level = found.sub_agents
    if found is None:
        raise ToolError(f'No matching agent found for path "{path}"; {_instead(roots, path)}')
    return found


def check_agents(roots: Sequence[Agent]) -> None:
    """Raises `WiringError` with every fault of the whole tree that its agents cannot see themselves."""
    given: Sequence[object] = roots
    for thing in given:
        if not isinstance(thing, Agent):
            raise WiringError(f"{thing!r} is no agent of an orchestrator; give `bigbrain.orchestrator.Agent`s")
    cycle = next((cycle for one in roots for cycle in _cycles(one, ())), None)
    if cycle is not None:
        raise WiringError(f"agent `{cycle}` is below itself: the model could go down for ever; take it out there")
    faults = tuple(_twice("the orchestrator", "agents", [one.name for one in roots]))
    if faults:
        raise WiringError(*faults)


def paths(roots: Sequence[Agent], above: str = "") -> Iterator[str]:
    """The paths of all agents, each before those below it."""
    for one in roots:
        yield above + one.name
        yield from paths(one.sub_agents, f"{above}{one.name}/")


def outline(roots: Sequence[Agent], above: str = "") -> Iterator[str]:
    """A line for each agent with its path and the tags of its tools."""
    for one in roots:
        path = above + one.name
        yield f"{path}: {', '.join(tool.tag for tool in one.tools)}" if one.tools else path
        yield from outline(one.sub_agents, f"{path}/")


def _cycles(agent: Agent, above: tuple[Agent, ...]) -> Iterator[str]:
    if any(one is agent for one in above):
        yield "/".join(one.name for one in (*above, agent))
        return
    for one in agent.sub_agents:
        yield from _cycles(one, (*above, agent))


def _faults(agent: Agent) -> Iterator[str]:
    if not agent.name or agent.name != agent.name.strip():
        yield f"`{agent.name}` is no name for an agent: it must not be empty nor begin or end with blanks"
    elif "/" in agent.name:
        yield f"agent `{agent.name}`: paths are made of names with `/` between them; take the `/` out of the name"
    who = f"agent `{agent.name}`"
    tools: Sequence[object] = agent.tools
    below: Sequence[object] = agent.sub_agents
    for tool in tools:
        if not isinstance(tool, Tool):
            yield f"{who}: {tool!r} is no tool of an orchestrator; give `bigbrain.orchestrator.Tool`, or `from_tool(…)`"
    for one in below:
        if not isinstance(one, Agent):
            yield f"{who}: its sub-agent {one!r} is none; give `bigbrain.orchestrator.Agent`s"
    yield from _twice(who, "tools", [tool.tag for tool in tools if isinstance(tool, Tool)])
    yield from _twice(who, "sub-agents", [one.name for one in below if isinstance(one, Agent)])


def _twice(who: str, what: str, names: Sequence[str]) -> Iterator[str]:
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{who} has two {what} `{name}`: the model could not tell them apart; rename one"


def _instead(roots: Sequence[Agent], path: str) -> str:
    known = list(paths(roots))
    meant = [one for one in known if one.rpartition("/")[2] == path.rpartition("/")[2]]
    return f"did you mean {_list(meant)}?" if meant else _there_are([one.name for one in roots])


def _there_are(names: Sequence[str]) -> str:
    return f"there are {_list(names)}" if names else "there are none"


def _list(names: Sequence[str]) -> str:
    more = ["…"] if len(names) > SHOWN else []
    return ", ".join([f'"{name}"' for name in names[:SHOWN]] + more)
