from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bigbrain.budgets import Budget, Purse, Spent
from bigbrain.errors import BudgetSpent, WiringError
from bigbrain.messages import Usage

TEN = Usage(input=7, output=3)


def at_once(work: Callable[[], None], threads: int = 8) -> None:
    """Does the same in several threads that begin together."""
    gate = threading.Barrier(threads)

    def wait_and_work() -> None:
        gate.wait()
        work()

    running = [threading.Thread(target=wait_and_work) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def test_a_purse_without_a_budget_only_counts() -> None:
    purse = Purse()
    for _ in range(3):
        purse.admit()
        purse.spend(TEN)

    assert (purse.spent, purse.calls) == (Usage(input=21, output=9), 3)


def test_the_call_that_goes_over_a_budget_is_the_last_one() -> None:
    purse = Purse(Budget(tokens=15))
    purse.spend(TEN)
    purse.admit()
    purse.spend(TEN)

    with pytest.raises(BudgetSpent) as caught:
        purse.admit()

    assert str(caught.value) == (
        "`Budget(tokens=15)` is spent (20 used): no model is asked any more; raise it, or ask less"
    )
    assert caught.value.public == "This brain has spent its budget for the request."
    assert purse.spent.total == 20


def test_a_budget_that_is_just_used_up_is_empty() -> None:
    purse = Purse(Budget(10))
    purse.spend(TEN)

    with pytest.raises(BudgetSpent, match=r"`Budget\(tokens=10\)` is spent \(10 used\)"):
        purse.check()


def test_cached_tokens_count_and_reasoning_is_not_counted_twice() -> None:
    purse = Purse(Budget(tokens=11))
    purse.spend(Usage(input=1, output=4, cache_read=3, cache_write=2, reasoning=4))
    purse.check()
    purse.spend(Usage(output=1))

    with pytest.raises(BudgetSpent, match=r"\(11 used\)"):
        purse.check()


def test_a_model_that_reports_nothing_costs_nothing() -> None:
    purse = Purse(Budget(tokens=1))
    purse.spend(Usage())
    purse.check()

    assert purse.spent == Usage()


def test_calls_have_a_cap_of_their_own() -> None:
    purse = Purse(Budget(calls=2))
    purse.admit()
    purse.admit()

    with pytest.raises(BudgetSpent, match=r"`Budget\(calls=2\)` is spent \(2 used\)"):
        purse.admit()
    assert purse.calls == 2


def test_checking_counts_no_call() -> None:
    purse = Purse(Budget(calls=1))
    purse.check()
    purse.check()
    purse.admit()

    assert purse.calls == 1


def test_whichever_bound_is_reached_first_ends_it() -> None:
    purse = Purse(Budget(tokens=100, calls=1))
    purse.admit()

    with pytest.raises(BudgetSpent, match=r"`Budget\(calls=1\)`"):
        purse.check()


def test_what_is_spent_inside_is_spent_from_all_purses_around() -> None:
    run = Purse()
    flow = Purse(around=run)
    agent = Purse(around=flow)
    agent.admit()
    agent.spend(TEN)
    flow.spend(TEN)

    assert [purse.spent.total for purse in (agent, flow, run)] == [10, 20, 20]
    assert [purse.calls for purse in (agent, flow, run)] == [1, 1, 1]


def test_an_empty_purse_leaves_the_one_around_usable() -> None:
    run = Purse(Budget(tokens=100))
    first, second = Purse(Budget(tokens=10), around=run), Purse(Budget(tokens=20), around=run)
    first.spend(TEN)

    with pytest.raises(BudgetSpent, match=r"`Budget\(tokens=10\)`"):
        first.check()
    second.check()
    run.check()


def test_an_empty_purse_around_stops_the_ones_inside() -> None:
    run = Purse(Budget(calls=1))
    first, second = Purse(around=run), Purse(Budget(calls=5), around=run)
    first.admit()

    with pytest.raises(BudgetSpent, match=r"`Budget\(calls=1\)` is spent"):
        second.admit()
    assert second.calls == 0


def test_the_innermost_empty_purse_is_named() -> None:
    run = Purse(Budget(tokens=10))
    flow = Purse(Budget(tokens=5), around=run)
    flow.spend(TEN)

    with pytest.raises(BudgetSpent, match=r"`Budget\(tokens=5\)`"):
        flow.check()


def test_a_purse_goes_on_from_what_earlier_steps_spent() -> None:
    purse = Purse(Budget(tokens=15, calls=9), before=Spent(TEN, 8))
    purse.admit()

    assert (purse.spent, purse.calls) == (TEN, 9)
    with pytest.raises(BudgetSpent, match=r"`Budget\(calls=9\)`"):
        purse.check()


def test_spending_at_the_same_time_is_exact() -> None:
    run = Purse()
    members = [Purse(around=run) for _ in range(2)]

    def spend() -> None:
        for _ in range(200):
            for member in members:
                member.admit()
                member.spend(TEN)

    at_once(spend)

    assert [(purse.spent.total, purse.calls) for purse in (*members, run)] == [
        (16_000, 1600),
        (16_000, 1600),
        (32_000, 3200),
    ]


def test_a_cap_on_calls_is_exact_whoever_asks_at_the_same_time() -> None:
    run = Purse(Budget(calls=100))
    admitted: list[int] = []

    def ask() -> None:
        purse = Purse(around=run)
        for _ in range(50):
            try:
                purse.admit()
            except BudgetSpent:
                return
            admitted.append(1)

    at_once(ask)

    assert (len(admitted), run.calls) == (100, 100)


@pytest.mark.parametrize("bounds", [{"tokens": 0}, {"calls": 0}, {"tokens": -5}])
def test_a_bound_is_above_zero(bounds: dict[str, int]) -> None:
    with pytest.raises(WiringError, match=r"`Budget\(.*\)`: give 1 or more"):
        Budget(**bounds)


def test_a_budget_bounds_something() -> None:
    with pytest.raises(WiringError, match="give `tokens` or `calls`"):
        Budget()
