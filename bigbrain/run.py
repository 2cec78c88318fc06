"""The run that a turn is part of, as one explicit value: no hidden context."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bigbrain.budgets import Purse
from bigbrain.messages import Request
from bigbrain.scope import Scope
from bigbrain.trace import Trail


@dataclass(frozen=True)
class Run:
    """What everything in one place of a run shares.

    `id`, `path` and `attempt` say which step of which run; `scope` stops its work; `purse` pays
    for it; `trail` tells of it.
    """

    id: str = ""
    path: str = ""
    attempt: int = 1
    request: Request = field(default_factory=Request)
    scope: Scope = field(default_factory=Scope)
    purse: Purse = field(default_factory=Purse)
    trail: Trail = field(default_factory=Trail)

    def inside(self, *, path: str, scope: Scope | None = None, purse: Purse | None = None, flow: str = "") -> Run:
        """The same run in another place."""
        return replace(
            self,
            path=path,
            scope=scope or self.scope,
            purse=purse or self.purse,
            trail=self.trail.at(flow=flow, path=path),
        )
