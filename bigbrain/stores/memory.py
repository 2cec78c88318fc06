"""Values in this process: gone with it, and not seen by others. For samples and tests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bigbrain.stores.store import Store

FEW = 1000
"""Keys that are not worth looking through for those whose time is over."""


class _Kept(NamedTuple):
    value: bytes
    until: float


class MemStore(Store):
    """A store in memory."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds, from any start."""
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}
        self._many = FEW

    def _load(self, key: str) -> bytes | None:
        kept = self._kept.get(key)
        return None if kept is None or kept.until <= self._clock() else kept.value

    def _save(self, key: str, value: bytes, ttl: float | None) -> None:
        with self._lock:
            self._keep(key, value, ttl)

    def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
        with self._lock:
            if self._load(key) != old:
                return False
            if new is None:
                self._kept.pop(key, None)
            else:
                self._keep(key, new, ttl)
            return True

    def _drop(self, key: str) -> bool:
        with self._lock:
            there = self._load(key) is not None
            self._kept.pop(key, None)
            return there

    def _keys(self, prefix: str) -> Iterable[str]:
        with self._lock:
            now = self._clock()
            return [key for key, kept in self._kept.items() if key.startswith(prefix) and kept.until > now]

    def _keep(self, key: str, value: bytes, ttl: float | None) -> None:
        now = self._clock()
        self._kept[key] = _Kept(value, float("inf") if ttl is None else now + ttl)
        if len(self._kept) > self._many:
            self._kept = {key: kept for key, kept in self._kept.items() if kept.until > now}
            # looked through again when it has doubled, so that this costs little however many there are
            self._many = max(FEW, 2 * len(self._kept))
