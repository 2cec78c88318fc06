"""The tree of agents: what is told of it, how one is found by its path, and what is wrong about a tree."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain.errors import ToolError, WiringError
from bigbrain.orchestrator import Agent, Orchestrator, Tool, resolve_agent_path
from tests.orchestrator.users import Desk

ROOTS = Desk().agents


def tool(tag: str) -> Tool:
    return Tool(tag, "d", "i", "o", str)


def test_an_agent_is_found_by_its_path() -> None:
    assert resolve_agent_path(ROOTS, "user-agent").name == "user-agent"
    assert resolve_agent_path(ROOTS, "math/basic").description == "Add, subtract, multiply."


@pytest.mark.parametrize("path", ["basic", "nobody", "math/nobody", "math/basic/more", "", "/math", "math/", "Math"])
def test_a_path_that_leads_nowhere_is_told(path: str) -> None:
    with pytest.raises(ToolError, match=f'No matching agent found for path "{path}"'):
        resolve_agent_path(ROOTS, path)


def test_the_bare_name_of_a_sub_agent_is_told_its_path() -> None:
    with pytest.raises(ToolError, match='did you mean "math/basic"'):
        resolve_agent_path(ROOTS, "basic")


def test_a_description_has_own_tools_in_full_and_sub_agents_by_name_only() -> None:
    assert resolve_agent_path(ROOTS, "math").write() == {
        "tools": [],
        "subAgents": [
            {"name": "basic", "description": "Add, subtract, multiply."},
            {"name": "advanced", "description": "Calculus."},
        ],
    }
    assert [one["tag"] for one in resolve_agent_path(ROOTS, "math/basic").write()["tools"]] == ["add"]


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (lambda: Agent("", "d"), "must not be empty"),
        (lambda: Agent(" a", "d"), "blanks"),
        (lambda: Agent("a/b", "d"), "take the `/` out"),
        (lambda: Agent("a", "d", [tool("t"), tool("t")]), "two tools `t`"),
        (lambda: Agent("a", "d", [], [Agent("b", "d"), Agent("b", "e")]), "two sub-agents `b`"),
        (lambda: Agent("a", "d", [str]), "is no tool"),  # type: ignore[list-item]
        (lambda: Agent("a", "d", [], ["b"]), "sub-agent 'b'"),  # type: ignore[list-item]
        (lambda: Orchestrator([Agent("a", "d"), Agent("a", "e")]), "the orchestrator has two agents `a`"),
        (lambda: Orchestrator([tool("t")]), "is no agent"),  # type: ignore[list-item]
    ],
)
def test_a_fault_is_found_when_the_tree_is_made(made: Any, fault: str) -> None:
    with pytest.raises(WiringError, match=fault):
        made()


def test_two_agents_may_have_tools_of_one_tag_and_two_parents_children_of_one_name() -> None:
    Orchestrator(
        [
            Agent("a", "d", [tool("t")], [Agent("read", "d")]),
            Agent("b", "d", [tool("t")], [Agent("read", "d")]),
        ]
    )


def test_an_agent_below_itself_is_found() -> None:
    below = Agent("below", "d")
    top = Agent("top", "d", [], [below])
    object.__setattr__(below, "sub_agents", (top,))  # what a subclass with lists of its own could come to

    with pytest.raises(WiringError, match="`top/below/top` is below itself"):
        Orchestrator([top])


def test_an_agent_does_not_change_with_the_lists_it_was_made_of() -> None:
    tools, below = [tool("t")], [Agent("b", "d")]
    made = Agent("a", "d", tools, below)
    tools.clear()
    below.clear()

    assert (len(made.tools), len(made.sub_agents)) == (1, 1)
