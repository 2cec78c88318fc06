"""What a model may do in a reply: four actions, in their form of today and in the older ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bigbrain.errors import SchemaError
from bigbrain.messages import JSON
from bigbrain.orchestrator.extracting import actions_in
from bigbrain.schemas.kinds import shown


@dataclass(frozen=True)
class Describe:
    """Asks for the tools and sub-agents of the agent at a path."""

    agent: str


@dataclass(frozen=True)
class Call:
    """Calls a tool of the agent at a path; `input` as the model gave it."""

    agent: str
    tool: str
    input: JSON


@dataclass(frozen=True)
class Finish:
    """Ends the task with its answer."""

    answer: str


@dataclass(frozen=True)
class Abort:
    """Gives the task up."""

    reason: str


Action: TypeAlias = Describe | Call | Finish | Abort

ACTIONS = ("describe", "call", "finish", "abort")


@dataclass(frozen=True)
class Plan:
    """What one reply comes to: how the task ends, or what is done before the model is asked again.

    early: an end that stood behind calls. It was written without their results, so it does not count.
    """

    todo: tuple[Describe | Call, ...] = ()
    end: Finish | Abort | None = None
    early: bool = False


def read_reply(text: str) -> Plan:
    """What a reply says is to be done.

    An end that stands first ends the task, and nothing behind it is looked at. Raises `SchemaError`, for the model to
    read, when anything of the rest is outside the protocol: then nothing of it is to be done.
    """
    todo: list[Describe | Call] = []
    for value in actions_in(text):
        action = read_action(value)
        if isinstance(action, Describe | Call):
            todo.append(action)
        elif not todo:
            return Plan(end=action)
        else:
            return Plan(tuple(todo), early=True)
    if not todo:
        raise SchemaError(f"no object in the reply has an `action`; it is one of {_names()}")
    return Plan(tuple(todo))


def read_action(value: dict[str, JSON]) -> Action:
    """The action that an object stands for. Raises `SchemaError` naming the field that is wrong."""
    if "action" not in value:
        return _older(value)
    name = value["action"]
    match name.strip().lower() if isinstance(name, str) else name:
        case "describe":
            return Describe(_word(value, "agent", "describe"))
        case "call":
            return Call(_word(value, "agent", "call"), _word(value, "tool", "call"), value.get("input"))
        case "finish":
            return Finish(_text(value, "answer", "finish"))
        case "abort":
            return Abort(_text(value, "reason", "abort"))
        case _:
            raise SchemaError(f"`action` is {shown(name)}; it must be one of {_names()}")


def _older(value: dict[str, JSON]) -> Action:
    """The forms without an `action`."""
    tool = _word(value, "tool", "call")
    if not value.get("agent"):
        if tool == "finished":
            return Finish(_text(value, "input", "finish"))
        if tool == "none":
            return Abort(_text(value, "input", "abort"))
    return Call(_word(value, "agent", "call"), tool, value.get("input"))


def _word(value: dict[str, JSON], field: str, action: str) -> str:
    found = _text(value, field, action).strip()
    if not found:
        raise SchemaError(f"`{field}` of the action `{action}` is empty")
    return found


def _text(value: dict[str, JSON], field: str, action: str) -> str:
    if field not in value:
        raise SchemaError(f"the action `{action}` has no `{field}`; it must be a string")
    found = value[field]
    if not isinstance(found, str):
        raise SchemaError(f"`{field}` of the action `{action}` is {shown(found)}; it must be a string")
    return found


def _names() -> str:
    return ", ".join(f'"{name}"' for name in ACTIONS)
