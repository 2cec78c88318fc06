"""`/v1/diagnostics/trace`: what happened lately, in all processes."""

from __future__ import annotations

import msgspec
import redis
from flask import Blueprint, Response, request

from bigbrain.errors import WireError
from bigbrain.identity import Identity
from bigbrain.ring import SIZE, read_ring
from web.arrivals import scope

LIMIT = 500
"""Events in an answer whose request does not say how many."""


def routes(client: redis.Redis) -> Blueprint:
    """The trace as an array of events, oldest first: `run`, `kind` (or its family, such as `model`) and `limit` choose.

    Whoever has one of the deployment's keys sees the events of all runs.
    """
    blueprint = Blueprint("diagnostics", __name__)

    @blueprint.get("/v1/diagnostics/trace")
    def trace() -> Response:
        run, kind, limit = request.args.get("run", ""), request.args.get("kind", ""), _read_limit()
        # the trace names runs as they are on record, a client knows its own by their ids
        own = read_ring(client, run=Identity(run, scope()).key, kind=kind, limit=limit) if run else []
        events = own or read_ring(client, run=run, kind=kind, limit=limit)
        return Response(msgspec.json.encode(events), content_type="application/json")

    return blueprint


def _read_limit() -> int:
    text = request.args.get("limit", str(LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= SIZE):
        raise WireError(f"`limit` must be a whole number from 1 to {SIZE}", param="limit")
    return int(text)
