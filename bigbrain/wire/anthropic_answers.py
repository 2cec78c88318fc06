"""Whole answers of the Messages API, and the frames in which an answer is streamed to a client.

A frame is written from the event and the answer so far, so the writer has no state.
The indices on the wire are those of the events: contiguous, each opened and stopped once.
What answers of this dialect cannot hold (pictures, files, sounds) is a text that says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec.structs import replace

from bigbrain.errors import ModelBroke, WireError
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, Started
from bigbrain.messages import (
    JSON,
    Audio,
    File,
    Image,
    Part,
    Request,
    Response,
    Stop,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from bigbrain.wire import sse
from bigbrain.wire.anthropic_content import (
    NAME,
    Block,
    is_empty,
    noted,
    notes,
    placeholder,
    read_part,
    signature_of,
    write_input,
    write_thinking,
)
from bigbrain.wire.anthropic_errors import error_of, failure
from bigbrain.wire.anthropic_fields import Fields

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "max_tokens": "length",
    "stop_sequence": "sequence",
    "tool_use": "calls",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
}
"""Stop reason on the wire → ours."""

REASONS: dict[Stop, str] = {stop: reason for reason, stop in STOPS.items()} | {"filter": "refusal"}
"""The inverse; a content filter is what this dialect calls a refusal."""

READABLE = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""The blocks of an answer that we read; those of tools that the server runs itself are passed over."""


def read_stop(reason: str | None, *, owing: bool) -> Stop:
    """Why an answer ended. An unknown reason counts as its end; an end that leaves calls owed is `calls`."""
    stop = STOPS.get(reason or "", "end")
    return "calls" if owing and stop == "end" else stop


def write_stop(response: Response) -> str:
    """The stop reason: a refusal in words is one, and an end that leaves calls owed is `tool_use`."""
    if _refusal(response):
        return "refusal"
    if response.calls and response.stop in (None, "end"):
        return "tool_use"
    return REASONS[response.stop or "end"]


def _refusal(response: Response) -> str:
    return "".join(part.text for part in response.parts if isinstance(part, Text) and part.refusal)


def _stop_details(response: Response) -> Block | None:
    """What a refusal was about: as Anthropic said it, else with the refusal's own words."""
    given: Block | None = notes(response.vendor).get("stop_details")
    if given or write_stop(response) != "refusal":
        return given
    return {"type": "refusal", "category": None, "explanation": _refusal(response) or None}


def told(details: JSON) -> JSON:
    """The details of a stop, or None when they say no more than the stop itself."""
    known = isinstance(details, dict) and (details.get("category") or details.get("explanation"))
    return details if known else None


NO_USAGE = Usage()


class WireUsage(msgspec.Struct):
    """Usage on the wire; what is missing or null is not reported."""

    class Details(msgspec.Struct):
        """How the output divides."""

        thinking_tokens: int | None = None

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: Details | None = None


def read_usage(wire: WireUsage | None, before: Usage = NO_USAGE) -> Usage:
    """Usage after one more report: numbers are totals, so a reported one replaces the one before."""
    if wire is None:
        return before
    thinking = wire.output_tokens_details.thinking_tokens if wire.output_tokens_details else None
    return Usage(
        before.input if wire.input_tokens is None else wire.input_tokens,
        before.output if wire.output_tokens is None else wire.output_tokens,
        before.cache_read if wire.cache_read_input_tokens is None else wire.cache_read_input_tokens,
        before.cache_write if wire.cache_creation_input_tokens is None else wire.cache_creation_input_tokens,
        before.reasoning if thinking is None else thinking,
    )


