"""What all stores share, where one that nobody else writes to would not show it."""

from __future__ import annotations

import pytest

from bigbrain.messages import JSON
from bigbrain.stores import MemStore, StoreError


class Contended(MemStore):
    """A store in which somebody else is always faster."""

    tries = 10

    def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
        return False


def test_a_change_that_never_comes_first_ends() -> None:
    store = Contended()
    store.put("a", 1)

    for change in (lambda: store.update("a", lambda value: value + 1), lambda: store.swap("a", 1, 2)):
        with pytest.raises(
            StoreError, match="`a` was changed by others 10 times in a row; spread it over several keys"
        ):
            change()


def test_an_update_starts_anew_from_what_others_have_written() -> None:
    store, seen = MemStore(), []

    def late(value: JSON) -> JSON:
        seen.append(value)
        if len(seen) < 3:
            store.put("a", value + 10)
        return value + 1

    assert store.update("a", late, 0) == 21
    assert seen == [0, 10, 20]


def test_a_swap_is_not_lost_to_an_equal_value_in_another_order() -> None:
    class Reordered(MemStore):
        """Somebody else puts an equal value between reading and changing, once."""

        done = False

        def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
            if not self.done:
                self.done = True
                self.put(key, {"y": 2, "x": 1})
            return super()._swap(key, old, new, ttl)

    store = Reordered()
    store.put("a", {"x": 1, "y": 2})

    assert store.swap("a", {"x": 1, "y": 2}, "new") is True
    assert store.get("a") == "new"
