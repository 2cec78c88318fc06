"""A `Request` as the Chat Completions body that asks a server: always one that servers accept.

`max_tokens` goes as `max_completion_tokens`, which OpenAI's reasoning models insist on; a server
that only knows the old field gets it when `extra["openai"]` holds a `max_tokens`.

Lost, because the wire has no place for it: `top_k`; `think` as on, off or a budget, for which
models differ and most refuse a word they do not know; whether a result is an error; pictures and
files within a result, which follow in a message of the user; texts behind a refusal stand before
it; thinking that this dialect did not bring itself; tools that only another dialect knows.
Source: OpenAI API reference, "Create chat completion".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from bigbrain.messages import (
    JSON,
    AnswerSchema,
    ForcedTool,
    Message,
    Part,
    Request,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from bigbrain.wire.openai_chat_requests import CHOICES
from bigbrain.wire.openai_chat_thinking import write_given_back
from bigbrain.wire.openai_content import NAME, own, write_arguments, write_content
from bigbrain.wire.pairing import paired

EMPTY_RESULT = "empty"
"""What a result says that has nothing to say: some servers refuse an empty text."""

FAILED_RESULT = "failed"
"""The same for an error."""

WORDS = {choice: word for word, choice in CHOICES.items() if isinstance(choice, str)}
"""Our words for the choice of tools → OpenAI's."""


def write_request(request: Request) -> dict[str, JSON]:
    """The body that asks an OpenAI-compatible server."""
    extra = dict(own(request.extra))
    options = extra.pop("stream_options", None)
    if not extra.get("logprobs"):
        # the other OpenAI dialect has this one alone, and servers of this one refuse it so
        extra.pop("top_logprobs", None)
    # The tools say the same in the form that all servers know.
    extra.pop("functions", None)
    limit = "max_tokens" if "max_tokens" in extra else "max_completion_tokens"
    body = {
        **extra,
        "model": request.model,
        "messages": [one for message in paired(request.messages) for one in _write_message(message)],
        limit: extra.get("max_tokens") if request.max_tokens is None else request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) or None,
        "reasoning_effort": request.think if isinstance(request.think, str) else None,
        "response_format": request.schema and _write_schema(request.schema),
        "user": request.user or None,
        **_write_tools(request),
    }
    if request.stream:
        # Usage is only told to those who ask for it.
        body |= {
            "stream": True,
            "stream_options": {**(options if isinstance(options, dict) else {}), "include_usage": True},
        }
    return {name: value for name, value in body.items() if value is not None}


def _write_schema(asked: AnswerSchema) -> dict[str, JSON]:
    if asked.schema is None:
        return {"type": "json_object"}
    # OpenAI refuses other names.
    form: dict[str, JSON] = {"name": re.sub(r"[^A-Za-z0-9_-]", "_", asked.name)[:64] or "answer"}
    if asked.description:
        form["description"] = asked.description
    if asked.strict is not None:
        form["strict"] = asked.strict
    return {"type": "json_schema", "json_schema": {**form, "schema": asked.schema}}


def _write_tools(request: Request) -> dict[str, JSON]:
    """Tools and the choice among them; servers refuse a choice without tools."""
    tools = [tool for tool in request.tools if not _is_foreign(tool)]
    if not tools:
        return {}
    body: dict[str, JSON] = {"tools": [_write_tool(tool) for tool in tools]}
    if request.parallel_calls is not None:
        body["parallel_tool_calls"] = request.parallel_calls
    choice = request.tool_choice
    if not isinstance(choice, ForcedTool):
        return body if choice == "auto" else {**body, "tool_choice": WORDS[choice]}
    chosen = next((tool for tool in tools if tool.name == choice.name), None)
    if chosen is not None:
        kind = "custom" if own(chosen.vendor).get("type") == "custom" else "function"
        body["tool_choice"] = {"type": kind, kind: {"name": choice.name}}
    return body


def _is_foreign(tool: ToolSpec) -> bool:
    """Whether this wire has no form for it: a hosted tool, or one whose form is only in another dialect's notes."""
    if NAME in tool.vendor:
        return own(tool.vendor).get("type", "function") not in ("function", "custom")
    return bool(tool.vendor) and not tool.schema and not tool.description


def _write_tool(tool: ToolSpec) -> dict[str, JSON]:
    noted = own(tool.vendor)
    if noted.get("type") == "custom":
        return {"type": "custom", "custom": noted.get("custom") or _write_custom(noted)}
    function: dict[str, JSON] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _write_custom(noted: dict[str, JSON]) -> dict[str, JSON]:
    """A custom tool of the other OpenAI dialect, which writes the fields beside `type`, and those of a grammar too."""
    custom: dict[str, JSON] = {name: noted[name] for name in ("name", "description", "format") if name in noted}
    form = custom.get("format")
    if isinstance(form, dict) and form.get("type") == "grammar" and "grammar" not in form:
        custom["format"] = {"type": "grammar", "grammar": {k: v for k, v in form.items() if k != "type"}}
    return custom


def _write_message(message: Message) -> Iterator[dict[str, JSON]]:
    match message.role:
        case "system":
            if message.parts:
                yield {"role": "system", "content": write_content(message.parts)}
        case "user":
            yield {"role": "user", "content": write_content(message.parts)}
        case "assistant":
            yield _write_assistant(message)
        case "tool":
            yield from _write_results(message.results)
        case _:
            assert_never(message.role)


def _write_assistant(message: Message) -> dict[str, JSON]:
    texts = [part for part in message.parts if isinstance(part, Text)]
    content = write_content(part for part in texts if not part.refusal)
    refusal = "".join(part.text for part in texts if part.refusal)
    calls = [write_call(call, call.arguments if is_custom(call) else write_arguments(call)) for call in message.calls]
    written: dict[str, JSON] = {"role": "assistant", "content": content or (None if calls or refusal else "")}
    if refusal:
        written["refusal"] = refusal
    if calls:
        written["tool_calls"] = calls
    return {**written, **write_given_back(message.parts)}


def is_custom(call: ToolCall) -> bool:
    """Whether it calls a tool that takes free text."""
    return own(call.vendor).get("type") == "custom"


def write_call(call: ToolCall, arguments: str) -> dict[str, JSON]:
    """One call with these arguments: JSON text, or the free text of a custom tool."""
    if is_custom(call):
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _write_results(results: Sequence[ToolResult]) -> Iterator[dict[str, JSON]]:
    """One message per result; pictures and files, which only a user may send, in one behind them."""
    shown: list[Part] = []
    for result in results:
        texts = tuple(part for part in result.parts if isinstance(part, Text) and part.text)
        others = tuple(part for part in result.parts if not isinstance(part, Text))
        content = write_content(texts) or (FAILED_RESULT if result.is_error else EMPTY_RESULT)
        if others:
            shown += [Text(f"From the result of the call {result.call_id}:"), *others]
            content = write_content(texts) or "see the next message"
        yield {"role": "tool", "tool_call_id": result.call_id, "content": content}
    if shown:
        yield {"role": "user", "content": write_content(shown)}