def write_totals(usage: Usage) -> Block:
    """The numbers that a stream's end reports."""
    totals: Block = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    }
    if usage.reasoning:
        totals["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return totals


def write_usage(usage: Usage) -> Block:
    """The numbers as a whole message reports them; which cache was written is not known, so it is the usual one."""
    created = {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0}
    return {**write_totals(usage), "cache_creation": created, "service_tier": "standard"}


class _Document(msgspec.Struct):
    """The top level of a whole answer; `content` must be there."""

    content: list[dict[str, JSON]]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: JSON = None
    usage: WireUsage | None = None


def read_response(document: JSON) -> Response:
    """A whole answer.

    Raises `ModelBroke` when it is none, the error's own `ModelError` when it is an error document.
    """
    if isinstance(document, dict) and document.get("type") == "error":
        raise error_of(document.get("error"))
    try:
        found = msgspec.convert(document, _Document)
        parts = _read_parts(found.content)
    except (msgspec.ValidationError, WireError) as error:
        raise ModelBroke(f"the model's answer is no message: {error}") from error
    owing = any(isinstance(part, ToolCall) for part in parts)
    details = told(found.stop_details)
    return Response(
        found.id or "",
        found.model or "",
        parts=parts,
        stop=read_stop(found.stop_reason, owing=owing),
        stop_sequence=found.stop_sequence,
        usage=read_usage(found.usage),
        vendor=noted({"stop_details": details} if details else {}),
    )


def _read_parts(content: list[dict[str, JSON]]) -> tuple[Part, ...]:
    blocks = [Fields(block, f"content.{place}") for place, block in enumerate(content)]
    parts = (read_part(block, "assistant") for block in blocks if block.text("type") in READABLE)
    return tuple(part for part in parts if not is_empty(part))


def write_response(response: Response, request: Request) -> dict[str, JSON]:
    """A whole answer as a document; `request` is the question it answers."""
    return {
        **_write_head(response, response.usage),
        "content": [_write_answer(_shown(part, request)) for part in response.parts],
        "stop_reason": write_stop(response),
        "stop_sequence": response.stop_sequence,
        "stop_details": _stop_details(response),
    }


def _shown(part: Part, request: Request) -> Part:
    """The part, its thoughts left out where the client wants to see none; their signature stays, so that they can go back."""
    return replace(part, text="") if isinstance(part, Thinking) and _omits_thoughts(request) else part


def _omits_thoughts(request: Request) -> bool:
    thinking = request.extra.get(NAME, {}).get("thinking")
    return isinstance(thinking, dict) and thinking.get("display") == "omitted"


def _write_head(response: Response, usage: Usage) -> Block:
    """A message before it has content."""
    return {
        "id": response.id,
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": write_usage(usage),
    }


def _write_answer(part: Part) -> Block:
    """A part in an answer: nothing is left out here, because a stream has already counted it."""
    match part:
        case Text():
            citations = notes(part.vendor).get("citations")
            return {"type": "text", "text": part.text, **({"citations": citations} if citations else {})}
        case Thinking():
            return write_thinking(part)
        case ToolCall():
            own = notes(part.vendor)
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": write_input(part), **own}
        case Image() | File() | Audio() | ToolResult():
            return {"type": "text", "text": placeholder(part)}
        case _:
            assert_never(part)


def write_event(event: Event, so_far: Response, request: Request, sent: int = 0) -> Iterator[bytes]:  # noqa: ARG001
    """The bytes that tell a client of this event; `so_far` is the answer with the event folded in."""
    match event:
        case Delta():
            if not (isinstance(so_far.parts[-1], Thinking) and _omits_thoughts(request)):
                yield _write_delta(event, so_far.parts[-1])
        case Started():
            yield _frame("message_start", message=_write_head(so_far, event.usage))
        case Opened():
            yield from _write_opened(event)
        case Closed():
            yield from _write_closed(event.index, so_far.parts[-1])
        case Finished():
            end = {"stop_reason": write_stop(so_far), "stop_sequence": so_far.stop_sequence}
            details = _stop_details(so_far)
            delta = {**end, "stop_details": details} if details else end
            yield _frame("message_delta", delta=delta, usage=write_totals(event.usage))
            yield _frame("message_stop")
        case Failed():
            yield _frame("error", error=failure(event))
        case _:
            assert_never(event)


def _frame(kind: str, **fields: JSON) -> bytes:
    """A frame with its `event:` line, without which no official client sees it."""
    return sse.write(msgspec.json.encode({"type": kind, **fields}), kind)


_GROWING: dict[type[Part], bytes] = {
    Text: b'"delta":{"type":"text_delta","text":',
    Thinking: b'"delta":{"type":"thinking_delta","thinking":',
    ToolCall: b'"delta":{"type":"input_json_delta","partial_json":',
}
_encode = msgspec.json.Encoder().encode


def _write_delta(delta: Delta, part: Part) -> bytes:
    """The one frame that is written per token, so it is pasted together: a third of the time of encoding it."""
    growing = _GROWING[type(part)]
    data = b'{"type":"content_block_delta","index":%d,%b%b}}' % (delta.index, growing, _encode(delta.text))
    return sse.write(data, "content_block_delta")


def _write_opened(event: Opened) -> Iterator[bytes]:
    """The start of a block; the start of an empty one still has its empty text, which clients add to."""
    block = _write_answer(event.part)
    match event.part:
        case Text():
            block.pop("citations", None)
        case Thinking() if block["type"] == "thinking":
            block["signature"] = ""
        case Image() | File() | Audio() | ToolResult():
            yield _start(event.index, {"type": "text", "text": ""})
            yield _write_delta(Delta(event.index, block["text"]), Text())
            return
        case _:
            pass
    yield _start(event.index, block)


def _start(index: int, block: Block) -> bytes:
    return _frame("content_block_start", index=index, content_block=block)


def _write_closed(index: int, part: Part) -> Iterator[bytes]:
    """What the block carries besides its text, then its end.

    The signature goes in one piece: the SDKs keep only the last piece they get.
    """
    own = notes(part.vendor)
    if isinstance(part, Thinking) and "redacted" not in own and (signature := signature_of(part)):
        yield _write_extra(index, "signature_delta", signature=signature)
    if isinstance(part, Text):
        for citation in own.get("citations") or ():
            yield _write_extra(index, "citations_delta", citation=citation)
    yield _frame("content_block_stop", index=index)


def _write_extra(index: int, kind: str, **fields: JSON) -> bytes:
    return _frame("content_block_delta", index=index, delta={"type": kind, **fields})
