"""A request body of the Messages API as a `Request`, and a guess at its size in tokens.

Read leniently where real clients differ from the documentation (`max_tokens` may be
missing, ids and signatures may be any string, fields without a meaning to us are kept
in `extra["anthropic"]`), strictly where guessing would answer another question than the
one asked: a wrong type names its field.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from bigbrain.errors import WireError
from bigbrain.messages import (
    JSON,
    AnswerSchema,
    Effort,
    File,
    ForcedTool,
    Image,
    Message,
    Part,
    Request,
    Role,
    Text,
    Think,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
)
from bigbrain.wire.anthropic_content import NAME, Place, noted, read_parts
from bigbrain.wire.anthropic_fields import Fields

BILLING = "x-anthropic-billing-header:"
"""How the system block begins in which Claude Code counts its users; it instructs nobody."""

READ = (
    *("model", "messages", "system", "stream", "max_tokens", "temperature", "top_p", "top_k", "stop_sequences"),
    *("tools", "tool_choice", "output_format", "mcp_servers", "thread", "output_config", "metadata"),
)
"""The top-level fields that are not kept verbatim in `extra`."""

CHOICES: dict[str, ToolChoice] = {"auto": "auto", "any": "any", "none": "none"}
EFFORTS: dict[str, Effort] = {word: word for word in get_args(Effort)}
PLACES: dict[str, tuple[Role, Place]] = {
    "user": ("user", "user"),
    "assistant": ("assistant", "assistant"),
    "system": ("system", "system"),
}

IMAGE_TOKENS = 1500
"""About what a picture of a megapixel costs: width × height / 750."""
DOCUMENT_TOKENS = 4500
"""A document that is not text counts as three pages of a PDF, 1500 each."""
BYTES_PER_TOKEN = 4


class ThreadUnsupported(WireError):
    """Raised when a request asks the server to remember the conversation.

    The SDKs' tool runners do so, and repeat the request with its whole history
    when they are answered with this code; any other refusal ends them.
    """

    code = "thread_unsupported_request"


def read_request(body: JSON) -> Request:
    """A decoded request body as a value in normal form.

    Messages of one role in a row stay apart; a user's message that holds results
    becomes a `tool` message and, for the rest of it, a `user` message behind it.
    Raises `WireError` with `param` set when a field is missing, ill-typed or impossible,
    `ThreadUnsupported` when the conversation is elsewhere.
    """
    fields = Fields.of(body)
    _refuse_the_impossible(fields)
    choice, parallel = _read_choice(fields.inner("tool_choice"))
    tools = tuple(_read_tool(tool) for tool in fields.objects("tools"))
    _check_choice(choice, tools)
    return Request(
        model=fields.text("model"),  # a brain has a default, so its clients need not name one
        messages=_read_messages(fields),
        tools=tools,
        tool_choice=choice,
        parallel_calls=parallel,
        schema=_read_schema(fields),
        stream=fields.flag("stream") or False,
        max_tokens=fields.whole("max_tokens"),
        temperature=fields.number("temperature"),
        top_p=fields.number("top_p"),
        top_k=fields.whole("top_k"),
        stop=fields.texts("stop_sequences"),
        think=_read_think(fields),
        user=fields.inner("metadata").text("user_id"),
        extra=_read_extra(fields),
    )


def _refuse_the_impossible(fields: Fields) -> None:
    if fields.has("thread"):
        raise ThreadUnsupported("`thread` is not supported; send the whole conversation in `messages`", param="thread")
    if fields.items("mcp_servers"):
        raise WireError("`mcp_servers` is not supported; give the tools in `tools`", param="mcp_servers")


def _read_messages(fields: Fields) -> tuple[Message, ...]:
    found = fields.objects("messages")
    if not found:
        raise fields.wrong("messages", "a list of at least one message")
    return (*_read_system(fields), *(one for message in found for one in _read_message(message)))


def _read_system(fields: Fields) -> list[Message]:
    """The leading system message, or none when there is no text for one."""
    if not fields.has("system"):
        return []
    if not isinstance(fields.data["system"], (str, list)):
        raise fields.wrong("system", "a string or a list of text blocks")
    parts = tuple(part for part in _read_system_parts(fields) if not _is_billing(part))
    return [Message("system", parts)] if parts else []


def _read_system_parts(fields: Fields) -> list[Part]:
    """`system` has the same forms as a message's `content`; errors still name `system`."""
    try:
        return read_parts(Fields({"content": fields.data["system"]}), "system")
    except WireError as error:
        param = (error.param or "").replace("content", "system", 1)
        raise WireError(str(error).replace("`content", "`system", 1), param=param) from error


def _is_billing(part: Part) -> bool:
    return isinstance(part, Text) and part.text.startswith(BILLING)


