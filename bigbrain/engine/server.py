"""Connections to the Redis that holds the runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.client import PubSub
from redis.retry import Retry


def connect(url: str, *, connections: int = 256, retries: int = 20, timeout: float = 15.0) -> redis.Redis:
    """A client for the server at `url`, safe to share between threads.

    It waits for one of `connections` when all are in use, because a step that
    fails for want of a connection would be lost for nothing. Commands are sent
    again for some 15 seconds while the server is away: each of ours may be.
    """
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=30,
        socket_timeout=timeout,
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), retries=retries),
    )
    return redis.Redis(connection_pool=pool)


@contextlib.contextmanager
def subscribed(client: redis.Redis, *channels: str) -> Iterator[PubSub]:
    """A connection of its own that hears `channels`; its first messages tell that it does."""
    pubsub = PubSub(client.connection_pool)
    try:
        pubsub.subscribe(*channels)
        yield pubsub
    finally:
        pubsub.close()
