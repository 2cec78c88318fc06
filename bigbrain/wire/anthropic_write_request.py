"""A `Request` as a body that a server of the Messages API accepts, whatever history it holds.

The API refuses much that a conversation of other origin contains. So this writer

- hoists all system texts, wherever they stand, in order into `system`: not every
  model takes them in between;
- merges neighbours, so that users and assistants take turns and a user begins;
- pairs calls and results as `pairing` does, which also puts results first in their turn;
- makes call ids legal, on the call and its result alike, and leaves all others as they are;
- leaves out empty and blank texts, and thinking that Anthropic did not sign.

Of the request's `extra["anthropic"]` only `cache_control` is sent on: what else a client asked of
*its* server (`context_management`, `service_tier` …) is not ours to repeat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from bigbrain.messages import (
    JSON,
    Effort,
    ForcedTool,
    Message,
    Part,
    Request,
    Text,
    Think,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from bigbrain.wire.anthropic_content import NAME, Block, notes, write_blocks
from bigbrain.wire.pairing import fresh_id, paired

MAX_TOKENS = 4096
"""The limit for an answer when the asker gave none: the API wants one, and every model allows this."""
LEAST_BUDGET = 1024
"""The smallest budget for thinking that the API takes."""
OPENING = "Go on."
"""What the user says when a conversation begins with the assistant, or has system texts only."""

ANY_OBJECT = "Answer with one JSON object and nothing else: no other text, no fence."
"""How an answer of any JSON object is asked for, unless the system text says it already."""

ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
"""What a call's id may not contain."""


def write_request(request: Request) -> dict[str, JSON]:
    """The body that asks a server of this dialect.

    Thinking excludes forced calls, some histories, temperature, `top_p` and `top_k`: a forced call
    and the history win over thinking, thinking wins over the others.
    """
    tools = [_write_tool(tool) for tool in request.tools if _is_offered(tool)]
    system, messages = _write_system(request), _write_messages(request.messages)
    forced = bool(tools) and request.tool_choice not in ("auto", "none")
    thinking = {} if forced or _excludes_thinking(messages) else _write_thinking(request.think)
    body: dict[str, JSON] = {
        "model": request.model,
        "max_tokens": (request.max_tokens or MAX_TOKENS) + _missing_room(request, thinking),
        "messages": messages,
        "system": system,
        "tools": tools,
        "tool_choice": _write_choice(request) if tools else {},
        "thinking": thinking,
        "output_config": _write_output(request),
        "stop_sequences": [text for text in request.stop if text.strip()],
        "metadata": {"user_id": request.user} if request.user else {},
        "cache_control": request.extra.get(NAME, {}).get("cache_control"),
        "stream": request.stream,
        **({} if thinking else _write_sampling(request)),
    }
    return {name: value for name, value in body.items() if value or type(value) in (int, float)}


def _excludes_thinking(messages: list[Block]) -> bool:
    """Whether the API would refuse thinking here.

    It does when its answer has to go on from a given text, and inside a round of calls that
    did not begin with thinking (400, "Expected `thinking` or `redacted_thinking`").
    """
    last = messages[-1]
    if last["role"] == "assistant":
        return True
    in_round = len(messages) > 1 and last["content"][0]["type"] == "tool_result"
    return in_round and messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking")


def _missing_room(request: Request, thinking: Block) -> int:
    """How many tokens the limit needs beyond its own, as it must be above the budget for thinking."""
    budget: int = thinking.get("budget_tokens", 0)
    return budget if budget >= (request.max_tokens or MAX_TOKENS) else 0


def _write_sampling(request: Request) -> dict[str, JSON]:
    """The knobs of chance; other dialects allow a temperature up to 2, this one up to 1."""
    heat = None if request.temperature is None else min(request.temperature, 1.0)
    return {"temperature": heat, "top_p": request.top_p, "top_k": request.top_k}


