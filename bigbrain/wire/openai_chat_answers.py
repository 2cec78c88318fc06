"""A `Response` ⇄ a whole chat completion.

The wire is flat: texts are one text, thoughts are one text, calls stand behind both. An answer
read back has its parts in this order: thinking, text, refusal, calls. Lost in writing: the stop
reasons `sequence`, `pause` (as `stop`), `context` (as `length`) and `refusal` without a word of
refusal (as `content_filter`); parts that are neither text, thought nor call.
Source: OpenAI API reference, "chat completion object".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from bigbrain.errors import ModelBroke
from bigbrain.messages import JSON, Part, Request, Response, Stop, Text, Thinking, ToolCall, Usage
from bigbrain.wire.openai_chat_asking import is_custom, write_call
from bigbrain.wire.openai_chat_requests import Call
from bigbrain.wire.openai_chat_thinking import read_thinking, write_details
from bigbrain.wire.openai_chat_wishes import choice_count, logprobs_of, wants_functions
from bigbrain.wire.openai_content import ContentPart, noted, own, read_arguments
from bigbrain.wire.openai_errors import read_error_object
from bigbrain.wire.pairing import fresh_id

STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "tool_calls": "calls",
    "content_filter": "filter",
    "function_call": "calls",
}
"""OpenAI's words for why an answer ended → ours."""

_DEPRECATED = "function_call"

REASONS: dict[Stop, str] = {
    **{stop: reason for reason, stop in STOPS.items() if reason != _DEPRECATED},
    "sequence": "stop",
    "pause": "stop",
    "context": "length",
    "refusal": "content_filter",
}
"""Ours → OpenAI's, with those that OpenAI has no word for."""

CUT = frozenset({"length", "content_filter"})
"""Reasons for which the last call may be half an instruction, so that they count for more than calls do (B03)."""


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class UsageRead(msgspec.Struct, frozen=True):
    """Token counts as OpenAI has them: the cached ones are among the prompt's."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _OutputDetails | None = None

    @property
    def usage(self) -> Usage:
        """The counts, disjoint."""
        prompt = self.prompt_tokens_details or _PromptDetails()
        output = self.completion_tokens_details or _OutputDetails()
        cached, written = prompt.cached_tokens or 0, prompt.cache_write_tokens or 0
        return Usage(
            input=max(0, (self.prompt_tokens or 0) - cached - written),
            output=self.completion_tokens or 0,
            cache_read=cached,
            cache_write=written,
            reasoning=output.reasoning_tokens or 0,
        )


class _Message(msgspec.Struct, frozen=True):
    content: str | list[ContentPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: JSON = None
    reasoning_details: JSON = None
    tool_calls: list[Call] | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None = None
    logprobs: dict[str, JSON] | None = None


class _Completion(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    id: str | None = None
    model: str | None = None
    created: float | None = None
    usage: UsageRead | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    error: JSON = None


def read_stop(reason: str, parts: Sequence[Part]) -> Stop:
    """Why an answer of these parts ended; what came counts for more than what a server says of it."""
    if reason not in CUT:
        reason = "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"
    stop = STOPS[reason]
    if stop == "end" and any(isinstance(part, Text) and part.refusal for part in parts):
        return "refusal"
    return stop


def write_stop(response: Response) -> str:
    """OpenAI's word for why the answer ended, the same in a stream and in a document."""
    reason = REASONS[response.stop or "end"]
    if response.stop == "refusal" and any(isinstance(part, Text) and part.refusal for part in response.parts):
        reason = "stop"
    if reason not in CUT:
        return "tool_calls" if response.calls else "stop"
    return reason


def read_response(document: JSON) -> Response:
    """A whole answer; of several choices the first.

    Raises the `ModelError` that an `error` in the document means, and `ModelBroke` when it is no answer.
    """
    try:
        read = msgspec.convert(document, _Completion)
    except msgspec.ValidationError as exc:
        raise ModelBroke(f"the answer is no chat completion: {exc}") from exc
    if read.error:
        raise read_error_object(read.error)
    if not read.choices:
        raise ModelBroke("the answer has no `choices`")
    parts = tuple(_read_message(read.choices[0], read.id or ""))
    return Response(
        id=read.id or "",
        model=read.model or "",
        created=read_created(read.created),
        parts=parts,
        stop=read_stop(read.choices[0].finish_reason or "stop", parts),
        usage=read.usage.usage if read.usage else Usage(),
        vendor=noted(system_fingerprint=read.system_fingerprint, service_tier=read.service_tier),
    )


