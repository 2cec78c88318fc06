"""What every request gets before it is looked at, and every response before it is sent: an id and the time."""

from __future__ import annotations

from time import perf_counter
from uuid import uuid4

from flask import Response, g


def accept() -> None:
    """Notes when the request came and gives it the id of the run that it may start."""
    g.accepted = perf_counter()
    g.run_id = uuid4().hex


def accepted() -> float:
    """When the request came, by `perf_counter`."""
    found: float = g.accepted
    return found


def run_id() -> str:
    """The id of the request's run, 32 hex digits; a request that starts no run has one too, to be found in the logs."""
    found: str = g.run_id
    return found


def overhead_ms() -> str:
    """Milliseconds from the request's headers until now."""
    return f"{(perf_counter() - g.accepted) * 1000:.2f}"


def sign(response: Response) -> Response:
    """The response under the request's id, in each header in which a client looks for one.

    OpenAI's SDKs read `x-request-id`, Anthropic's `request-id`; `X-Run-Id` is ours.
    """
    for name in ("X-Run-Id", "x-request-id", "request-id"):
        response.headers[name] = g.run_id
    return response
