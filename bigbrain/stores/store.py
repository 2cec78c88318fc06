"""The seam between an author's handlers and whatever keeps their values.

A store inherits `Store` and writes five methods on bytes; what a value is, how it is
compared and how a change finds out that it came too late is the same for all.
"""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import ClassVar, Protocol, TypeAlias, TypeVar, overload

from bigbrain.errors import StoreError
from bigbrain.messages import JSON
from bigbrain.stores.values import (
    check_key,
    check_kind,
    check_prefix,
    check_ttl,
    read_value,
    same,
    write_value,
)

T = TypeVar("T")
Keys: TypeAlias = list[str]

LONGEST_PAUSE = 0.02
"""Seconds between two of these tries at most."""


class Store(Protocol):
    """JSON values under keys, from any thread, any process that uses the same store, and any run at once.

    Keys are text of 1 to 512 bytes. Values are JSON, dataclasses, msgspec Structs or pydantic
    models. `ttl` is a value's lifetime in seconds; whoever writes a value sets it anew, None for
    ever. Every method raises `StoreError` when a key or a value cannot be kept, or the store fails.
    """

    tries: ClassVar[int] = 500
    """How often a change is tried that others come before; with the pauses some five seconds."""

    @overload
    def get(self, key: str, kind: None = None, *, default: JSON = None) -> JSON: ...
    @overload
    def get(self, key: str, kind: type[T]) -> T | None: ...
    @overload
    def get(self, key: str, kind: type[T], *, default: T) -> T: ...
    def get(self, key: str, kind: object = None, *, default: JSON = None) -> JSON:
        """The value of a key, or `default`; as a value of `kind`, such as `list[Fact]`, if one is given.

        The value is the caller's own: changing it changes nothing that is kept.
        """
        check_key(key)
        check_kind(key, kind)
        kept = self._load(key)
        return default if kept is None else read_value(key, kept, kind)

    def put(self, key: str, value: object, *, ttl: float | None = None) -> None:
        """Keeps a value, whatever was there before."""
        check_key(key)
        check_ttl(ttl)
        self._save(key, write_value(key, value), ttl)

    def delete(self, key: str) -> bool:
        """Forgets a key; False when it was not there."""
        check_key(key)
        return self._drop(key)

    def list(self, prefix: str = "") -> Keys:
        """The keys that begin with `prefix`, sorted. Reads through all keys."""
        check_prefix(prefix)
        return sorted(set(self._keys(prefix)))

    def swap(self, key: str, old: object, new: object, *, ttl: float | None = None) -> bool:
        """Changes the value from `old` to `new`; False, and nothing done, when it is not `old` any more.

        old: None when there must be no value. new: None to forget the key.
        """
        check_key(key)
        check_ttl(ttl)
        before = None if old is None else write_value(key, old)
        after = None if new is None else write_value(key, new)
        for tries in range(self.tries):
            kept = self._load(key)
            if kept is None or before is None:
                if kept is not None or before is not None:
                    return False
            elif not same(key, kept, before):
                return False
            # what is kept is compared bytewise: an equal value in another order of keys is put back by others
            if self._swap(key, kept, after, ttl):
                return True
            _pause(tries)
        raise self._contended(key)

    @overload
    def update(
        self, key: str, fn: Callable[[JSON], object], default: JSON = None, *, ttl: float | None = None
    ) -> JSON: ...
    @overload
    def update(self, key: str, fn: Callable[[T], T], default: T, *, kind: type[T], ttl: float | None = None) -> T: ...
    def update(
        self,
        key: str,
        fn: Callable[[JSON], object],
        default: JSON = None,
        *,
        kind: object = None,
        ttl: float | None = None,
    ) -> JSON:
        """Changes the value to what `fn` makes of it, or of `default`; the new value. No change by others gets lost.

        fn: may be called several times, so it does nothing but give the new value.

        Raises `StoreError` when others come before it again and again for some seconds, or when
        `fn` gives None. What `fn` raises is raised, and nothing is changed.
        """
        check_key(key)
        check_ttl(ttl)
        for tries in range(self.tries):
            kept = self._load(key)
            # a copy for each try: `fn` may well change the list that it is given
            wanted = fn(deepcopy(default) if kept is None else read_value(key, kept, kind))
            if wanted is None:
                raise StoreError(f"the update of `{key}` gave None; give the new value, or use `delete`")
            if self._swap(key, kept, write_value(key, wanted), ttl):
                return wanted
            _pause(tries)
        raise self._contended(key)

    def _contended(self, key: str) -> StoreError:
        return StoreError(f"`{key}` was changed by others {self.tries} times in a row; spread it over several keys")

    @abstractmethod
    def _load(self, key: str) -> bytes | None:
        """What is kept under a key, unless its time is over."""

    @abstractmethod
    def _save(self, key: str, value: bytes, ttl: float | None) -> None:
        """Keeps bytes, all of them or none."""

    @abstractmethod
    def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
        """Puts `new` in the place of exactly `old`, as one act; None stands for nothing there."""

    @abstractmethod
    def _drop(self, key: str) -> bool:
        """Forgets a key; whether it was there."""

    @abstractmethod
    def _keys(self, prefix: str) -> Iterable[str]:
        """The keys that begin with `prefix`, in any order."""


def _pause(tries: int) -> None:
    # Random, so that those who collided do not collide again.
    time.sleep(random.random() * min(LONGEST_PAUSE, 0.0005 * 2.0 ** min(tries, 10)))  # noqa: S311 - not a secret
