"""A Chat Completions request as a `Request`, in every form that clients send, also the deprecated ones.

Source: OpenAI API reference, "Create chat completion". Writing one is in `openai_chat_asking`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from bigbrain.messages import (
    JSON,
    AnswerSchema,
    File,
    ForcedTool,
    Image,
    Message,
    Part,
    Request,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from bigbrain.wire.fields import read_as, unsupported, wrong
from bigbrain.wire.openai_chat_thinking import read_thinking
from bigbrain.wire.openai_content import NAME, Content, noted, read_arguments, read_content
from bigbrain.wire.openai_content import meaningful as without_blanks
from bigbrain.wire.openai_effort import read_effort

CHOICES: dict[str, ToolChoice] = {"auto": "auto", "required": "any", "none": "none"}
"""OpenAI's words for the choice of tools → ours."""


class Called(msgspec.Struct, frozen=True):
    """The name and arguments of a call; some servers write the arguments as an object."""

    name: str
    arguments: str | dict[str, JSON] | None = None


class CalledCustom(msgspec.Struct, frozen=True):
    """The call of a tool that takes free text."""

    name: str
    input: str = ""


class Call(msgspec.Struct, frozen=True):
    """A call in a whole message."""

    id: str | None = None
    function: Called | None = None
    custom: CalledCustom | None = None


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: Content = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: JSON = None
    reasoning_details: JSON = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: Called | None = None
    name: str | None = None


class _Function(msgspec.Struct, frozen=True):
    name: str
    description: str | None = None
    parameters: dict[str, JSON] | None = None
    strict: bool | None = None


class _Custom(msgspec.Struct, frozen=True):
    name: str
    description: str | None = None


class _Tool(msgspec.Struct, frozen=True):
    type: str = "function"
    function: _Function | None = None
    custom: _Custom | None = None


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Allowed(msgspec.Struct, frozen=True):
    tools: list[_Choice]
    mode: str = "auto"


class _Choice(msgspec.Struct, frozen=True):
    """A tool choice by name; `name` alone is the deprecated `function_call`."""

    function: _Named | None = None
    custom: _Named | None = None
    allowed_tools: _Allowed | None = None
    name: str | None = None

    @property
    def chosen(self) -> str | None:
        named = self.function or self.custom
        return named.name if named else self.name


class _Schema(msgspec.Struct, frozen=True):
    name: str = "answer"
    schema: dict[str, JSON] | None = None
    strict: bool | None = None
    description: str | None = None


class _Format(msgspec.Struct, frozen=True):
    type: str
    json_schema: _Schema | None = None