def read_created(created: float | None) -> int:
    """Seconds; some servers send fractions, or nonsense, which counts as not known."""
    return int(created) if created is not None and 0 <= created < 1e12 else 0


def _read_message(choice: _Choice, response_id: str) -> Iterator[Part]:
    message = choice.message
    field = "reasoning_content" if message.reasoning_content else "reasoning"
    for thought in read_thinking(message.reasoning_content or message.reasoning, field, message.reasoning_details):
        known = {**own(thought.vendor), "details": True} if message.reasoning_details else own(thought.vendor)
        yield replace(thought, vendor={**thought.vendor, **noted(**known)})
    content = message.content
    for text in [content] if isinstance(content, str) else [part.text for part in content or ()]:
        if text:
            yield Text(text, vendor=noted(logprobs=choice.logprobs and {**choice.logprobs, "refusal": None}))
    if message.refusal:
        refused = (choice.logprobs or {}).get("refusal")
        yield Text(message.refusal, refusal=True, vendor=noted(logprobs=refused and {"refusal": refused}))
    taken: set[str] = set()
    for number, call in enumerate(message.tool_calls or ()):
        new_id = fresh_id(call.id or minted_id(number, response_id), taken)
        if call.custom is not None:
            yield ToolCall(new_id, call.custom.name, call.custom.input, noted(type="custom"))
        elif call.function is not None:
            yield ToolCall(new_id, call.function.name, read_arguments(call.function.arguments))
        else:
            raise ModelBroke(f"call {number} of the answer calls nothing")


def minted_id(number: int, response_id: str) -> str:
    """The id of a call that came without one: the same whenever the same answer is read."""
    return f"call_{number}_{response_id}" if response_id else f"call_{number}"


def write_usage(usage: Usage) -> dict[str, JSON]:
    """Token counts as OpenAI has them."""
    prompt = {"cached_tokens": usage.cache_read}
    if usage.cache_write:
        prompt["cache_write_tokens"] = usage.cache_write
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def write_response(response: Response, request: Request) -> dict[str, JSON]:
    """A whole answer as a chat completion."""
    choice = {
        "message": _write_message(response, functions=wants_functions(request)),
        "logprobs": logprobs_of(response),
        "finish_reason": write_reason(response, request),
    }
    document: dict[str, JSON] = {
        "id": response.id,
        "object": "chat.completion",
        "created": response.created,
        "model": response.model or request.model,
        "choices": [{"index": index, **choice} for index in range(choice_count(request))],
        "usage": write_usage(response.usage),
    }
    if own(request.extra).get("service_tier") is not None:
        document["service_tier"] = "default"
    if (metadata := own(request.extra).get("metadata")) is not None:
        document["metadata"] = metadata
    return document


def write_reason(response: Response, request: Request) -> str:
    """As `write_stop`, in the deprecated word for whoever sent `functions`."""
    reason = write_stop(response)
    return _DEPRECATED if reason == "tool_calls" and wants_functions(request) else reason


def _write_message(response: Response, *, functions: bool) -> dict[str, JSON]:
    texts = [part for part in response.parts if isinstance(part, Text)]
    content = "".join(part.text for part in texts if not part.refusal)
    refusal = "".join(part.text for part in texts if part.refusal)
    # Verbatim, as a stream has them: only nothing is no JSON text that a client could parse.
    calls = [
        write_call(call, call.arguments if is_custom(call) or call.arguments.strip() else "{}")
        for call in response.calls
    ]
    thoughts = "".join(part.text for part in response.parts if isinstance(part, Thinking))
    message: dict[str, JSON] = {
        "role": "assistant",
        "content": content or (None if calls or refusal else ""),
        "refusal": refusal or None,
        "annotations": [],
    }
    if thoughts:
        message["reasoning_content"] = thoughts
    if details := write_details(response.parts):
        message["reasoning_details"] = details
    if calls and functions:
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    return message
