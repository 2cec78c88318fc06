"""A `Request` as the body that asks a server of the Responses API.

Lost, because the wire has no place for it: `stop` and `top_k`; `think` as on, off or a budget;
whether a result is an error; thoughts that no model of this wire sealed or told raw; tools that only
another dialect knows.
Source: OpenAI API reference, "Create a model response".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from bigbrain.messages import JSON, Message, Part, Request, Text, Thinking, ToolCall, ToolResult, ToolSpec
from bigbrain.wire.openai_chat_asking import EMPTY_RESULT, FAILED_RESULT, is_custom
from bigbrain.wire.openai_content import own, write_arguments
from bigbrain.wire.openai_responses_content import write_asked
from bigbrain.wire.openai_responses_items import CALLS, custom_ids
from bigbrain.wire.openai_responses_output import Item, is_raw, items_of
from bigbrain.wire.openai_responses_tools import calling, write_choice, write_tools
from bigbrain.wire.pairing import paired

LOGPROBS = "message.output_text.logprobs"
"""What `include` names for how probable the tokens of a text were; chat completions have `logprobs` for it."""


def write_request(request: Request) -> dict[str, JSON]:
    """The body that asks a server."""
    extra = own(request.extra)
    instructions, messages = _instructions(paired(request.messages))
    tools = write_tools(request.tools)
    body: dict[str, JSON] = {
        **{name: value for name, value in extra.items() if name != "logprobs"},
        "model": request.model,
        "instructions": instructions or None,
        "input": write_items(messages, request.tools),
        "max_output_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "text": write_format(request) or None,
        "reasoning": write_reasoning(request) or None,
        "user": request.user or None,
        "stream": request.stream or None,
    }
    if extra.get("logprobs") is True:
        body["include"] = [*(one for one in extra.get("include") or () if one != LOGPROBS), LOGPROBS]
    if tools:
        body["tools"] = tools
        body["parallel_tool_calls"] = request.parallel_calls
        body["tool_choice"] = (
            None if request.tool_choice == "auto" else write_choice(request.tool_choice, request.tools)
        )
    return {name: value for name, value in body.items() if value is not None}


def _instructions(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """What goes as `instructions`, and the messages that do not."""
    first = messages[0] if messages else Message("system")
    if first.role == "system" and any(own(part.vendor).get("field") == "instructions" for part in first.parts):
        return first.text, messages[1:]
    return "", messages


def write_format(request: Request) -> dict[str, JSON]:
    """The field `text`: the shape of the answer, beside what else was asked of it; empty when nothing was."""
    found = own(request.extra).get("text")
    asked, kept = request.schema, found if isinstance(found, dict) else {}
    if asked is None:
        return {"format": {"type": "text"}, **kept} if kept else {}
    if asked.schema is None:
        return {**kept, "format": {"type": "json_object"}}
    # OpenAI refuses other names.
    form: dict[str, JSON] = {
        "type": "json_schema",
        "name": re.sub(r"[^A-Za-z0-9_-]", "_", asked.name)[:64] or "answer",
        "schema": asked.schema,
    }
    if asked.description:
        form["description"] = asked.description
    if asked.strict is not None:
        form["strict"] = asked.strict
    return {**kept, "format": form}


def write_reasoning(request: Request) -> dict[str, JSON]:
    """The field `reasoning`: the effort, beside what else was asked; empty when nothing was."""
    found = own(request.extra).get("reasoning")
    kept = found if isinstance(found, dict) else {}
    return {**kept, "effort": request.think} if isinstance(request.think, str) else kept


def write_items(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[dict[str, JSON]]:
    """A conversation as items."""
    custom = custom_ids(messages)
    return [item for message in messages for item in _write_message(message, tools, custom)]


def _write_message(message: Message, tools: Sequence[ToolSpec], custom: frozenset[str]) -> Iterator[dict[str, JSON]]:
    match message.role:
        case "system" | "user":
            if content := write_asked(message.parts):
                yield {"type": "message", "role": message.role, "content": content}
            elif message.role == "user":
                yield {"type": "message", "role": "user", "content": ""}
        case "assistant":
            said = [written for item in items_of(message.parts) if (written := _write_said(item, tools))]
            yield from said or [{"type": "message", "role": "assistant", "content": ""}]
        case "tool":
            for result in message.results:
                kind = "custom_tool_call" if result.call_id in custom else "function_call"
                yield {"type": CALLS[kind], "call_id": result.call_id, "output": _write_output(result)}
        case _:
            assert_never(message.role)


def _write_said(item: Item, tools: Sequence[ToolSpec]) -> dict[str, JSON]:
    """One item of a model's; empty for a thought that a server would refuse."""
    first = item.parts[0]
    if isinstance(first, ToolCall):
        return _write_call(first, tools)
    if item.kind == "other":
        return dict(own(first.vendor)["item"])
    if item.kind == "reasoning":
        return _write_thought(item.parts)
    phase = own(first.vendor).get("phase")
    content = [_write_text(part) for part in item.parts if isinstance(part, Text)]
    said: dict[str, JSON] = {"type": "message", "role": "assistant", "content": content}
    return said if phase is None else {**said, "phase": phase}


def _write_text(part: Text) -> dict[str, JSON]:
    if part.refusal:
        return {"type": "refusal", "refusal": part.text}
    return {"type": "output_text", "text": part.text, "annotations": own(part.vendor).get("annotations", [])}


def _write_call(call: ToolCall, tools: Sequence[ToolSpec]) -> dict[str, JSON]:
    name, namespace = calling(call, tools)
    inside: dict[str, JSON] = {"namespace": namespace} if namespace else {}
    if is_custom(call):
        return {"type": "custom_tool_call", "call_id": call.id, "name": name, "input": call.arguments, **inside}
    return {"type": "function_call", "call_id": call.id, "name": name, "arguments": write_arguments(call), **inside}


def _write_thought(thoughts: Sequence[Part]) -> dict[str, JSON]:
    """A reasoning item: servers that keep nothing know only what is sealed, or what was told raw."""
    told = [part for part in thoughts if isinstance(part, Thinking)]
    sealed = next((found for part in told if isinstance(found := own(part.vendor).get("encrypted_content"), str)), "")
    texts = [{"type": "reasoning_text", "text": part.text} for part in told if is_raw(part)]
    if not sealed and not texts:
        return {}
    found = own(told[0].vendor).get("id")
    item: dict[str, JSON] = {"type": "reasoning"}
    if found:
        item["id"] = found
    item["summary"] = [{"type": "summary_text", "text": part.text} for part in told if part.text and not is_raw(part)]
    if texts:
        item["content"] = texts
    return {**item, "encrypted_content": sealed} if sealed else item


def _write_output(result: ToolResult) -> JSON:
    parts = tuple(part for part in result.parts if not isinstance(part, Text) or part.text)
    if not parts:
        return FAILED_RESULT if result.is_error else EMPTY_RESULT
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return write_asked(parts)
