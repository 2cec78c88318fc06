"""Why a run of the CLI gave no reply, as an error of the model."""

from __future__ import annotations

import re

from bigbrain.errors import BrainError, ContextTooLong, ModelBroke, ModelBusy, ModelError, ModelOverloaded, ModelRefused
from bigbrain.jsonvalue import JSON
from bigbrain.models.failures import without_key
from bigbrain.wire.anthropic_errors import read_error

FAULTS: dict[str, type[ModelError]] = {
    "authentication_failed": ModelRefused,
    "billing_error": ModelRefused,
    "invalid_request": ModelRefused,
    "model_not_found": ModelRefused,
    "rate_limit": ModelBusy,
    "overloaded": ModelOverloaded,
}
"""The CLI's names for what went wrong, where it knows no HTTP status; any other is a `ModelBroke`."""

SHOWN = 1000
"""Characters of the CLI's own words that an error repeats."""

TOO_LONG = "prompt is too long"
"""How the CLI, like Anthropic, says that a conversation does not fit."""


def said(result: dict[str, JSON], fault: str) -> ModelError:
    """The error that a `result` with `is_error` means; `fault` is the CLI's name for it, if it gave one."""
    errors = result.get("errors")
    words = str(result.get("result") or "; ".join(map(str, errors if isinstance(errors, list) else ())) or fault)
    text = f"Claude Code: {words[:SHOWN] or result.get('subtype')}"
    status = result.get("api_error_status") or _status_in(words)
    if result.get("terminal_reason") == "prompt_too_long" or TOO_LONG in words.casefold():
        return ContextTooLong(f"{text}; begin another session with a new `session_id`")
    if isinstance(status, int):
        return type(read_error(status, {}, b""))(text)
    return FAULTS.get(fault, ModelBroke)(text)


def _status_in(words: str) -> int | None:
    """The HTTP status in the words of an older CLI, which gives it nowhere else."""
    found = re.match(r"(?:.*· )?API Error: ([45]\d\d)\b", words)
    return int(found[1]) if found else None


def silent(status: int | None, complaint: str) -> ModelError:
    """The error of a run that ended without a result: its exit status, None if it was killed, and its error output."""
    how = "was killed" if status is None else f"ended with status {status}"
    words = f": {complaint[-SHOWN:]}" if complaint else ""
    return ModelBroke(f"Claude Code {how} before it had answered{words}")


def unusable(what: str) -> ModelError:
    """The error of a CLI that cannot be used as it is; asking again does not help."""
    error = ModelBroke(what)
    error.retryable = False
    return error


def secret(error: BrainError, key: str | None) -> BrainError:
    """The same error without our key, which the CLI repeats as the server does."""
    return without_key(error, key or "")
