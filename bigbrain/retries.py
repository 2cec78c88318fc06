"""How a request that a client sends again, without a name for its run, is known for what it is.

No client sends an idempotency key, and many send a request again when its connection breaks or its answer fails: up
to 30 times for one turn. What tells a retry is different for each, and so is how much it can be trusted:

sure     An SDK made by Stainless counts its tries (`x-stainless-retry-count`) and repeats the body as it was. The same
         body is the same run, whatever has become of that, until minutes after its end.
likely   Claude Code names its session, Codex its turn, and both change the body a little. Their request is a retry of
         the one before only if that one was lost: its client left without its answer, or was told of a failure.
guess    Others repeat the body and say nothing. People who ask for another answer do the same, so only a
         run that has lost its client and is still under way is joined.

Everything else is a new request. Keys of two clients never meet.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, TypeAlias

import msgspec
import redis

from bigbrain.identity import fingerprint
from bigbrain.messages import JSON, Request

logger = logging.getLogger(__name__)

Trust: TypeAlias = Literal["sure", "likely", "guess"]

REMEMBERED = 3600
"""Seconds for which a request is known again: clients wait for one answer for ten minutes and more."""
LATELY = 300
"""Seconds after the end of a run in which it is still asked for again."""
LOST_FOR = 60
"""Seconds for which a run that lost its client waits to be joined: clients wait up to 40 between two tries."""

COUNT = "x-stainless-retry-count"
PATIENCE = ("x-stainless-timeout", "x-stainless-read-timeout")
"""How long an SDK waits: for the whole answer or its head, or for the next byte."""
SESSION = "x-claude-code-session-id"

EARLIER = """
-- ARGV: key of the mark, id of a new run, how far the mark is to be trusted, seconds it is known, seconds after a run's end.
-- The run to join, else the new one is known.
local earlier = redis.call('GET', ARGV[1])
if earlier then
  local r = redis.call('HMGET', 'bb:run:' .. earlier, 'status', 'stop', 'ended')
  local long_over = r[3] and redis.call('TIME')[1] - r[3] / 1000 > tonumber(ARGV[5])
  local lost = redis.call('EXISTS', 'bb:lost:' .. earlier) == 1
  local under_way = (r[1] == 'queued' or r[1] == 'running') and not r[2]
  if r[1] and not long_over and (ARGV[3] == 'sure' or (lost and (ARGV[3] == 'likely' or under_way))) then
    redis.call('EXPIRE', ARGV[1], ARGV[4])
    return earlier
  end
end
redis.call('SET', ARGV[1], ARGV[2], 'EX', ARGV[4])
return false
"""


@dataclass(frozen=True)
class Mark:
    """What a request and its retries have in common, and how far it is to be trusted."""

    digest: str
    trust: Trust


def mark_of(request: Request, flow: str, header: Callable[[str], str]) -> Mark:
    """The mark of a request to a flow; `header` gives the value of a header by its name in lower case, "" when there is none."""
    if turn := _codex_turn(request):
        rounds = sum(len(message.results) for message in request.messages)
        return Mark(_digest("codex", turn, rounds, flow), "likely")
    if session := header(SESSION):
        # a retry may stream or not, think aloud or not, and allow fewer tokens
        asked = (request.messages, [tool.name for tool in request.tools], request.tool_choice, request.schema)
        return Mark(_digest("claude-code", session, flow, asked), "likely")
    again = header(COUNT).strip() not in ("", "0")
    return Mark(fingerprint(request, flow), "sure" if again else "guess")


def _codex_turn(request: Request) -> str:
    told = request.extra.get("openai", {}).get("client_metadata")
    turn = told.get("turn_id") if isinstance(told, dict) else None
    return turn if isinstance(turn, str) else ""


def _digest(*values: JSON) -> str:
    return sha256(msgspec.json.encode(values, order="deterministic")).hexdigest()


def patience_of(header: Callable[[str], str]) -> float:
    """After how many seconds the client of a request gives up and sends it again, as its SDK says; infinite when that says nothing."""
    return min(_seconds(header(name)) for name in PATIENCE)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return math.inf
    return seconds if seconds > 0 else math.inf


class Retries:
    """The requests of the last hour, in Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._earlier = client.register_script(EARLIER)

    def earlier(self, mark: Mark, scope: str, run_id: str) -> str | None:
        """The run that this request asks for once more; None for a new one, which is known under `run_id` from now on.

        Ids are those on record. Raises `redis.RedisError`.
        """
        key = _key(mark, scope)
        found: bytes | None = self._earlier(args=[key, run_id, mark.trust, REMEMBERED, LATELY])
        return found.decode() if found else None

    def lost(self, run_id: str, scope: str = "", mark: Mark | None = None) -> None:
        """Notes that a run's client has not got its answer; not while the server is away, which is no reason to break an answer.

        scope, mark: of its request, which asks for this run from now on, whatever others have asked the same since.
        """
        try:
            with self._client.pipeline() as pipeline:
                pipeline.set(f"bb:lost:{run_id}", b"1", ex=LOST_FOR)
                if mark is not None:
                    pipeline.set(_key(mark, scope), run_id, ex=REMEMBERED)
                pipeline.execute()
        except redis.RedisError as exc:
            logger.warning("that the client of run %s was lost could not be noted: %s", run_id, exc)


def _key(mark: Mark, scope: str) -> str:
    return f"bb:asked:{scope}:{mark.digest[:32]}"
