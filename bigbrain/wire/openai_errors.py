"""OpenAI's errors: a refusal by HTTP status, and the `error` object in a document or a stream.

Source: OpenAI API, "Error codes"; llama.cpp, vLLM and LM Studio for the words of servers
that speak the dialect without its codes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from bigbrain.errors import (
    ContextTooLong,
    ModelBroke,
    ModelBusy,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
)
from bigbrain.events import Failed
from bigbrain.messages import JSON

SHOWN = 500
"""Characters of a server's own words that an error keeps."""

LONGEST_WAIT = 30
"""Seconds of `retry-after` that we ever ask for: some clients wait silently for whatever stands there."""

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context length|context size"
    r"|context window|prompt is too long|context the overflows|too many tokens",
    re.IGNORECASE,
)

_KINDS: tuple[tuple[str, int], ...] = (
    ("insufficient_quota", 402),
    ("rate_limit", 429),
    ("too_many_requests", 429),
    ("overloaded", 529),
    ("unavailable", 503),
    ("timeout", 504),
    ("api_key", 401),
    ("authentication", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid_request", 400),
    ("context_length_exceeded", 400),
    ("exceed_context_size", 400),
)
"""A word in `type` or `code` → the status it stands for, where a stream has none; the first that fits counts."""

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}

_CODES = {429: "rate_limit_exceeded"}
"""Status → OpenAI's own code, where clients look for it; elsewhere the code is the error's."""


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error that a server's refusal means; `headers` with lower-case names.

    The message holds the server's words and is not for clients. A spent quota
    is a refusal, though it comes with 429: asking again cannot help.
    """
    words = body.decode("utf-8", "replace")[:SHOWN]
    return _meant(status, words, _wait(headers))


def read_error_object(error: JSON) -> ModelError:
    """The error of an `error` object that came with a good status, in a document or in mid-stream."""
    words = msgspec.json.encode(error).decode()[:SHOWN]
    status = 500
    if isinstance(error, dict):
        given = [error.get(name) for name in ("status", "code", "type")]
        kind = " ".join(str(value) for value in given).lower()
        numbers = [value for value in given if type(value) is int and 400 <= value < 600]
        status = numbers[0] if numbers else next((number for word, number in _KINDS if word in kind), 500)
    return _meant(status, words, None)


def _meant(status: int, words: str, wait: float | None) -> ModelError:
    text = f"the model's server answered {status}: {words}"
    if status in (400, 413, 422, 500) and _TOO_LONG.search(words):
        return ContextTooLong(text)
    if status == 429 and "insufficient_quota" not in words:
        return ModelBusy(text, retry_after=wait)
    if status in (503, 529):
        return ModelOverloaded(text, retry_after=wait)
    if status in (408, 504):
        return ModelTimeout(text, retry_after=wait)
    if 400 <= status < 500:
        return ModelRefused(text)
    return ModelBroke(text, retry_after=wait)


def _wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None when it asks nothing that can be understood."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def write_error_object(failed: Failed) -> dict[str, JSON]:
    """The body of an error, which is also its frame in a stream."""
    kind = _TYPES.get(failed.status, "invalid_request_error" if failed.status < 500 else "server_error")
    code = _CODES.get(failed.status, failed.code)
    return {"error": {"message": failed.message, "type": kind, "param": failed.param, "code": code}}


def write_error(failed: Failed, run_id: str) -> tuple[int, dict[str, str], dict[str, JSON]]:
    """An error before the first byte: HTTP status, headers beyond the usual, body.

    OpenAI knows no 529. Its SDKs obey `x-should-retry` either way.
    """
    status = 503 if failed.status == 529 else failed.status
    headers = {"x-should-retry": "true" if failed.retryable else "false"}
    if run_id:
        headers["x-request-id"] = run_id
    if failed.retry_after is not None or status == 429:
        headers["retry-after"] = str(min(LONGEST_WAIT, max(1, round(failed.retry_after or 1))))
    return status, headers, write_error_object(failed)
