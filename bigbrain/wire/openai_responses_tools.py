"""Tools of the Responses API, the choice among them, and the names by which they are called.

Tools stand flat here, or in a *namespace*, whose tools are called by their name and the
namespace's. The normal form knows no namespaces: such a tool goes by its own name, or by
`namespace__name` when that is taken, and notes where it came from. A tool that is neither a function
nor custom (a hosted search, a shell) keeps its whole form in `vendor`.
Source: OpenAI API reference, "Create a model response", `tools`; Codex 0.171 for namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bigbrain.errors import ToolError
from bigbrain.messages import JSON, ForcedTool, ToolCall, ToolChoice, ToolSpec
from bigbrain.wire.fields import read_as, wrong
from bigbrain.wire.openai_chat_asking import WORDS
from bigbrain.wire.openai_chat_requests import CHOICES
from bigbrain.wire.openai_content import NAME, noted, own

FREE_TEXT: dict[str, JSON] = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "the whole input of the tool, as it is"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""The arguments of a custom tool as a schema, for models of other dialects, which know no free text."""

DEEPEST = 8
"""Namespaces within each other that are looked into."""


class _Tool(msgspec.Struct, frozen=True):
    """A function or custom tool; `function` and `custom` are the forms of Chat Completions, which some clients send."""

    name: str
    type: str = "function"
    description: str | None = None
    parameters: dict[str, JSON] | None = None
    strict: bool | None = None


class _Namespace(msgspec.Struct, frozen=True):
    name: str
    tools: list[dict[str, JSON]]
    description: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    type: str = "function"
    name: str | None = None
    namespace: str | None = None
    server_label: str | None = None
    mode: str = "auto"
    tools: list[dict[str, JSON]] | None = None
    function: dict[str, JSON] | None = None


class Called(NamedTuple):
    """The name by which the wire calls a tool, and the namespace that it stands in, or ""."""

    name: str
    namespace: str


def read_tools(tools: Sequence[JSON], path: str, known: Sequence[ToolSpec] = ()) -> tuple[ToolSpec, ...]:
    """The tools in order, each under a name that no other has, also none of the `known` ones.

    Raises `WireError` naming the tool that is none.
    """
    taken = {tool.name for tool in known}
    read: list[ToolSpec] = []
    for place, tool in enumerate(tools):
        for spec in _read_tool(tool, f"{path}[{place}]", None):
            if spec.name in taken and (namespace := called(spec).namespace):
                note = {**own(spec.vendor), "name": spec.name}
                spec = msgspec.structs.replace(spec, name=f"{namespace}__{spec.name}", vendor={NAME: note})
            taken.add(spec.name)
            read.append(spec)
    return tuple(read)


def _read_tool(value: JSON, path: str, within: dict[str, JSON] | None, depth: int = 0) -> Iterator[ToolSpec]:
    if not isinstance(value, dict):
        raise wrong(path, "must be an object with a `type`")
    tool = _flat(value)
    kind = tool.get("type", "function")
    if kind == "namespace":
        yield from _read_namespace(tool, path, depth)
    elif kind == "function":
        read = read_as(tool, _Tool, path)
        rest = {k: v for k, v in tool.items() if k not in _Tool.__struct_fields__ and v is not None}
        note = {"type": "function", **rest, **_inside(within)} if rest or within else {}
        yield ToolSpec(read.name, read.description or "", read.parameters or {}, read.strict, noted(**note))
    elif kind == "custom":
        read = read_as(tool, _Tool, path)
        yield ToolSpec(read.name, read.description or "", FREE_TEXT, vendor={NAME: {**tool, **_inside(within)}})
    elif isinstance(kind, str):
        named = [tool[key] for key in ("name", "server_label") if isinstance(tool.get(key), str)]
        yield ToolSpec(named[0] if named else kind, vendor={NAME: {**tool, **_inside(within)}})
    else:
        raise wrong(f"{path}.type", "must be a string such as `function`")


def _flat(tool: dict[str, JSON]) -> dict[str, JSON]:
    """The tool with its fields beside `type`, where Chat Completions has them one level deeper."""
    kind = tool.get("type")
    inner = tool.get(kind) if kind in ("function", "custom") else None
    return {"type": kind, **inner} if isinstance(inner, dict) else tool


def _inside(namespace: dict[str, JSON] | None) -> dict[str, JSON]:
    return {"namespace": namespace} if namespace else {}


def _read_namespace(value: dict[str, JSON], path: str, depth: int) -> Iterator[ToolSpec]:
    if depth == DEEPEST:
        raise wrong(path, f"stands in more than {DEEPEST} namespaces; flatten them")
    read = read_as(value, _Namespace, path)
    about = {"name": read.name, "description": read.description or ""}
    for place, tool in enumerate(read.tools):
        yield from _read_tool(tool, f"{path}.tools[{place}]", about, depth + 1)


def called(tool: ToolSpec) -> Called:
    """How the wire calls a tool."""
    note = own(tool.vendor)
    namespace = note.get("namespace")
    name = note.get("name")
    inside = namespace["name"] if isinstance(namespace, dict) and isinstance(namespace.get("name"), str) else ""
    return Called(name if isinstance(name, str) and inside else tool.name, inside)


