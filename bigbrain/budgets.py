"""What a run may spend on models, and what it has spent: purses inside purses.

Each flow with a budget has a purse of its own inside the run's; what is spent from
one is spent from all around it. Nothing is guessed: a model that reports no tokens costs none.

Calls are counted when they are let through, so that a cap on them is exact whoever asks at
the same time. Tokens are counted when an answer ends, because nobody knows them before: the
calls that are under way when a budget runs out are paid in full.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from bigbrain.errors import BudgetSpent, WiringError
from bigbrain.messages import Usage


@dataclass(frozen=True)
class Budget:
    """How much may be spent before no model is asked any more; None sets no bound.

    Raises `WiringError` when it bounds nothing, or when a bound is not above zero.
    """

    tokens: int | None = None
    """Tokens of prompts and answers together; the call that goes over it is paid in full."""
    calls: int | None = None
    """How often a model is asked; an ask counts once, whatever its retries and fallbacks."""

    def __post_init__(self) -> None:
        if self.tokens is None and self.calls is None:
            raise WiringError("`Budget()` bounds nothing: give `tokens` or `calls`")
        faults = tuple(
            f"`Budget({name}={bound})`: give 1 or more"
            for name, bound in (("tokens", self.tokens), ("calls", self.calls))
            if bound is not None and bound < 1
        )
        if faults:
            raise WiringError(*faults)


class Spent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was spent from one purse, as a run's state keeps it from step to step."""

    usage: Usage = Usage()
    calls: int = 0

    def later(self, other: Spent) -> Spent:
        """The later one of two sums of the same purse, which only ever grow."""
        return max(self, other, key=lambda spent: (spent.calls, spent.usage.total))


class Purse:
    """What was spent so far under one budget, or under none; may be used by several threads."""

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        around: Purse | None = None,
        before: Spent | None = None,
        told: Callable[[], None] | None = None,
    ) -> None:
        """around: the purse that this one's money comes from. before: what was spent in earlier steps.

        told: called after tokens were spent from this purse, in the thread that spent them.
        """
        self._told = told
        self._budget = budget
        self._around = around
        before = before or Spent()
        self._spent = before.usage
        self._calls = before.calls
        # One lock for all purses of a run: what a call takes from several is one act.
        self._lock: threading.Lock = around._lock if around else threading.Lock()

    @property
    def budget(self) -> Budget | None:
        """What bounds this purse itself, whatever bounds those around it."""
        return self._budget

    @property
    def spent(self) -> Usage:
        """All tokens that were spent from this purse."""
        return self._spent

    @property
    def calls(self) -> int:
        """How many calls were let through."""
        return self._calls

    @property
    def account(self) -> Spent:
        """All of it, to be kept for the next step."""
        return Spent(self._spent, self._calls)

    @property
    def total(self) -> Usage:
        """All tokens of the whole run: what was spent from the outermost purse."""
        return self._around.total if self._around is not None else self._spent

    def check(self) -> None:
        """Raises `BudgetSpent` when this purse, or one around it, is empty: the innermost one is named."""
        with self._lock:
            self._check()

    def admit(self) -> None:
        """Lets a model be asked once, and counts that call here and in every purse around.

        Raises `BudgetSpent`, and counts nothing, when this purse or one around it is empty.
        """
        with self._lock:
            self._check()
            for purse in self._outwards():
                purse._calls += 1

    def take(self, spent: Spent) -> None:
        """Counts what was spent elsewhere, here and in every purse around."""
        with self._lock:
            for purse in self._outwards():
                purse._spent = purse._spent + spent.usage
                purse._calls += spent.calls

    def spend(self, usage: Usage) -> None:
        """Counts the tokens that one call cost, here and in every purse around."""
        with self._lock:
            for purse in self._outwards():
                purse._spent = purse._spent + usage
        for purse in self._outwards():
            if purse._told is not None:
                purse._told()

    def _outwards(self) -> Iterator[Purse]:
        purse: Purse | None = self
        while purse is not None:
            yield purse
            purse = purse._around

    def _check(self) -> None:
        for purse in self._outwards():
            if purse._budget is not None:
                _compare("tokens", purse._spent.total, purse._budget.tokens)
                _compare("calls", purse._calls, purse._budget.calls)


def _compare(what: str, spent: int, bound: int | None) -> None:
    if bound is not None and spent >= bound:
        raise BudgetSpent(
            f"`Budget({what}={bound})` is spent ({spent} used): no model is asked any more; raise it, or ask less"
        )
