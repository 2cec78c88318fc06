"""Tools: one ability each, told to the model in words, that takes a text or named fields and gives a text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from bigbrain.errors import ToolError, WiringError
from bigbrain.messages import JSON, ToolCall
from bigbrain.run import Run
from bigbrain.tools import LONGEST, NAME, TIMEOUT

Calls: TypeAlias = Callable[[JSON], str | Awaitable[str]]
"""An author's function for a tool, `def` or `async def`; whatever it raises is told to the model."""


@dataclass(frozen=True)
class Field:
    """One named field of a tool's input."""

    name: str
    description: str = ""
    required: bool = True
    schema: Mapping[str, JSON] = field(default_factory=dict, hash=False)
    """The JSON Schema of its values, for the model to read; empty for whatever `description` says."""

    def write(self) -> dict[str, JSON]:
        """The field as a model is told it."""
        written: dict[str, JSON] = {"name": self.name, "description": self.description, "required": self.required}
        return {**written, "schema": dict(self.schema)} if self.schema else written


@dataclass(frozen=True)
class Tool:
    """One ability of an agent. What is written here is what the model chooses and calls it by.

    Raises `WiringError` with everything that is wrong about it.
    """

    tag: str
    """What the model calls it by; no other tool of the same agent has it."""
    description: str
    """What it does, as an instruction."""
    input: str | Sequence[Field | Mapping[str, JSON]]
    """A sentence when `call` takes one text, else the fields of the object that it takes: `Field(…)`, or
    `{"name": …, "description": …, "required": …}`."""
    output: str
    """What it gives, as the model has to know it."""
    call: Calls
    """Called with the text, or with a dict of those fields that were given; must return text."""
    timeout: float = TIMEOUT
    """Seconds after which the model is told that a call takes too long."""
    longest: int = LONGEST
    """Characters of a result; the rest is cut off, and the model is told so."""
    call_within: Callable[[JSON, Run], str | Awaitable[str]] | None = None
    """Called in the place of `call` with the run of the task as well: what it spends and tells is part of the task."""

    def __post_init__(self) -> None:
        if not isinstance(self.input, str):
            # a list would make the tool change when its author changes it
            object.__setattr__(self, "input", tuple(_field(one, self.tag) for one in self.input))
        faults = tuple(_faults(self))
        if faults:
            raise WiringError(*faults)

    @property
    def fields(self) -> tuple[Field, ...] | None:
        """The fields of its input; None when it takes one text."""
        return None if isinstance(self.input, str) else tuple(one for one in self.input if isinstance(one, Field))

    def write(self) -> dict[str, JSON]:
        """The tool as a model is told it."""
        fields = self.fields
        taken: JSON = self.input if fields is None else [one.write() for one in fields]
        return {"tag": self.tag, "description": self.description, "input": taken, "output": self.output}

    def read(self, given: JSON) -> str | dict[str, JSON]:
        """What `call` takes, of what a model gave.

        Nothing, blanks and `null` are an object without fields; an object that comes as the text of its JSON is
        unwrapped once; fields that the tool does not have are left out. Raises `ToolError` naming what is wrong.
        """
        fields = self.fields
        if fields is None:
            return _text(self.tag, given)
        if not isinstance(given, dict):
            if given is not None and not isinstance(given, str):
                raise ToolError(f"the input of `{self.tag}` must be an object with {_names(fields)}")
            given = ToolCall("", self.tag, given or "").input
        missing = [one.name for one in fields if one.required and given.get(one.name) is None]
        if missing:
            raise ToolError(
                f"the input of `{self.tag}` lacks {', '.join(f'`{name}`' for name in missing)}; it takes {_names(fields)}"
            )
        return {
            one.name: given[one.name] for one in fields if given.get(one.name) is not None or _may_be_null(one, given)
        }


def _may_be_null(field: Field, given: Mapping[str, JSON]) -> bool:
    """Whether `null` was given for a field whose own schema says what it means; elsewhere it counts as missing."""
    return bool(field.schema) and field.name in given


def _text(tag: str, given: JSON) -> str:
    if not isinstance(given, str):
        raise ToolError(f"the input of `{tag}` must be one text, a JSON string")
    return given


def _names(fields: Sequence[Field]) -> str:
    return ", ".join(f"`{one.name}`" + ("" if one.required else " (may be left out)") for one in fields) or "no fields"


def _field(given: object, tag: str) -> Field:
    if isinstance(given, Field):
        return given
    known = {"name", "description", "required", "schema"}
    if not isinstance(given, Mapping) or "name" not in given or not known.issuperset(given):
        raise WiringError(
            f"tool `{tag}`: {given!r} is no field of its input; give `Field(name, description, required=…)`"
        )
    return Field(**given)


def _faults(tool: Tool) -> Iterator[str]:
    if not NAME.fullmatch(str(tool.tag)):
        yield f"tool `{tool.tag}`: a tag is 1 to 64 letters, digits, `_` and `-`"
    for name in ("description", "output"):
        if not isinstance(getattr(tool, name), str):
            yield f"tool `{tool.tag}`: its `{name}` is no text"
    names = [one.name for one in tool.fields or ()]
    if not all(names):
        yield f"tool `{tool.tag}`: a field of its input has no name"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"tool `{tool.tag}` has two fields `{name}`: the model could give only one; rename one"
    if not callable(tool.call):
        yield f"tool `{tool.tag}`: its `call` is {tool.call!r}; give a function that returns text"
    if not (tool.timeout > 0 and tool.longest > 0):
        yield f"tool `{tool.tag}`: `timeout` and `longest` must be above 0"