def calling(call: ToolCall, tools: Sequence[ToolSpec]) -> Called:
    """How the wire names what a call calls: as the call itself notes it, else as the tool of its name does."""
    namespace = own(call.vendor).get("namespace")
    if isinstance(namespace, str):
        return Called(call.name, namespace)
    return next((called(tool) for tool in tools if tool.name == call.name), Called(call.name, ""))


def free_text(call: ToolCall, tools: Sequence[ToolSpec]) -> str | None:
    """What a call gives a custom tool, also one of a model that knows only objects; None when it calls a function."""
    if own(call.vendor).get("type") == "custom":
        return call.arguments
    if not any(tool.name == call.name and own(tool.vendor).get("type") == "custom" for tool in tools):
        return None
    try:
        values = list(call.input.values())
    except ToolError:
        return call.arguments
    return values[0] if len(values) == 1 and isinstance(values[0], str) else call.arguments


def find(name: str, namespace: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """The tool that the wire calls so; without a namespace, one of any namespace when no other has the name."""
    same = [tool for tool in tools if called(tool).name == name]
    return next(
        (tool for tool in same if called(tool).namespace == namespace), None if namespace or not same else same[0]
    )


def read_choice(choice: JSON, tools: tuple[ToolSpec, ...]) -> tuple[tuple[ToolSpec, ...], ToolChoice]:
    """The tools that may be called, and the choice among them.

    Raises `WireError` when it names a tool that is not there.
    """
    if choice is None:
        return tools, "auto"
    if isinstance(choice, str):
        return tools, _read_word(choice, tools, "tool_choice")
    read = read_as(choice, _Choice, "tool_choice")
    if read.type != "allowed_tools":
        return tools, ForcedTool(_known(read, tools, "tool_choice").name)
    listed = read_as(read.tools or [], list[_Choice], "tool_choice.tools")
    allowed = {_known(one, tools, f"tool_choice.tools[{place}]").name for place, one in enumerate(listed)}
    tools = tuple(tool for tool in tools if tool.name in allowed)
    return tools, _read_word(read.mode, tools, "tool_choice.mode")


def _read_word(word: str, tools: Sequence[ToolSpec], path: str) -> ToolChoice:
    if word not in CHOICES:
        raise wrong(path, f"is {word!r}; use `auto`, `required`, `none` or name a tool")
    if word == "required" and not tools:
        raise wrong(path, "is `required`, but there are no tools; send `tools`")
    return CHOICES[word]


def _known(choice: _Choice, tools: Sequence[ToolSpec], path: str) -> ToolSpec:
    """The tool that a choice names, by its name or, where tools have none, by its type."""
    inner = (choice.function or {}).get("name")
    name = choice.name or choice.server_label or (inner if isinstance(inner, str) else "") or choice.type
    found = find(name, choice.namespace or "", tools)
    if found is None:
        raise wrong(path, f"names the tool {name!r}, which is not in `tools`")
    return found


def write_tools(tools: Sequence[ToolSpec]) -> list[JSON]:
    """The tools that this wire has a form for; those of one namespace stand in it together, where its first one stood."""
    written: list[JSON] = []
    namespaces: dict[str, list[JSON]] = {}
    for tool in tools:
        namespace = called(tool).namespace
        if _is_foreign(tool):
            continue
        if not namespace:
            written.append(_write_tool(tool))
            continue
        if namespace not in namespaces:
            about = own(tool.vendor)["namespace"]
            namespaces[namespace] = []
            written.append({"type": "namespace", **about, "tools": namespaces[namespace]})
        namespaces[namespace].append(_write_tool(tool))
    return written


def _is_foreign(tool: ToolSpec) -> bool:
    """Whether its form is only in another dialect's notes."""
    return bool(tool.vendor) and NAME not in tool.vendor and not tool.schema and not tool.description


def _write_tool(tool: ToolSpec) -> dict[str, JSON]:
    note = {k: v for k, v in own(tool.vendor).items() if k != "namespace"}
    kind = note.get("type", "function")
    if kind == "custom":
        return _write_custom(tool, note)
    if kind != "function":
        return note
    function: dict[str, JSON] = {**note, "type": "function", "name": called(tool).name}
    if tool.description:
        function["description"] = tool.description
    # both have to be there; without `strict`, a server of today takes it for true
    return {**function, "parameters": tool.schema or None, "strict": tool.strict}


def _write_custom(tool: ToolSpec, note: dict[str, JSON]) -> dict[str, JSON]:
    """A custom tool; Chat Completions, where it may have come from, has its grammar one level deeper."""
    flat = {**_flat(note), "name": called(tool).name}
    form = flat.get("format")
    grammar = form.get("grammar") if isinstance(form, dict) else None
    return {**flat, "format": {"type": "grammar", **grammar}} if isinstance(grammar, dict) else flat


def write_choice(choice: ToolChoice, tools: Sequence[ToolSpec]) -> JSON:
    """The choice among these tools; `auto` when it names one that is not among them."""
    if not isinstance(choice, ForcedTool):
        return WORDS[choice]
    chosen = next((tool for tool in tools if tool.name == choice.name and not _is_foreign(tool)), None)
    if chosen is None:
        return "auto"
    kind = own(chosen.vendor).get("type", "function")
    name, namespace = called(chosen)
    if kind not in ("function", "custom"):
        return {"type": kind}
    return {"type": kind, "name": name, **({"namespace": namespace} if namespace else {})}
