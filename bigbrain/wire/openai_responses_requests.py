"""A Responses request as a `Request`, in every form that clients send.

What a server stores is not this module's business: with `previous_response_id`, the messages of
`read_request` are those of the request alone, and results in it may answer calls that stand elsewhere.
Refused are the fields that name something else that only OpenAI's own servers store.
Source: OpenAI API reference, "Create a model response". Writing one is in `openai_responses_asking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from bigbrain.messages import JSON, AnswerSchema, Message, Request, Text, ToolSpec
from bigbrain.wire.fields import read_as, wrong
from bigbrain.wire.openai_content import NAME, noted
from bigbrain.wire.openai_effort import read_effort
from bigbrain.wire.openai_responses_asking import LOGPROBS
from bigbrain.wire.openai_responses_items import REFERENCE, Conversation, kind_of
from bigbrain.wire.openai_responses_tools import read_choice, read_tools

_Limit = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""A count of tokens; the end keeps it an integer for every JSON reader behind us."""


class _Format(msgspec.Struct, frozen=True):
    type: str
    name: str = "answer"
    schema: dict[str, JSON] | None = None
    strict: bool | None = None
    description: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    format: _Format | None = None


class _Thought(msgspec.Struct, frozen=True):
    effort: str | None = None


class _Body(msgspec.Struct, frozen=True):
    model: str | None = None
    input: str | list[JSON] | None = None
    instructions: str | None = None
    stream: bool | None = None
    tools: list[JSON] | None = None
    tool_choice: str | dict[str, JSON] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: _Limit | None = None
    temperature: float | None = None
    top_p: float | None = None
    text: _Answer | None = None
    reasoning: _Thought | None = None
    user: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    """Fields that are checked and yet kept verbatim in `extra`."""

    previous_response_id: str | None = None
    store: bool | None = None
    background: bool | None = None
    metadata: dict[str, JSON] | None = None
    include: list[str] | None = None
    truncation: str | None = None
    stream_options: dict[str, JSON] | None = None
    client_metadata: dict[str, JSON] | None = None
    prompt: JSON = None
    conversation: JSON = None


_KNOWN = frozenset(_Body.__struct_fields__)


def read_request(body: JSON) -> Request:
    """A request of any client in normal form; all fields that have no place in it are in `extra["openai"]`.

    Raises `WireError` that names the field, when one is missing, ill-typed or impossible.
    """
    read, kept = read_as(body, _Body), read_as(body, _Kept)
    _refuse_the_impossible(read, kept)
    items = [{"role": "user", "content": read.input}] if isinstance(read.input, str) else read.input or []
    tools = _read_tools(read.tools or [], items)
    conversation = Conversation(tools, begun=kept.previous_response_id is not None)
    for place, item in enumerate(items):
        path = "input" if isinstance(read.input, str) else f"input[{place}]"
        match kind_of(item, path):
            case "additional_tools":
                pass
            case kind if kind == REFERENCE:
                _pass_over(item, path)
            case _:
                conversation.add(item, path)
    offered, choice = read_choice(read.tool_choice, tools)
    return Request(
        model=read.model or "",
        messages=(*_read_instructions(read.instructions), *conversation.messages),
        tools=offered,
        tool_choice=choice,
        parallel_calls=read.parallel_tool_calls,
        schema=_read_format(read.text.format) if read.text else None,
        stream=read.stream or False,
        max_tokens=read.max_output_tokens,
        temperature=read.temperature,
        top_p=read.top_p,
        think=read_effort(read.reasoning.effort if read.reasoning else None, "reasoning.effort"),
        user=read.user or "",
        extra=_read_extra(body),
    )


def _refuse_the_impossible(read: _Body, kept: _Kept) -> None:
    if kept.conversation is not None:
        raise wrong(
            "conversation", "is not supported; send `previous_response_id`, or the whole conversation in `input`"
        )
    if kept.prompt is not None:
        raise wrong("prompt", "is not supported, as no prompts are stored here; send its text in `instructions`")
    if not read.input and kept.previous_response_id is None:
        raise wrong("input", "is missing or empty; send a text or a list of items")


def _read_tools(tools: Sequence[JSON], items: Sequence[JSON]) -> tuple[ToolSpec, ...]:
    """The tools of the request and those that Codex sends among the items of its input."""
    found = read_tools(tools, "tools")
    for place, item in enumerate(items):
        path = f"input[{place}]"
        if isinstance(item, dict) and kind_of(item, path) == "additional_tools":
            more = read_as(item.get("tools") or [], list[JSON], f"{path}.tools")
            found = (*found, *read_tools(more, f"{path}.tools", found))
    return found


def _pass_over(item: JSON, path: str) -> None:
    """A reference that nobody has resolved: a thought can be done without, anything else is part of the question."""
    found = item.get("id") if isinstance(item, dict) else None
    if not isinstance(found, str) or not found.startswith("rs_"):
        raise wrong(f"{path}.id", f"names the item {found!r}, which is not stored here; send the item itself")


def _read_instructions(instructions: str | None) -> tuple[Message, ...]:
    """Marked, because they are of this request alone and not of the conversation."""
    return (Message("system", (Text(instructions, vendor=noted(field="instructions")),)),) if instructions else ()


def _read_format(form: _Format | None) -> AnswerSchema | None:
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return AnswerSchema()
    if form.type != "json_schema":
        raise wrong("text.format.type", f"is {form.type!r}; use `text`, `json_object` or `json_schema`")
    if form.schema is None:
        raise wrong("text.format.schema", "is missing; give the schema of the answer")
    return AnswerSchema(form.name, form.schema, form.strict, form.description or "")


def _read_extra(body: JSON) -> dict[str, dict[str, JSON]]:
    """What has no place in the normal form, and what else `text` and `reasoning` say.

    Whether probabilities are wanted is said in the words of chat completions, too: models of both protocols give them.
    """
    if not isinstance(body, dict):
        return {}
    extra = {name: value for name, value in body.items() if name not in _KNOWN and value is not None}
    if LOGPROBS in (body.get("include") or ()):
        extra["logprobs"] = True
    for name, known in (("text", "format"), ("reasoning", "effort")):
        if rest := {key: value for key, value in (body.get(name) or {}).items() if key != known and value is not None}:
            extra[name] = rest
    return {NAME: extra} if extra else {}
