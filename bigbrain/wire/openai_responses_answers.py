"""A `Response` ⇄ a whole response object.

Lost in writing: the stop reasons `sequence` and `pause` (as `completed`), `context` (as
`max_output_tokens`), and `refusal` without a word of refusal (as `content_filter`); parts that
have no item. Neighbouring texts come back as one.
Source: OpenAI API reference, "The response object".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from bigbrain.errors import ModelBroke, WireError
from bigbrain.events import Failed
from bigbrain.messages import JSON, Part, Request, Response, Stop, Text, ToolCall, Usage
from bigbrain.wire.openai_chat_answers import read_created
from bigbrain.wire.openai_content import own
from bigbrain.wire.openai_errors import read_error_object
from bigbrain.wire.openai_responses_asking import write_format, write_reasoning
from bigbrain.wire.openai_responses_items import read_item
from bigbrain.wire.openai_responses_output import Item, items_of, write_item
from bigbrain.wire.openai_responses_tools import write_choice, write_tools
from bigbrain.wire.pairing import fresh_id

STOPS: dict[str, Stop] = {"max_output_tokens": "length", "content_filter": "filter"}
"""OpenAI's words for why an answer is incomplete → ours."""

REASONS: dict[Stop, str] = {
    **{stop: reason for reason, stop in STOPS.items()},
    "context": "max_output_tokens",
    "refusal": "content_filter",
}
"""Ours → OpenAI's; every other answer is complete."""

CODES = {429: "rate_limit_exceeded", 529: "rate_limit_exceeded", 400: "invalid_prompt", 413: "invalid_prompt"}
"""Status of a failure → its code in a response object, which knows few; `server_error` for all others."""

VERBATIM = frozenset({"context_length_exceeded", "insufficient_quota"})
"""Codes of ours that clients know how to take: Codex does not try again."""

ECHOED = ("max_tool_calls", "top_logprobs", "prompt_cache_key", "safety_identifier", "previous_response_id")
"""Fields of the request that the answer repeats when they were set."""


class _InputDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int | None = None


class UsageRead(msgspec.Struct, frozen=True):
    """Token counts: the cached ones are among the input's."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None

    @property
    def usage(self) -> Usage:
        """The counts, disjoint."""
        details, output = self.input_tokens_details or _InputDetails(), self.output_tokens_details or _OutputDetails()
        cached, written = details.cached_tokens or 0, details.cache_write_tokens or 0
        return Usage(
            input=max(0, (self.input_tokens or 0) - cached - written),
            output=self.output_tokens or 0,
            cache_read=cached,
            cache_write=written,
            reasoning=output.reasoning_tokens or 0,
        )


class _Incomplete(msgspec.Struct, frozen=True):
    reason: str | None = None


class Document(msgspec.Struct, frozen=True):
    """A response object, whole or as a stream's first and last events hold it."""

    id: str | None = None
    model: str | None = None
    created_at: float | None = None
    status: str | None = None
    output: list[dict[str, JSON]] | None = None
    usage: UsageRead | None = None
    error: JSON = None
    incomplete_details: _Incomplete | None = None


def read_stop(document: Document, parts: Sequence[Part]) -> Stop:
    """Why an answer of these parts ended."""
    if document.status == "incomplete":
        reason = document.incomplete_details.reason if document.incomplete_details else None
        return STOPS.get(reason or "", "length")
    if any(isinstance(part, ToolCall) for part in parts):
        return "calls"
    return "refusal" if any(isinstance(part, Text) and part.refusal for part in parts) else "end"


def read_failure(document: Document) -> Exception:
    """The `ModelError` that a response which did not succeed means."""
    if document.error:
        return read_error_object(document.error)
    return ModelBroke(f"the model's answer has the status {document.status!r}")


def read_parts(output: Sequence[dict[str, JSON]]) -> Iterator[Part]:
    """The parts of `output`, each call under an id of its own. Raises `ModelBroke` when an item is none."""
    taken: set[str] = set()
    for place, item in enumerate(output):
        try:
            parts = tuple(read_item(item, f"output[{place}]", ()))
        except WireError as exc:
            raise ModelBroke(f"the model answered with an item that its protocol does not know: {exc}") from exc
        for part in parts:
            yield replace(part, id=fresh_id(part.id, taken)) if isinstance(part, ToolCall) else part


