"""Errors of the Messages API, in both directions, before and inside a stream.

The type of an error and its HTTP status belong together (one table); inside a stream,
which has its 200 already, the type alone tells what happened.
"""

from __future__ import annotations

import math
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

TYPES: dict[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    410: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    499: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""HTTP status → error type; any other 4xx is an invalid request, any other status an `api_error`."""

ERRORS: dict[str, type[ModelError]] = {
    "invalid_request_error": ModelRefused,
    "authentication_error": ModelRefused,
    "billing_error": ModelRefused,
    "permission_error": ModelRefused,
    "not_found_error": ModelRefused,
    "request_too_large": ContextTooLong,
    "rate_limit_error": ModelBusy,
    "timeout_error": ModelTimeout,
    "overloaded_error": ModelOverloaded,
    "api_error": ModelBroke,
}
"""Error type → our error; an unknown type is a `ModelBroke`."""

STATUSES: dict[int, type[ModelError]] = {
    408: ModelTimeout,
    413: ContextTooLong,
    429: ModelBusy,
    503: ModelOverloaded,
    504: ModelTimeout,
    529: ModelOverloaded,
}
"""HTTP status → our error; any other 4xx is a refusal, any other status a `ModelBroke`."""

TOO_LONG = ("prompt is too long", "exceed context limit")
"""How Anthropic says that a conversation does not fit; Claude Code looks for the first of them."""

LONGEST_WAIT = 30
"""Seconds: the SDKs wait as long as `retry-after` says, even for an hour, without a word to their user."""

DETAILED = frozenset({"thread_unsupported_request"})
"""Codes that a client reads, under `details.error_code`."""


def error_of(error: JSON) -> ModelError:
    """The error that an `error` object of a stream or a document means."""
    found = error if isinstance(error, dict) else {}
    kind, message = str(found.get("type") or "error"), str(found.get("message") or "the model gave no reason")
    known = ERRORS.get(kind, ModelBroke)
    if known is ModelRefused and _is_too_long(message):
        known = ContextTooLong
    return known(f"{kind}: {message[:500]}")


def _is_too_long(message: str) -> bool:
    return any(phrase in message for phrase in TOO_LONG)


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error that a server's refusal means; `headers` with lower-case names.

    Its message holds the status and the beginning of the body, for logs only.
    """
    text = body.decode("utf-8", "replace")
    if status in STATUSES:
        known = STATUSES[status]
    elif 400 <= status < 500:
        known = ContextTooLong if _is_too_long(text) else ModelRefused
    else:
        known = ERRORS.get(_type_in(body), ModelBroke)
    return known(f"{status}: {text[:500]}", retry_after=_read_wait(headers))


class _Body(msgspec.Struct):
    class Error(msgspec.Struct):
        type: str = ""

    error: Error


_body = msgspec.json.Decoder(_Body)


def _type_in(body: bytes) -> str:
    """The error type that a body names; "" when it names none."""
    try:
        return _body.decode(body).error.type
    except msgspec.DecodeError:
        return ""


def _read_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that `retry-after` asks for; its other form, a date, counts as not said."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def failure(failed: Failed) -> dict[str, JSON]:
    """The `error` object that tells of a failure, in a document or in a stream."""
    other = "invalid_request_error" if 400 <= failed.status < 500 else "api_error"
    error: dict[str, JSON] = {"type": TYPES.get(failed.status, other), "message": _message(failed)}
    if failed.code in DETAILED:
        error["details"] = {"error_code": failed.code}
    return error


def _message(failed: Failed) -> str:
    """The message, with the words that clients look for: a too long prompt by its phrase, a wrong field by its name."""
    if failed.code == ContextTooLong.code and not _is_too_long(failed.message):
        return f"{TOO_LONG[0]}: {failed.message}"
    if failed.param and failed.param not in failed.message:
        return f"{failed.param}: {failed.message}"
    return failed.message


def write_error(failed: Failed, run_id: str) -> tuple[int, dict[str, str], dict[str, JSON]]:
    """An error before the first byte: HTTP status, headers beyond the usual, body."""
    headers = {"x-should-retry": "true" if failed.retryable else "false"}
    if failed.retry_after is not None or failed.status in (429, 529):
        headers["retry-after"] = str(max(1, min(LONGEST_WAIT, math.ceil(failed.retry_after or 1))))
    return failed.status, headers, {"type": "error", "error": failure(failed), "request_id": run_id}
