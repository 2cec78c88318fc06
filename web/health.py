"""Whether this process lives, and whether a request sent to it would be answered."""

from __future__ import annotations

from collections.abc import Callable

import redis
from flask import Blueprint, Response, jsonify

WORKERS = "bb:worker:*"
"""Keys that workers keep alive, one each."""


def live_workers(client: redis.Redis) -> int:
    """How many workers have lately told that they live. Raises `redis.RedisError` when the server is away."""
    return sum(1 for _ in client.scan_iter(WORKERS, count=1000))


def routes(client: redis.Redis, workers: Callable[[], int]) -> Blueprint:
    """`/healthz`, `/readyz` and what clients ask to see whether anybody is there."""
    blueprint = Blueprint("health", __name__)

    @blueprint.get("/healthz")
    def healthz() -> Response:
        return jsonify(status="ok")

    # Claude Code warms its connection up by HEAD on the second one
    @blueprint.get("/")
    @blueprint.get("/api/hello")
    def hello() -> Response:
        return jsonify(status="ok")

    @blueprint.get("/readyz")
    def readyz() -> Response:
        missing = _missing(client, workers)
        response = jsonify(status="missing" if missing else "ok", missing=missing)
        response.status_code = 503 if missing else 200
        return response

    return blueprint


def _missing(client: redis.Redis, workers: Callable[[], int]) -> list[str]:
    """What a request would wait for in vain."""
    try:
        client.ping()
        return [] if workers() else ["worker"]
    except redis.RedisError:
        return ["redis"]
