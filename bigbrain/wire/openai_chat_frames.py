"""The events of an answer → the frames of a Chat Completions stream.

Written from the answer so far alone, without a memory of what was sent: the role first,
then flat deltas, the reason once, the usage for those who asked for it, `[DONE]`.
Source: OpenAI API reference, "chat completion chunk object".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec

from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, Started
from bigbrain.messages import JSON, Request, Response, Text, Thinking, ToolCall
from bigbrain.wire import sse
from bigbrain.wire.openai_chat_answers import write_reason, write_usage
from bigbrain.wire.openai_chat_asking import is_custom, write_call
from bigbrain.wire.openai_chat_thinking import write_last_detail
from bigbrain.wire.openai_chat_wishes import choice_count, wants_functions, wants_usage
from bigbrain.wire.openai_content import own
from bigbrain.wire.openai_errors import write_error_object

HEARTBEAT = b": keep-alive\n\n"
"""A comment: this wire has no event that means nothing."""

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode


def _chunks(
    so_far: Response, request: Request, delta: dict[str, JSON], reason: str | None = None, logprobs: JSON = None
) -> Iterator[bytes]:
    """A frame for each choice; `usage` is null in every chunk but the last for those who asked for it, and absent for others."""
    chunk: dict[str, JSON] = {
        "id": so_far.id,
        "object": "chat.completion.chunk",
        "created": so_far.created,
        "model": so_far.model or request.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}],
    }
    if not request.extra:
        yield b"data: %b\n\n" % _encode(chunk)
        return
    if wants_usage(request):
        chunk["usage"] = None
    for index in range(choice_count(request)):
        chunk["choices"][0]["index"] = index
        yield b"data: %b\n\n" % _encode(chunk)


def write_heartbeat(so_far: Response, request: Request, sent: int) -> bytes:  # noqa: ARG001 - the same at any moment
    """A comment."""
    return HEARTBEAT


def write_event(event: Event, so_far: Response, request: Request, sent: int = 0) -> Iterator[bytes]:  # noqa: ARG001
    """The frames that tell a client of this event; `so_far` is the answer with the event folded in.

    A call that ends without arguments gets `{}`, because clients parse what they have got.
    """
    match event:
        case Delta():
            if growth := _write_growth(so_far, request, event.text):
                yield from _chunks(so_far, request, growth)
        case Started():
            yield from _chunks(so_far, request, {"role": "assistant", "content": "", "refusal": None})
        case Opened():
            if isinstance(event.part, ToolCall) and (opening := _write_opening(so_far, request, event.part)):
                yield from _chunks(so_far, request, opening)
        case Closed():
            yield from _write_closed(so_far, request)
        case Finished():
            yield from _write_end(so_far, request)
        case Failed():
            yield sse.write(_encode(write_error_object(event)))
        case _:
            assert_never(event)


def _write_closed(so_far: Response, request: Request) -> Iterator[bytes]:
    """What is known of a part at its end: that a call has no arguments, how probable a text's tokens were, who signed a thought."""
    part = so_far.parts[-1]
    if isinstance(part, ToolCall) and not part.arguments.strip() and not is_custom(part):
        if growth := _write_growth(so_far, request, "{}"):
            yield from _chunks(so_far, request, growth)
    elif isinstance(part, Text) and (logprobs := own(part.vendor).get("logprobs")):
        yield from _chunks(so_far, request, {}, logprobs={"content": None, "refusal": None, **logprobs})
    elif isinstance(part, Thinking) and (details := write_last_detail(so_far.parts)):
        yield from _chunks(so_far, request, {"reasoning_details": details})


def _write_growth(so_far: Response, request: Request, text: str) -> dict[str, JSON]:
    """More text of the last part as a delta; empty for what has no place in the form that was asked for."""
    part = so_far.parts[-1]
    if isinstance(part, Text):
        return {"refusal" if part.refusal else "content": text}
    if isinstance(part, Thinking):
        return {"reasoning_content": text}
    index = len(so_far.calls) - 1
    if wants_functions(request):
        return {} if index else {"function_call": {"arguments": text}}
    if isinstance(part, ToolCall) and is_custom(part):
        return {"tool_calls": [{"index": index, "custom": {"input": text}}]}
    return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _write_opening(so_far: Response, request: Request, call: ToolCall) -> dict[str, JSON]:
    """The first delta of a call, the only one with its id, type and name; empty as for `_write_growth`."""
    if wants_functions(request):
        return {} if len(so_far.calls) > 1 else {"function_call": {"name": call.name, "arguments": ""}}
    return {"tool_calls": [{"index": len(so_far.calls) - 1, **write_call(call, "")}]}


def _write_end(so_far: Response, request: Request) -> Iterator[bytes]:
    """The reason, then the usage for those who asked for it, then the mark that nothing more comes."""
    yield from _chunks(so_far, request, {}, write_reason(so_far, request))
    if wants_usage(request):
        last = {
            "id": so_far.id,
            "object": "chat.completion.chunk",
            "created": so_far.created,
            "model": so_far.model or request.model,
            "choices": [],
            "usage": write_usage(so_far.usage),
        }
        yield sse.write(_encode(last))
    yield DONE
