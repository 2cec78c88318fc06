from __future__ import annotations

from collections.abc import Callable

import pytest

from bigbrain.stores import MemStore, Store
from tests.contracts.store import StoreContract
from tests.stores.clock import Clock


class TestMemStore(StoreContract):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock) -> Store:
        return MemStore(clock=clock)

    @pytest.fixture
    def passing(self, clock: Clock) -> Callable[[float], None]:
        return clock.wait


def test_two_stores_know_nothing_of_each_other() -> None:
    one, other = MemStore(), MemStore()
    one.put("a", 1)

    assert other.list() == []


def test_values_whose_time_is_over_do_not_pile_up() -> None:
    clock = Clock()
    store = MemStore(clock=clock)
    for number in range(10_000):
        store.put(f"key {number}", "x", ttl=10)
        clock.wait(1)

    assert len(store._kept) <= 1001
    assert len(store.list()) == 9