_Limit = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""A count of tokens or answers; the end keeps it an integer for every JSON reader behind us."""


class _Body(msgspec.Struct, frozen=True):
    messages: list[_Message]
    model: str | None = None
    tools: list[_Tool] | None = None
    tool_choice: str | _Choice | None = None
    functions: list[_Function] | None = None
    function_call: str | _Choice | None = None
    parallel_tool_calls: bool | None = None
    response_format: _Format | None = None
    stream: bool | None = None
    max_completion_tokens: _Limit | None = None
    max_tokens: _Limit | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: str | list[str] | None = None
    reasoning_effort: str | None = None
    safety_identifier: str | None = None
    user: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    """Fields that are checked and yet kept verbatim in `extra`."""

    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    stream_options: dict[str, JSON] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    modalities: list[str] | None = None
    audio: JSON = None
    metadata: dict[str, JSON] | None = None
    service_tier: str | None = None


_KNOWN = frozenset(_Body.__struct_fields__) - {"functions"}
"""Fields that have a place in the normal form; that the tools came as `functions` decides how calls are told."""


def read_request(body: JSON) -> Request:
    """A request of any client in normal form; all fields that have no place in it are in `extra["openai"]`.

    Raises `WireError` that names the field, when one is missing, ill-typed or impossible.
    """
    read = read_as(body, _Body)
    if not read.messages:
        raise wrong("messages", "is empty; send at least one message")
    _refuse_the_impossible(read_as(body, _Kept), read)
    tools, choice = _read_choice(read, _read_tools(read, body))
    extra = {name: value for name, value in body.items() if name not in _KNOWN and value is not None}
    return Request(
        model=read.model or "",
        messages=_read_messages(read.messages),
        tools=tools,
        tool_choice=choice,
        parallel_calls=False if read.functions and not read.tools else read.parallel_tool_calls,
        schema=_read_format(read.response_format),
        stream=read.stream or False,
        max_tokens=read.max_completion_tokens or read.max_tokens,
        temperature=read.temperature,
        top_p=read.top_p,
        stop=_read_stop(read.stop),
        think=read_effort(read.reasoning_effort, "reasoning_effort"),
        user=read.user or read.safety_identifier or "",
        extra={NAME: extra} if extra else {},
    )


def _refuse_the_impossible(kept: _Kept, read: _Body) -> None:
    if kept.stream_options and not read.stream:
        raise wrong("stream_options", "is only for streams; send `stream: true` with it, or leave it out")
    if kept.top_logprobs is not None and not kept.logprobs:
        raise wrong("top_logprobs", "needs `logprobs: true`")
    if kept.audio is not None or "audio" in (kept.modalities or ()):
        raise unsupported(
            "audio" if kept.audio is not None else "modalities", "asks for sound; a brain answers in text"
        )


def _read_stop(stop: str | list[str] | None) -> tuple[str, ...]:
    """An empty stop text would stop everything and is passed over."""
    return tuple(text for text in ([stop] if isinstance(stop, str) else stop or ()) if text)


def _read_format(form: _Format | None) -> AnswerSchema | None:
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return AnswerSchema()
    if form.type != "json_schema":
        raise wrong("response_format.type", f"is {form.type!r}; use `text`, `json_object` or `json_schema`")
    asked = form.json_schema
    if asked is None:
        raise wrong("response_format.json_schema", "is missing; give `name` and `schema`")
    return AnswerSchema(asked.name, asked.schema, asked.strict, asked.description or "")


def _read_tools(read: _Body, body: dict[str, JSON]) -> tuple[ToolSpec, ...]:
    """Tools in order; one that is no function keeps its whole form in `vendor`."""
    tools = []
    for place, tool in enumerate(read.tools or ()):
        if tool.function is not None:
            tools.append(_read_function(tool.function))
        elif tool.custom is not None:
            verbatim = {NAME: body["tools"][place]}
            tools.append(ToolSpec(tool.custom.name, tool.custom.description or "", vendor=verbatim))
        else:
            raise wrong(f"tools[{place}]", f"of type {tool.type!r} is not known; give a `function` or a `custom` tool")
    return (*tools, *map(_read_function, read.functions or ()))


def _read_function(function: _Function) -> ToolSpec:
    return ToolSpec(function.name, function.description or "", function.parameters or {}, function.strict)


def _read_choice(read: _Body, tools: tuple[ToolSpec, ...]) -> tuple[tuple[ToolSpec, ...], ToolChoice]:
    """The tools that may be called, and the choice among them."""
    path, choice = "tool_choice", read.tool_choice
    if choice is None:
        path, choice = "function_call", read.function_call
    if choice is None:
        return tools, "auto"
    if isinstance(choice, str):
        return tools, _read_word(choice, tools, path)
    if choice.allowed_tools is not None:
        path = f"{path}.allowed_tools"
        allowed = {_known(one.chosen, tools, f"{path}.tools[{n}]") for n, one in enumerate(choice.allowed_tools.tools)}
        tools = tuple(tool for tool in tools if tool.name in allowed)
        return tools, _read_word(choice.allowed_tools.mode, tools, f"{path}.mode")
    return tools, ForcedTool(_known(choice.chosen, tools, path))


def _read_word(word: str, tools: Sequence[ToolSpec], path: str) -> ToolChoice:
    if word not in CHOICES:
        raise wrong(path, f"is {word!r}; use `auto`, `required`, `none` or name a tool")
    if word == "required" and not tools:
        raise wrong(path, "is `required`, but there are no tools; send `tools`")
    return CHOICES[word]


def _known(name: str | None, tools: Sequence[ToolSpec], path: str) -> str:
    if name is None:
        raise wrong(path, "names no tool; give `function.name`")
    if all(tool.name != name for tool in tools):
        raise wrong(path, f"names the tool {name!r}, which is not in `tools`")
    return name


def _read_messages(messages: Sequence[_Message]) -> tuple[Message, ...]:
    """The conversation, one message of role `tool` per round."""
    told: list[Message] = []
    calls: list[ToolCall] = []
    for place, message in enumerate(messages):
        path = f"messages[{place}]"
        match message.role:
            case "system" | "developer":
                told.append(Message("system", read_content(message.content, f"{path}.content")))
            case "user":
                told.append(Message("user", read_content(message.content, f"{path}.content")))
            case "assistant":
                told.append(Message("assistant", without_blanks(tuple(_read_assistant(message, path)))))
                calls.extend(told[-1].calls)
            case "tool" | "function":
                before = told.pop().parts if told and told[-1].role == "tool" else ()
                told.append(Message("tool", (*before, _read_result(message, calls, path))))
            case role:
                raise wrong(f"{path}.role", f"is {role!r}; use `system`, `developer`, `user`, `assistant` or `tool`")
    return tuple(told)


def _read_assistant(message: _Message, path: str) -> Iterator[Part]:
    field = "reasoning_content" if message.reasoning_content else "reasoning"
    yield from read_thinking(message.reasoning_content or message.reasoning, field, message.reasoning_details)
    yield from read_content(message.content, f"{path}.content")
    if message.refusal:
        yield Text(message.refusal, refusal=True)
    for place, call in enumerate(message.tool_calls or ()):
        yield read_call(call, f"{path}.tool_calls[{place}]")
    if message.function_call is not None:
        called = message.function_call
        yield ToolCall(f"call_{called.name}", called.name, read_arguments(called.arguments))


def read_call(call: Call, path: str) -> ToolCall:
    """One call of a whole message; the free text of a custom tool stands in `arguments` as it is.

    Raises `WireError` when it has no id or calls nothing.
    """
    if not call.id:
        raise wrong(f"{path}.id", "is missing; give the id that the call came with")
    if call.function is not None:
        return ToolCall(call.id, call.function.name, read_arguments(call.function.arguments))
    if call.custom is not None:
        return ToolCall(call.id, call.custom.name, call.custom.input, noted(type="custom"))
    raise wrong(f"{path}.function", "is missing; give its name and arguments")


def _read_result(message: _Message, calls: Sequence[ToolCall], path: str) -> ToolResult:
    """The deprecated role `function` names the function and not the call: the last call of it is meant."""
    content = read_content(message.content, f"{path}.content")
    parts = tuple(part for part in content if isinstance(part, Text | Image | File))
    if message.role == "function":
        known, given, field = {call.name: call.id for call in calls}, message.name, "name"
    else:
        known, given, field = {call.id: call.id for call in calls}, message.tool_call_id, "tool_call_id"
    if not given:
        raise wrong(f"{path}.{field}", "is missing; give the one of the call that this answers")
    if given not in known:
        raise wrong(f"{path}.{field}", f"is {given!r}, which no earlier call has; send the call in the history too")
    return ToolResult(known[given], parts)
