"""What a run may spend on models, and what it has spent: purses inside purses.

Each flow with a budget has a purse of its own inside the run's; what is spent from
one is spent from all around it. Nothing is guessed: a model that reports no tokens costs none.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from bigbrain.errors import BudgetSpent, WiringError
from bigbrain.messages import Usage


@dataclass(frozen=True)
class Budget:
    """How many tokens, prompts and answers together, may be spent before no model is asked any more.

    The call that goes over it is paid in full, because its cost is known only at its end.
    Raises `WiringError` when it is not above zero.
    """

    tokens: int

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise WiringError(f"`Budget(tokens={self.tokens})`: give 1 or more")


class Purse:
    """What was spent so far under one budget, or under none; may be used by several threads."""

    def __init__(
        self, budget: Budget | None = None, *, around: Purse | None = None, spent: Usage | None = None
    ) -> None:
        """around: the purse that this one's money comes from. spent: what was spent before, in other steps."""
        self._budget = budget
        self._around = around
        self._spent = spent or Usage()
        self._lock = threading.Lock()

    @property
    def spent(self) -> Usage:
        """All that was spent from this purse."""
        return self._spent

    def spend(self, usage: Usage) -> None:
        """Counts what one call cost, here and in every purse around."""
        with self._lock:
            self._spent = self._spent + usage
        if self._around is not None:
            self._around.spend(usage)

    def check(self) -> None:
        """Lets a model be asked. Raises `BudgetSpent` when this purse, or one around it, is empty."""
        if self._budget is not None and self._spent.total >= self._budget.tokens:
            raise BudgetSpent(
                f"{self._spent.total} tokens are spent of a budget of {self._budget.tokens}: no model is asked any more"
            )
        if self._around is not None:
            self._around.check()
