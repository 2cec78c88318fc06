"""What went wrong at a model's server, as a `ModelError`.

An SDK wraps what our transport raises and adds errors of its own; their texts may
hold our key, because servers repeat it, so keys are taken out of every message here.
"""

from __future__ import annotations

import httpx2

from bigbrain.errors import BrainError, ModelBroke, ModelError
from bigbrain.wire import Dialect

SHORTEST_KEY = 6
"""Shorter ones are no secrets (`none`, `k`), and would be found inside words."""


def refusal(dialect: Dialect, response: httpx2.Response) -> ModelError:
    """The error of an answer whose status is not 2xx; the server's `x-should-retry` outweighs our own judgement."""
    error = dialect.read_error(response.status_code, dict(response.headers), response.content)
    match response.headers.get("x-should-retry"):
        case "true":
            error.retryable = True
        case "false":
            error.retryable = False
    return error


def broken(exc: BaseException) -> BrainError:
    """What our transport raised, from inside the SDK's error; `ModelBroke` with its text if that was something else."""
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, BrainError):
            return cause
        cause = cause.__cause__
    return ModelBroke(f"{type(exc).__name__}: {exc}")


def without_key(error: BrainError, key: str) -> BrainError:
    """The same error, the key taken out of its message."""
    if len(key) >= SHORTEST_KEY:
        error.args = tuple(str(arg).replace(key, "[key]") for arg in error.args)
    return error
