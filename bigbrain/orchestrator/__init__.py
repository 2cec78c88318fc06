"""The second way to write an agent: a model that finds its way through agents and their tools by a strict protocol.

    from bigbrain.orchestrator import Agent, Orchestrator, Tool

    born = Tool("birth-year", "Tell when a user was born.", "The user's name.", "A year.", lambda name: years[name])
    desk = Orchestrator([Agent("user-agent", "Knows the users.", [born])], model="gpt-4o")
    result = desk.execute_task("When was User 1 born?", on_token=lambda piece: print(piece, end=""))

`Flow(desk)` serves it as a model. `Tool` and `Agent` here are not those of `bigbrain`, which is why
they stay under this name; `to_tool`, `from_tool` and `from_agent` lead from one kind to the other.
"""

from __future__ import annotations

from bigbrain.orchestrator.agents import Agent as Agent
from bigbrain.orchestrator.agents import resolve_agent_path as resolve_agent_path
from bigbrain.orchestrator.backends import Backend as Backend
from bigbrain.orchestrator.backends import Conversation as Conversation
from bigbrain.orchestrator.backends import Said as Said
from bigbrain.orchestrator.cancellation import Cancellation as Cancellation
from bigbrain.orchestrator.converting import from_agent as from_agent
from bigbrain.orchestrator.converting import from_tool as from_tool
from bigbrain.orchestrator.converting import to_tool as to_tool
from bigbrain.orchestrator.extracting import extract_json as extract_json
from bigbrain.orchestrator.options import Options as Options
from bigbrain.orchestrator.orchestrator import Orchestrator as Orchestrator
from bigbrain.orchestrator.results import TaskResult as TaskResult
from bigbrain.orchestrator.results import ToolTrace as ToolTrace
from bigbrain.orchestrator.tools import Field as Field
from bigbrain.orchestrator.tools import Tool as Tool
