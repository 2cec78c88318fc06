"""Values in Redis: shared by all processes of a deployment, on any number of machines.

A value is a string under prefix and key, its lifetime Redis' own. A change is one Lua
script. Because a client sends a command again when the connection breaks before the
answer, each change carries a token, which is kept for a while: a change that was made
and is sent again is recognised, and not taken for somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import redis

from bigbrain.engine.server import connect
from bigbrain.errors import StoreError, WiringError
from bigbrain.stores.store import Store

CONNECTIONS = 32
"""Of a store that has its own client; who comes when all are in use waits."""
REMEMBERED = 60_000
"""Milliseconds that a change's token is kept; longer than commands are sent again."""
PAGE = 500
"""Keys that Redis looks through at a time; others are served in between."""

SWAP = """
-- KEYS: the value, the token. ARGV: '1' if there is an old value, it, '1' if there is a new one, it, its ttl ms or '', the token's ttl ms
if redis.call('EXISTS', KEYS[2]) == 1 then return 1 end
local kept = redis.call('GET', KEYS[1])
if (kept ~= false) ~= (ARGV[1] == '1') or (kept and kept ~= ARGV[2]) then return 0 end
if ARGV[3] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[5] == '' then
  redis.call('SET', KEYS[1], ARGV[4])
else
  redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5])
end
redis.call('SET', KEYS[2], '', 'PX', ARGV[6])
return 1
"""

_SPECIAL = re.compile(r"[\\*?\[\]^-]")
"""What stands for other characters in a pattern of Redis."""


class RedisStore(Store):
    """A store in Redis; nothing is connected before the first use. `list` looks through all keys of the server."""

    def __init__(self, server: str | redis.Redis, prefix: str = "bb:memory:") -> None:
        """server: an address such as `redis://127.0.0.1:6379/0`, or a client that threads may share.

        prefix: what stands before every key; stores with other prefixes see nothing of this one.

        Raises `WiringError` when the address cannot be meant.
        """
        if isinstance(server, str):
            try:
                server = connect(server, connections=CONNECTIONS)
            except ValueError as exc:
                raise WiringError(f"`RedisStore`: {exc}; write an address like `redis://127.0.0.1:6379/0`") from exc
        self._client = server
        self._prefix = prefix
        self._script = server.register_script(SWAP)

    def __repr__(self) -> str:
        return f"RedisStore(prefix={self._prefix!r})"

    def _load(self, key: str) -> bytes | None:
        with _faults():
            value = self._client.get(self._prefix + key)
        # a client of the author's own may decode
        return value.encode() if isinstance(value, str) else value

    def _save(self, key: str, value: bytes, ttl: float | None) -> None:
        with _faults():
            self._client.set(self._prefix + key, value, px=None if ttl is None else _ms(ttl))

    def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
        with _faults():
            return bool(
                self._script(
                    keys=[self._prefix + key, f"bb:swapped:{uuid4().hex}"],
                    args=[
                        "" if old is None else "1",
                        old or b"",
                        "" if new is None else "1",
                        new or b"",
                        "" if ttl is None else _ms(ttl),
                        REMEMBERED,
                    ],
                )
            )

    def _drop(self, key: str) -> bool:
        with _faults():
            return bool(self._client.delete(self._prefix + key))

    def _keys(self, prefix: str) -> Iterable[str]:
        pattern = _SPECIAL.sub(r"\\\g<0>", self._prefix + prefix) + "*"
        with _faults():
            for name in self._client.scan_iter(match=pattern, count=PAGE):
                yield (name if isinstance(name, str) else name.decode())[len(self._prefix) :]


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as exc:
        raise StoreError(f"the memory in Redis failed: {exc}; is the server up?") from exc
