"""The last events of all processes, in one bounded stream in Redis: always on, for whoever asks what happened.

Each process writes aside, in batches; what Redis cannot take for too long is given up and
counted (`trace.dropped`). The ring forgets: it is for looking, the record of a run is the truth.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec
import redis
from msgspec.structs import replace

from bigbrain.aside import Aside
from bigbrain.messages import JSON
from bigbrain.trace import TraceEvent

logger = logging.getLogger(__name__)

KEY = "bb:trace"
SIZE = 2_000
"""Events that the ring holds, for all processes together; Redis keeps up to 100 more, because trimming whole nodes is cheap."""
KEPT = 86_400
"""Seconds after the last event until the ring is gone."""
LONGEST = 4_096
"""Bytes of one event; of a longer one the details are left out, so the ring never holds more than some 8 MB."""
PAGE = 500
"""Events that are read at a time."""


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of the ring; `process` is the host and pid of who told it."""

    kind: str
    run: str
    at: float
    process: str = ""
    flow: str = ""
    path: str = ""
    attempt: int = 1
    detail: dict[str, JSON] = {}


_decoder = msgspec.json.Decoder(Seen)


class RedisRing(Aside):
    """The tracer that writes to the ring; safe to make before a fork and while Redis is away."""

    def __init__(self, client: redis.Redis, *, size: int = SIZE, **options: float) -> None:
        """options: as `Aside` takes them."""
        super().__init__(self._add, name="trace ring", **options)  # type: ignore[arg-type]
        self._client = client
        self._size = size
        self._host = socket.gethostname()

    def _add(self, events: Sequence[TraceEvent]) -> None:
        process = f"{self._host}:{os.getpid()}"
        with self._client.pipeline(transaction=False) as pipeline:
            for event in events:
                pipeline.xadd(KEY, {"e": _line(event, process)}, maxlen=self._size, approximate=True)
            pipeline.expire(KEY, KEPT)
            pipeline.execute()


def _line(event: TraceEvent, process: str) -> bytes:
    seen = Seen(event.kind, event.run, event.at, process, event.flow, event.path, event.attempt, event.detail)
    try:
        line = msgspec.json.encode(seen)
    except (TypeError, ValueError) as exc:
        logger.warning("the details of `%s` are left out of the trace: %s", event.kind, exc)
        return msgspec.json.encode(replace(seen, detail={"left_out": "not JSON"}))
    if len(line) <= LONGEST:
        return line
    return msgspec.json.encode(replace(seen, detail={"left_out": f"{len(line)} bytes"}))


def read_ring(client: redis.Redis, *, run: str = "", kind: str = "", limit: int = SIZE) -> list[Seen]:
    """The last `limit` events, oldest first, by the time at which they happened.

    run: only those of one run. kind: only those of one kind, or of a family such as `model`.
    Raises `redis.RedisError` when the server is away.
    """
    found: list[Seen] = []
    for seen in _backwards(client):
        if (not run or seen.run == run) and (not kind or f"{seen.kind}.".startswith(f"{kind}.")):
            found.append(seen)
            if len(found) >= limit:
                break
    # of events at the same moment, the one that came first to Redis is the first
    found.reverse()
    found.sort(key=lambda seen: seen.at)
    return found


def _backwards(client: redis.Redis) -> Iterator[Seen]:
    """The ring from its newest event on; no further than twice its size, whatever is added meanwhile."""
    last = "+"
    for _ in range(2 * SIZE // PAGE):
        entries = client.xrevrange(KEY, max=last, count=PAGE) or []
        for number, fields in entries:
            if not isinstance(number, bytes) or not fields:
                continue
            last = f"({number.decode()}"
            # another version of us may write what this one cannot read
            with suppress(msgspec.MsgspecError):
                yield _decoder.decode(fields[b"e"])
        if len(entries) < PAGE:
            return
