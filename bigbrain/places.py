"""Where the compiler is in a tree of flows: what the flows around a place set for it, and what it must have after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bigbrain.budgets import Budget
from bigbrain.engine.plan import Fork
from bigbrain.flows import Durability, Flow
from bigbrain.models import Askable, ModelRef
from bigbrain.triggers.specs import Trigger


@dataclass(frozen=True)
class Place:
    """Where the compiler is: the ids around it, and the models and budgets that they set, nearest model first."""

    names: tuple[str, ...]
    models: tuple[Askable | ModelRef, ...] = ()
    budgets: tuple[tuple[str, Budget], ...] = ()
    durability: Durability | None = None
    retries: int = 0
    """What the trigger around it gives every step."""

    def inside(self, flow: Flow, path: str) -> Place:
        """The place inside a flow that stands at `path`."""
        own = flow.durability and replace(flow.durability, retries=max(flow.durability.retries, self.retries))
        return Place(
            (*self.names, flow.id) if flow.id else self.names,
            self.models if flow.model is None else (flow.model, *self.models),
            self.budgets if flow.budget is None else (*self.budgets, (path, flow.budget)),
            own or self.durability,
            self.retries,
        )

    def later(self, trigger: Trigger) -> Place:
        """The place of what the trigger defers: another run, in which the budgets begin anew."""
        budgets = tuple((f"before {key}", budget) for key, budget in self.budgets)
        around = self.durability or (Durability(0, None, False, False) if trigger.retries else None)
        lasting = around and replace(around, retries=max(around.retries, trigger.retries))
        return Place((*self.names, trigger.kind), self.models, budgets, lasting, trigger.retries)

    def __str__(self) -> str:
        return "/".join(self.names)


@dataclass(frozen=True)
class Exits:
    """The ids that the agents of a step say they select; `at` is the step, or group, after which they are looked for."""

    path: str
    at: str
    place: str
    ids: tuple[str, ...]

    def faults(self, fork: Fork | None) -> Iterator[str]:
        """What is wrong when `fork` is the next Select."""
        where = f"step {self.path} at {self.place} declares the exits"
        if fork is None:
            yield f"{where} {listed(self.ids)}, but no Select comes after it"
            return
        missing = [id for id in self.ids if id not in fork.members]
        if missing:
            yield f"{where} {listed(missing)}, but the next Select, step {fork.path}, has {listed(fork.members)}"


def listed(ids: Iterable[str]) -> str:
    """Ids as a sentence names them."""
    return ", ".join(f"`{id}`" for id in ids)
