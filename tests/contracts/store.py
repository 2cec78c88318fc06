"""What every store promises, wherever it keeps its values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bigbrain.messages import JSON
from bigbrain.stores import Store, StoreError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner | st.none(), max_size=4) | st.dictionaries(texts, inner | st.none(), max_size=4),
    max_leaves=12,
)
"""Whatever may be kept; None only inside."""

keys = texts.filter(bool) | st.text("*?[]^-\\a/.: ", min_size=1, max_size=8)


@dataclass
class Fact:
    about: str
    seen: int = 0
    tags: list[str] = field(default_factory=list)


def at_once(work: Callable[[], object], threads: int = 8) -> None:
    """Does the same in several threads that begin together; the first error of any is raised."""
    gate = threading.Barrier(threads)
    errors: list[Exception] = []

    def wait_and_work() -> None:
        gate.wait()
        try:
            work()
        except Exception as exc:
            errors.append(exc)

    running = [threading.Thread(target=wait_and_work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


class StoreContract:
    """Inherit it and say which store it is and how its time passes."""

    rounds = 50
    """Changes that each of eight threads makes to one value."""

    @pytest.fixture
    def store(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    @pytest.fixture
    def passing(self) -> Callable[[float], None]:
        """Lets so many seconds pass for `store`."""
        raise NotImplementedError

    def test_what_is_put_is_got(self, store: Store) -> None:
        store.put("user", {"name": "Ada", "seen": [1, 2.5, None, True]})

        assert store.get("user") == {"name": "Ada", "seen": [1, 2.5, None, True]}

    def test_any_value_comes_back_as_it_was(self, store: Store) -> None:
        @settings(max_examples=40, deadline=None)
        @given(key=keys, value=values)
        def check(key: str, value: JSON) -> None:
            store.put(key, value)
            got = store.get(key)

            assert got == value
            assert type(got) is type(value)
            assert key in store.list()

        check()

    def test_a_missing_key_gives_the_default(self, store: Store) -> None:
        assert store.get("nothing") is None
        assert store.get("nothing", default=[1]) == [1]

    def test_putting_again_replaces(self, store: Store) -> None:
        store.put("a", 1)
        store.put("a", 2)

        assert store.get("a") == 2

    def test_the_order_of_an_objects_keys_is_kept(self, store: Store) -> None:
        store.put("a", {"z": 1, "a": 2})

        assert list(store.get("a")) == ["z", "a"]

    def test_changing_what_was_got_changes_nothing_kept(self, store: Store) -> None:
        store.put("a", [1])
        store.get("a").append(2)

        assert store.get("a") == [1]

    def test_deleting_tells_whether_there_was_something(self, store: Store) -> None:
        store.put("a", 1)

        assert store.delete("a") is True
        assert store.delete("a") is False
        assert store.get("a") is None

    def test_keys_are_listed_sorted_by_their_beginning(self, store: Store) -> None:
        for key in ("b:2", "a:1", "b:1", "b", "ä"):
            store.put(key, 1)

        assert store.list() == ["a:1", "b", "b:1", "b:2", "ä"]
        assert store.list("b:") == ["b:1", "b:2"]
        assert store.list("c") == []

    def test_a_prefix_means_itself_whatever_stands_in_it(self, store: Store) -> None:
        for key in ("a*", "ab", "a[b]", "a?", "a\\", "[a]*"):
            store.put(key, 1)

        assert store.list("a*") == ["a*"]
        assert store.list("a[") == ["a[b]"]
        assert store.list("a\\") == ["a\\"]
        assert store.list("[a]") == ["[a]*"]

    def test_keys_that_look_alike_are_different(self, store: Store) -> None:
        alike = ["a/b", "a_b", "A/B", "a/b ", "../a", "a\0b", "é", "e\u0301", "x" * 512, "x" * 511]
        for number, key in enumerate(alike):
            store.put(key, number)

        assert [store.get(key) for key in alike] == list(range(len(alike)))

    @pytest.mark.parametrize("key", ["", "x" * 513, "é" * 257, "\ud800", 7, None])
    def test_what_cannot_be_a_key_is_refused_everywhere(self, store: Store, key: JSON) -> None:
        for refused in (
            lambda: store.get(key),
            lambda: store.put(key, 1),
            lambda: store.delete(key),
            lambda: store.swap(key, None, 1),
            lambda: store.update(key, lambda value: value, 1),
        ):
            with pytest.raises(StoreError, match="the key"):
                refused()

    def test_a_value_lives_for_its_time(self, store: Store, passing: Callable[[float], None]) -> None:
        store.put("short", 1, ttl=10)
        store.put("long", 2, ttl=1000)
        store.put("ever", 3)
        passing(9)
        assert store.get("short") == 1

        passing(1.5)

        assert store.get("short") is None
        assert store.list() == ["ever", "long"]
        assert store.delete("short") is False

    def test_whoever_writes_sets_the_time_anew(self, store: Store, passing: Callable[[float], None]) -> None:
        for key in ("put", "swapped", "updated", "renewed"):
            store.put(key, 1, ttl=10)
        store.put("put", 2)
        store.swap("swapped", 1, 2)
        store.update("updated", lambda value: value + 1)
        store.update("renewed", lambda value: value + 1, ttl=20)
        passing(11)
        assert store.list() == ["put", "renewed", "swapped", "updated"]

        passing(10)

        assert store.list() == ["put", "swapped", "updated"]

    def test_a_value_whose_time_is_over_is_not_there_for_a_change(
        self, store: Store, passing: Callable[[float], None]
    ) -> None:
        store.put("a", 1, ttl=10)
        passing(11)

        assert store.swap("a", 1, 2) is False
        assert store.swap("a", None, 3) is True
        assert store.get("a") == 3

    @pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e12])
    def test_an_impossible_lifetime_is_refused(self, store: Store, ttl: float) -> None:
        with pytest.raises(StoreError, match=r"`ttl` is .*; give seconds above 0"):
            store.put("a", 1, ttl=ttl)

        assert store.get("a") is None

    def test_swapping_needs_the_old_value(self, store: Store) -> None:
        store.put("a", [1])

        assert store.swap("a", [2], [3]) is False
        assert store.swap("a", None, [3]) is False
        assert store.swap("b", [1], [3]) is False
        assert store.swap("a", [1], [3]) is True
        assert (store.get("a"), store.get("b")) == ([3], None)

    def test_swapping_from_none_only_creates(self, store: Store) -> None:
        assert store.swap("a", None, 1) is True
        assert store.swap("a", None, 2) is False
        assert store.get("a") == 1

    def test_swapping_to_none_forgets(self, store: Store) -> None:
        store.put("a", 1)

        assert store.swap("a", 2, None) is False
        assert store.swap("a", 1, None) is True
        assert store.swap("a", None, None) is True
        assert store.list() == []

    def test_objects_are_the_same_in_any_order_of_their_keys(self, store: Store) -> None:
        store.put("a", {"x": 1, "y": {"p": 1, "q": 2}})

        assert store.swap("a", {"y": {"q": 2, "p": 1}, "x": 1}, "new") is True

    def test_numbers_of_two_kinds_are_two_values(self, store: Store) -> None:
        store.put("a", 1)

        assert store.swap("a", 1.0, 2) is False
        assert store.swap("a", True, 2) is False

    def test_only_one_of_many_wins_a_swap(self, store: Store) -> None:
        winners: list[bool] = []
        at_once(lambda: winners.append(store.swap("lock", None, "mine")))

        assert sorted(winners) == [False] * 7 + [True]

    def test_an_update_gives_and_keeps_the_new_value(self, store: Store) -> None:
        assert store.update("count", lambda count: count + 1, 0) == 1
        assert store.update("count", lambda count: count + 1, 0) == 2
        assert store.get("count") == 2

    def test_no_update_of_eight_threads_gets_lost(self, store: Store) -> None:
        def count() -> None:
            for _ in range(self.rounds):
                store.update("count", lambda count: count + 1, 0)

        at_once(count)

        assert store.get("count") == 8 * self.rounds

    def test_an_update_that_is_tried_again_starts_from_a_fresh_default(self, store: Store) -> None:
        default: list[int] = []

        def add(facts: list[int]) -> list[int]:
            facts.append(len(facts))
            return facts

        at_once(lambda: store.update("facts", add, default))

        assert store.get("facts") == list(range(8))
        assert default == []

    def test_an_update_without_a_result_changes_nothing(self, store: Store) -> None:
        store.put("a", [1])

        with pytest.raises(StoreError, match="the update of `a` gave None; give the new value, or use `delete`"):
            store.update("a", lambda facts: facts.append(2), [])
        assert store.get("a") == [1]

    def test_what_an_update_raises_is_raised_and_changes_nothing(self, store: Store) -> None:
        store.put("a", 1)

        with pytest.raises(ZeroDivisionError):
            store.update("a", lambda value: value / 0)
        assert store.get("a") == 1

    def test_an_authors_type_comes_back_as_itself(self, store: Store) -> None:
        store.put("fact", Fact("tea", 2))
        store.put("facts", [Fact("tea"), Fact("ale")])

        assert store.get("fact", Fact) == Fact("tea", 2)
        assert store.get("fact") == {"about": "tea", "seen": 2, "tags": []}
        assert store.get("facts", list[Fact]) == [Fact("tea"), Fact("ale")]
        assert store.get("nothing", Fact, default=Fact("")) == Fact("")

    def test_an_authors_type_may_be_swapped_and_updated(self, store: Store) -> None:
        store.put("fact", Fact("tea", 2))

        assert store.swap("fact", Fact("tea", 2), Fact("tea", 3)) is True
        assert store.update("fact", lambda fact: Fact(fact.about, fact.seen + 1), Fact("tea"), kind=Fact).seen == 4
        assert store.get("fact", Fact) == Fact("tea", 4)
