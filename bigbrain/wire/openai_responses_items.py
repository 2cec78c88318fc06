"""Items of the Responses API ⇄ messages: `input` of a request, and the `output` that comes back in the next one.

What a model said stands in several items in a row (messages, reasoning, calls) that are one message
of ours. Summaries of one reasoning item are neighbouring `Thinking` parts with the item's id in
`vendor`. An item of a kind that the normal form does not know (a hosted tool's call or result, a
compaction) is an empty `Thinking` that only this dialect opens: it goes back as it came.
Source: OpenAI API reference, "Create a model response", `input`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence

import msgspec

from bigbrain.messages import (
    JSON,
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Vendor,
)
from bigbrain.wire.fields import read_as, wrong
from bigbrain.wire.openai_content import NAME, noted, own, read_arguments
from bigbrain.wire.openai_responses_content import read_content
from bigbrain.wire.openai_responses_tools import find

SEALED = "bigbrain.1:"
"""How the `encrypted_content` begins in which other dialects' notes on a thought go to a client and come back."""

CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""A call that is one of ours → its result."""

REFERENCE = "item_reference"
"""The item that names another one, which a server has stored."""


class _Kind(msgspec.Struct, frozen=True):
    """What tells the items apart; easy messages have no type."""

    type: str | None = None
    role: str | None = None


class _Said(msgspec.Struct, frozen=True):
    role: str
    content: JSON = None
    phase: str | None = None


class _Call(msgspec.Struct, frozen=True):
    call_id: str
    name: str
    arguments: str | dict[str, JSON] | None = None
    input: str = ""
    namespace: str | None = None


class _Output(msgspec.Struct, frozen=True):
    call_id: str
    output: JSON = None


class _Summary(msgspec.Struct, frozen=True):
    text: str = ""


class _Reasoning(msgspec.Struct, frozen=True):
    id: str | None = None
    summary: list[_Summary] | None = None
    content: list[_Summary] | None = None
    encrypted_content: str | None = None


def kind_of(item: JSON, path: str) -> str:
    """An item's type, also of one that leaves it out. Raises `WireError` when it is no item."""
    if not isinstance(item, dict):
        raise wrong(path, "must be an object: an item with a `type`, or a message with a `role`")
    kind = read_as(item, _Kind, path)
    if kind.type or not (kind.role or "call_id" in item):
        return kind.type or ""
    if kind.role:
        return "message"
    return "function_call_output" if "output" in item else "function_call"


class Conversation:
    """Messages that are read item by item."""

    def __init__(self, tools: Sequence[ToolSpec], *, begun: bool) -> None:
        """tools: those that may have been called. begun: an earlier part of the conversation is elsewhere."""
        self._tools = tools
        self._begun = begun
        self._calls: set[str] = set()
        self.messages: list[Message] = []

    def add(self, item: JSON, path: str) -> None:
        """One more item. Raises `WireError` when it is none, or answers a call that nobody made."""
        kind = kind_of(item, path)
        if kind == "message" and isinstance(item, dict) and item.get("role") != "assistant":
            self.messages.append(_read_asked(item, path))
        elif kind in CALLS.values():
            self._add("tool", (self._read_result(item, path),))
        else:
            parts = tuple(read_item(item, path, self._tools))
            self._calls.update(part.id for part in parts if isinstance(part, ToolCall))
            # a silent assistant stays: without it two questions would be one
            if parts or kind == "message":
                self._add("assistant", parts)

    def _add(self, role: str, parts: tuple[Part, ...]) -> None:
        before = self.messages.pop().parts if self.messages and self.messages[-1].role == role else ()
        self.messages.append(Message("tool" if role == "tool" else "assistant", (*before, *parts)))

    def _read_result(self, item: JSON, path: str) -> ToolResult:
        read = read_as(item, _Output, path)
        if read.call_id not in self._calls and not self._begun:
            raise wrong(
                f"{path}.call_id", f"is {read.call_id!r}, which no earlier call has; send the call in `input` too"
            )
        if isinstance(read.output, (str, list, type(None))):
            parts = read_content(read.output, f"{path}.output")
        else:
            parts = (Text(read_arguments(read.output)),)
        return ToolResult(read.call_id, tuple(part for part in parts if isinstance(part, Text | Image | File)))


def _read_asked(item: dict[str, JSON], path: str) -> Message:
    """What was not said by the model."""
    read = read_as(item, _Said, path)
    parts = read_content(read.content, f"{path}.content")
    match read.role:
        case "user":
            return Message("user", parts)
        case "system" | "developer":
            return Message("system", parts)
        case role:
            raise wrong(f"{path}.role", f"is {role!r}; use `user`, `assistant`, `system` or `developer`")


def read_item(item: JSON, path: str, tools: Sequence[ToolSpec]) -> Iterator[Part]:
    """The parts of an item that a model made. Raises `WireError` when it is none."""
    match kind_of(item, path):
        case "message":
            said = read_as(item, _Said, path)
            yield from read_content(said.content, f"{path}.content", said.phase)
        case "function_call" | "custom_tool_call" as kind:
            yield _read_call(item, kind, path, tools)
        case "reasoning":
            yield from _read_reasoning(read_as(item, _Reasoning, path))
        case "":
            raise wrong(f"{path}.type", "is missing; say what the item is")
        case _:
            yield Thinking(vendor={NAME: {"item": item}})


def _read_call(item: JSON, kind: str, path: str, tools: Sequence[ToolSpec]) -> ToolCall:
    call = read_as(item, _Call, path)
    spec = find(call.name, call.namespace or "", tools) if call.namespace else None
    name = spec.name if spec else call.name
    # a name that the tools explain needs no note of where it came from
    namespace = None if spec else call.namespace
    if kind == "custom_tool_call":
        return ToolCall(call.call_id, name, call.input, noted(type="custom", namespace=namespace))
    return ToolCall(call.call_id, name, read_arguments(call.arguments), noted(namespace=namespace))


def _read_reasoning(item: _Reasoning) -> Iterator[Part]:
    """One thought for each summary and each text; what is sealed stands in the last."""
    unsealed = unseal(item.encrypted_content)
    texts = [(each.text, "") for each in item.summary or ()]
    texts += [(each.text, "reasoning_text") for each in item.content or ()]
    for place, (text, form) in enumerate(texts or [("", "")], 1):
        last = place == max(1, len(texts))
        sealed = item.encrypted_content if last and unsealed is None else None
        note = noted(id=item.id, form=form or None, encrypted_content=sealed)
        yield Thinking(text, note if unsealed is None or not last else {**note, **unsealed})


def seal(vendor: Vendor) -> str:
    """Notes of any dialect as a text that a client keeps for us unread."""
    return SEALED + base64.urlsafe_b64encode(msgspec.json.encode(vendor)).decode()


def unseal(text: str | None) -> Vendor | None:
    """The notes that were sealed; None for what is not from us."""
    if text is None or not text.startswith(SEALED):
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text.removeprefix(SEALED)), type=dict[str, JSON])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None


def custom_ids(messages: Sequence[Message]) -> frozenset[str]:
    """The ids of calls to custom tools: their results have a type of their own."""
    return frozenset(
        call.id for message in messages for call in message.calls if own(call.vendor).get("type") == "custom"
    )