def _write_thinking(think: Think | None) -> Block:
    match think:
        case None | False | 0 | "none":
            return {}
        case str():
            return {"type": "adaptive"}
        case True:
            return {"type": "enabled", "budget_tokens": LEAST_BUDGET}
        case _:
            return {"type": "enabled", "budget_tokens": max(LEAST_BUDGET, think)}


def _write_output(request: Request) -> Block:
    """The effort and the shape of the answer; "any JSON object" has no form here and is asked for in words."""
    output: Block = {}
    if isinstance(request.think, str) and request.think != "none":
        output["effort"] = _effort(request.think)
    if request.schema and request.schema.schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.schema.schema}
    return output


def _effort(word: Effort) -> str:
    return "low" if word == "minimal" else word


def _is_offered(tool: ToolSpec) -> bool:
    """Whether a tool means something here: one that only another dialect knows does not."""
    return bool(notes(tool.vendor) or tool.schema or not tool.vendor)


def _write_tool(tool: ToolSpec) -> Block:
    own = notes(tool.vendor)
    if "type" in own:
        return own
    written: Block = {"name": tool.name, "input_schema": {"type": "object", **tool.schema}}
    if tool.description:
        written["description"] = tool.description
    if tool.strict is not None:
        written["strict"] = tool.strict
    return {**written, **own}


def _write_choice(request: Request) -> Block:
    choice: Block
    if isinstance(request.tool_choice, ForcedTool):
        choice = {"type": "tool", "name": request.tool_choice.name}
    else:
        choice = {"type": request.tool_choice}
    if request.parallel_calls is not None and request.tool_choice != "none":
        choice["disable_parallel_tool_use"] = not request.parallel_calls
    return {} if choice == {"type": "auto"} else choice


def _write_system(request: Request) -> str | list[Block]:
    """All system texts: blocks when one carries something of its own, else one string."""
    parts = [part for message in request.messages if message.role == "system" for part in message.parts]
    texts = [part for part in parts if isinstance(part, Text) and part.text.strip()]
    any_object = request.schema is not None and request.schema.schema is None
    if any_object and all(ANY_OBJECT not in part.text for part in texts):
        texts.append(Text(ANY_OBJECT))
    if any(notes(part.vendor) for part in texts):
        return write_blocks(tuple(texts))
    return "\n\n".join(part.text for part in texts)


def _write_messages(messages: tuple[Message, ...]) -> list[Block]:
    """The turns: users and assistants alternate, and a user begins."""
    turns: list[tuple[str, list[Block]]] = []
    for message in _legal(paired([message for message in messages if message.role != "system"])):
        side = "assistant" if message.role == "assistant" else "user"
        blocks = write_blocks(message.parts)
        if blocks and turns and turns[-1][0] == side:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((side, blocks))
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"type": "text", "text": OPENING}]))
    if turns[-1][0] == "assistant":
        turns[-1][1][-1] = _trimmed(turns[-1][1][-1])
    return [{"role": side, "content": blocks} for side, blocks in turns]


def _trimmed(block: Block) -> Block:
    """The API refuses a last assistant text that ends in blanks, because the model goes on from it."""
    return {**block, "text": block["text"].rstrip()} if block["type"] == "text" else block


def _legal(messages: Sequence[Message]) -> list[Message]:
    """The same messages with call ids of legal letters; ids are unique here, so call and result stay together."""
    ids = {call.id: call.id for message in messages for call in message.calls}
    taken = set(ids)
    for wish in [one for one in ids if ILLEGAL.search(one)]:
        ids[wish] = fresh_id(ILLEGAL.sub("_", wish), taken)
    return [replace(message, parts=tuple(_with_legal_id(part, ids) for part in message.parts)) for message in messages]


def _with_legal_id(part: Part, ids: Mapping[str, str]) -> Part:
    match part:
        case ToolCall():
            return replace(part, id=ids[part.id])
        case ToolResult():
            return replace(part, call_id=ids[part.call_id])
        case _:
            return part
