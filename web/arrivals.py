"""What every request gets before it is looked at, and every response before it is sent: an id and the time.

A client may name the run that it wants, so that the same request sent again is the same
run (without a name, `bigbrain/retries.py` knows some of them again): in `X-Run-Id`, or in `Idempotency-Key`, which libraries of HTTP know.
"""

from __future__ import annotations

from time import perf_counter
from uuid import uuid4

from flask import Response, g, request

from bigbrain.errors import WireError
from bigbrain.identity import OPEN, RULE, Identity, bare, is_run_id

NAMED_BY = ("X-Run-Id", "Idempotency-Key")
"""The headers in which a client may name a run; the first that is there counts."""


def accept() -> None:
    """Notes when the request came and which run it names; one that names none, or in a way that is none, gets an id of ours."""
    g.accepted = perf_counter()
    g.scope = OPEN
    g.bad_header = ""
    g.named = False
    g.run_id = uuid4().hex
    for name in NAMED_BY:
        if (named := request.headers.get(name)) is None:
            continue
        if is_run_id(named):
            g.run_id, g.named = named, True
        else:
            g.bad_header = name
        return


def accepted() -> float:
    """When the request came, by `perf_counter`."""
    found: float = g.accepted
    return found


def run_id() -> str:
    """The id of the request's run, as its client knows it; a request that starts no run has one too, for the logs."""
    found: str = g.run_id
    return found


def call(run_id: str) -> None:
    """Has the response name another run than the request's headers did."""
    g.run_id = run_id


def named() -> bool:
    """Whether the client chose the run's id, so that it can come back for the answer."""
    found: bool = g.named
    return found


def scope() -> str:
    """Whose request it is: what runs it sees, and in which scope its ids are unique."""
    found: str = g.scope
    return found


def identity() -> Identity:
    """Who the request's run is. Raises `WireError` when the client names it in a way that is no id."""
    if g.bad_header:
        raise WireError(f"the header `{g.bad_header}` must be {RULE}", param=g.bad_header)
    return Identity(run_id(), scope())


def adopt(key: str) -> Identity:
    """Makes the request one for a run that is there already; `key` is its id on record."""
    g.run_id = bare(key)
    return Identity(run_id(), scope())


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
