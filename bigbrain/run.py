"""The run that a turn is part of, as one explicit value: no hidden context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from bigbrain.budgets import Purse
from bigbrain.checkpoints import Barriers
from bigbrain.messages import Message, Request
from bigbrain.scope import Scope
from bigbrain.trace import Trail


class Rounds(Protocol):
    """Where the settled rounds of tool loops are kept, so that a step that runs again repeats no finished tool call.

    `loop` names one loop of one place: the same in every attempt that asks the same.
    """

    def known(self, loop: str) -> Sequence[Sequence[Message]]:
        """The rounds that an earlier attempt settled, in order: each the model's message and the results."""

    def settled(self, loop: str, messages: Sequence[Message]) -> None:
        """Keeps one round; returns once it would survive this process."""


class NoRounds:
    """Keeps nothing: what a place has that does not run again."""

    def known(self, loop: str) -> Sequence[Sequence[Message]]:  # noqa: ARG002 - the seam's signature
        """None."""
        return ()

    def settled(self, loop: str, messages: Sequence[Message]) -> None:
        """Forgets it."""


@dataclass(frozen=True)
class Run:
    """What everything in one place of a run shares.

    `id`, `path` and `attempt` say which step of which run; `scope` stops its work; `purse` pays
    for it; `trail` tells of it; `rounds` keeps what its tool loops have done.
    """

    id: str = ""
    path: str = ""
    attempt: int = 1
    request: Request = field(default_factory=Request)
    scope: Scope = field(default_factory=Scope)
    purse: Purse = field(default_factory=Purse)
    trail: Trail = field(default_factory=Trail)
    barriers: Barriers = field(default_factory=Barriers)
    rounds: Rounds = field(default_factory=NoRounds)

    def inside(self, *, path: str, scope: Scope | None = None, purse: Purse | None = None, flow: str = "") -> Run:
        """The same run in another place."""
        return replace(
            self,
            path=path,
            scope=scope or self.scope,
            purse=purse or self.purse,
            trail=self.trail.at(flow=flow, path=path),
        )