def _read_message(message: Fields) -> list[Message]:
    """One message of the wire: one of ours, or two when it holds both results and other things."""
    found = PLACES.get(message.text("role"))
    if found is None:
        raise message.wrong("role", "`user`, `assistant` or `system`")
    if not isinstance(message.data.get("content"), (str, list, type(None))):
        raise message.wrong("content", "a string or a list of blocks")
    role, place = found
    parts = read_parts(message, place)
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    others = tuple(part for part in parts if not isinstance(part, ToolResult))
    answered = [Message("tool", results)] if results else []
    return [*answered, Message(role, others)] if others or not results else answered


def _read_tool(tool: Fields) -> ToolSpec:
    """A tool; one that the server defines (`bash_20250124`, `web_search_20250305` …) has its whole form in `vendor`."""
    kind = tool.text("type") or "custom"
    if kind != "custom":
        return ToolSpec(tool.text("name") or kind, vendor=noted(tool.data))
    return ToolSpec(
        tool.needed_text("name"),
        tool.text("description"),
        tool.inner("input_schema").data,
        tool.flag("strict"),
        noted(tool.rest("type", "name", "description", "input_schema", "strict")),
    )


def _read_choice(choice: Fields) -> tuple[ToolChoice, bool | None]:
    """The tool choice, and whether calls may come several at a time (None: not said)."""
    if not choice.data:
        return "auto", None
    one_only = choice.flag("disable_parallel_tool_use")
    parallel = None if one_only is None else not one_only
    kind = choice.text("type")
    if kind == "tool":
        return ForcedTool(choice.needed_text("name")), parallel
    if kind not in CHOICES:
        raise choice.wrong("type", "`auto`, `any`, `tool` or `none`")
    return CHOICES[kind], parallel


def _check_choice(choice: ToolChoice, tools: tuple[ToolSpec, ...]) -> None:
    if choice == "any" and not tools:
        raise WireError("`tool_choice` is `any`, but there are no tools; send `tools`", param="tool_choice")
    if isinstance(choice, ForcedTool) and all(tool.name != choice.name for tool in tools):
        sentence = f"`tool_choice.name` is `{choice.name[:200]}`, which is not in `tools`"
        raise WireError(sentence, param="tool_choice.name")


def _read_schema(fields: Fields) -> AnswerSchema | None:
    """The answer's shape, from `output_config.format` or from `output_format`, its name until 2025."""
    config = fields.inner("output_config")
    wanted = config.inner("format") if config.has("format") else fields.inner("output_format")
    if not wanted.data:
        return None
    if wanted.text("type") != "json_schema":
        raise wanted.wrong("type", "`json_schema`")
    if not wanted.has("schema"):
        raise wanted.wrong("schema", "an object")
    return AnswerSchema(schema=wanted.inner("schema").data)


def _read_think(fields: Fields) -> Think | None:
    """How much to think; an effort word that we do not know counts as none given."""
    config, effort = fields.inner("thinking"), EFFORTS.get(fields.inner("output_config").text("effort"))
    if not config.data:
        return effort
    match config.text("type"):
        case "enabled":
            return config.whole("budget_tokens") or True
        case "adaptive" | "between_tools":
            return effort or True
        case "disabled":
            return False
        case _:
            raise config.wrong("type", "`enabled`, `adaptive`, `between_tools` or `disabled`")


def _read_extra(fields: Fields) -> dict[str, dict[str, JSON]]:
    """What has no place in the normal form, and `thinking` and `effort` as they were said."""
    config = fields.inner("output_config").rest("format")
    metadata = fields.inner("metadata").rest("user_id")
    extra = fields.rest(*READ)
    if config:
        extra["output_config"] = config
    if metadata:
        extra["metadata"] = metadata
    return {NAME: extra} if extra else {}


def count_tokens(request: Request) -> int:
    """About how many input tokens a request has: never 0, and never exact.

    A token is taken for four bytes of UTF-8, which is close for English and for code and,
    because their letters take two to four bytes, not far off for other scripts; pictures
    and documents count as constants. Only the model's own tokenizer knows the number.
    """
    parts = [part for message in request.messages for part in message.parts]
    tools = [(tool.name, tool.description, tool.schema, tool.vendor) for tool in request.tools]
    shape = request.schema.schema if request.schema else None
    tokens = sum(_tokens(part) for part in parts) + 4 * len(request.messages)
    return max(1, tokens + sum(_size(msgspec.json.encode(tool)) for tool in tools) + _size(msgspec.json.encode(shape)))


def _tokens(part: Part) -> int:
    match part:
        case Text() | Thinking():
            return _size(part.text.encode())
        case ToolCall():
            return _size(f"{part.name}{part.arguments}".encode())
        case ToolResult():
            return sum(_tokens(inner) for inner in part.parts)
        case File() if part.text:
            return _size(part.text.encode())
        case Image():
            return IMAGE_TOKENS
        case _:
            return DOCUMENT_TOKENS


def _size(data: bytes) -> int:
    return -(-len(data) // BYTES_PER_TOKEN)
