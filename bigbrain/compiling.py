"""From a tree of flows to a plan of steps, with every fault of the wiring found on the way.

A step gets the path of its position, so the same tree gives the same plan in every
process. Models are looked up here, once: the agent's own, its flow's, the nearest
group's around it, the brain's default, the first one added, `BIG_BRAIN_MODEL`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from bigbrain.agents import Agent
from bigbrain.engine.plan import Item, Mark, Plan, Step
from bigbrain.errors import WiringError
from bigbrain.flows import Acting, Chained, Flow, Responding
from bigbrain.models import Askable, Asks, Model, ModelRef, Models, connect
from bigbrain.settings import Settings


@dataclass(frozen=True)
class Binding:
    """What a step's path stands for: the agent that acts and the model it asks, if any."""

    agent: Agent
    model: Asks | None


@dataclass(frozen=True)
class Compiled:
    """A flow ready to run; `faults` says what is wrong with it, a sentence each with its place and remedy."""

    plan: Plan
    bindings: dict[str, Binding]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class _Place:
    """Where the compiler is: the ids around it, and the models that they name, nearest first."""

    names: tuple[str, ...]
    models: tuple[Askable | ModelRef, ...] = ()

    def inside(self, flow: Flow) -> _Place:
        return _Place(
            (*self.names, flow.id) if flow.id else self.names,
            self.models if flow.model is None else (flow.model, *self.models),
        )

    def __str__(self) -> str:
        return "/".join(self.names)


def compile_flow(name: str, flow: Flow, models: Models, settings: Settings) -> Compiled:
    """The plan of a flow that is served as `name`, its agents bound to models; `settings` has the keys."""
    compiler = _Compiler(models, settings)
    plan = Plan(tuple(compiler.items(flow, _Place((name,)), "")))
    if not any(plan.steps()):
        compiler.faults.append(f"flow `{name}` does nothing: put a flow with an agent into it")
    return Compiled(plan, compiler.bindings, tuple(compiler.faults))


class _Compiler:
    def __init__(self, models: Models, settings: Settings) -> None:
        self.models = models
        self.settings = settings
        self.bindings: dict[str, Binding] = {}
        self.faults: list[str] = []

    def items(self, flow: Flow, place: _Place, prefix: str, index: int = 0) -> Iterator[Item]:
        """The items of one flow, the first at `index` of the sequence whose paths begin with `prefix`."""
        inside = place.inside(flow)
        match flow.body:
            case Acting(agent):
                path = f"{prefix}{index}"
                self.bindings[path] = Binding(agent, self._model(agent, inside, path))
                yield Step(path, str(inside), (agent.name,), cpu=agent.cpu)
            case Responding():
                yield Mark(f"{prefix}{index}")
            case Chained(flows):
                for link in flows:
                    for item in self.items(link, inside, prefix, index):
                        index += 1
                        yield item
            case _:
                assert_never(flow.body)

    def _model(self, agent: Agent, place: _Place, path: str) -> Asks | None:
        where = f"agent `{agent.name}` at {place}, step {path}"
        try:
            found = self.models.ladder(agent.model, *place.models)
            if found is None and self.settings.model:
                found = Model(self.settings.model)
            if found is not None:
                return connect(found, self.settings)
        except WiringError as exc:
            self.faults += [f"{where}: {fault}" for fault in exc.faults]
            return None
        if agent.plain:
            self.faults.append(f"{where}, has no model: give one to the agent, its flow or the brain")
        return None