def read_response(document: JSON) -> Response:
    """A whole answer. Raises the `ModelError` that a failed one means, and `ModelBroke` when it is no answer."""
    try:
        read = msgspec.convert(document, Document)
    except msgspec.ValidationError as exc:
        raise ModelBroke(f"the answer is no response object: {exc}") from exc
    if read.error or read.status in ("failed", "cancelled"):
        raise read_failure(read)
    if read.output is None:
        raise ModelBroke("the answer has no `output`")
    parts = tuple(read_parts(read.output))
    return Response(
        id=read.id or "",
        model=read.model or "",
        created=read_created(read.created_at),
        parts=parts,
        stop=read_stop(read, parts),
        usage=read.usage.usage if read.usage else Usage(),
    )


def write_usage(usage: Usage) -> dict[str, JSON]:
    """Token counts as this wire has them."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def write_response(response: Response, request: Request) -> dict[str, JSON]:
    """An answer as a response object; one without a stop reason is still in progress, or not yet begun."""
    reason = reason_of(response)
    if response.stop is None:
        waits = own(request.extra).get("background") is True and not response.parts
        return write_document(response, request, "queued" if waits else "in_progress")
    return write_document(response, request, "incomplete" if reason else "completed")


def reason_of(response: Response) -> str:
    """OpenAI's word for why the answer is incomplete, or ""."""
    refused = any(isinstance(part, Text) and part.refusal for part in response.parts)
    if response.stop is None or (response.stop == "refusal" and refused):
        return ""
    return REASONS.get(response.stop, "")


def write_output(response: Response, request: Request) -> list[JSON]:
    """The items of an answer, the same as a stream tells of each."""
    return [write_done(item, response, request) for item in items_of(response.parts)]


def write_done(item: Item, response: Response, request: Request) -> dict[str, JSON]:
    """An item when nothing more comes of it; a message that the token limit cut is incomplete."""
    cut = item.kind == "message" and bool(reason_of(response)) and item.place == len(items_of(response.parts)) - 1
    included = own(request.extra).get("include")
    sealed = isinstance(included, list) and "reasoning.encrypted_content" in included
    status = "incomplete" if cut else "completed"
    return write_item(item, response.id, request.tools, status, sealed=sealed)


def write_document(
    response: Response, request: Request, status: str, failed: Failed | None = None, *, output: bool = True
) -> dict[str, JSON]:
    """A response object of any status, with all fields that clients look for.

    failed: why it failed. output: whether it tells of what was said so far.
    """
    extra, reason = own(request.extra), reason_of(response)
    over = response.stop is not None
    document: dict[str, JSON] = {
        "id": response.id,
        "object": "response",
        "created_at": response.created,
        "status": status,
        "background": extra.get("background") is True,
        "error": write_failed(failed) if failed else None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": _instructions(request),
        "max_output_tokens": request.max_tokens,
        "metadata": extra.get("metadata") or {},
        "model": response.model or request.model,
        "output": write_output(response, request) if output else [],
        "parallel_tool_calls": request.parallel_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None, **write_reasoning(request)},
        "service_tier": "default",
        "store": extra.get("store") is not False,
        "temperature": request.temperature,
        "text": write_format(request) or {"format": {"type": "text"}},
        "tool_choice": write_choice(request.tool_choice, request.tools),
        "tools": write_tools(request.tools),
        "top_p": request.top_p,
        "truncation": extra.get("truncation") or "disabled",
        "usage": write_usage(response.usage) if over else None,
        "user": request.user or None,
    }
    return {**document, **{name: extra[name] for name in ECHOED if extra.get(name) is not None}}


def _instructions(request: Request) -> str | None:
    """What came as `instructions`, which is a system message here."""
    for message in request.messages[:1]:
        if message.role == "system" and any(own(part.vendor).get("field") == "instructions" for part in message.parts):
            return message.text
    return None


def write_failed(failed: Failed) -> dict[str, JSON]:
    """Why a response failed, in the few codes that this wire has."""
    code = failed.code if failed.code in VERBATIM else CODES.get(failed.status, "server_error")
    return {"code": code, "message": failed.message}
