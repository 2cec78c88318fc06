"""From a tree of flows to a plan of steps, with every fault of the wiring found on the way.

A step gets the path of its position, so the same tree gives the same plan in every
process. Models are looked up here, once: the agent's own, its flow's, the nearest
group's around it, the brain's default, the first one added, `BIG_BRAIN_MODEL`.

A group is one step of the plan; what its members consist of is compiled the same
way, under paths below the group's, and played inside that step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, assert_never

import msgspec

from bigbrain.agents import Agent
from bigbrain.budgets import Budget
from bigbrain.engine.plan import Fork, Item, Mark, Plan, Step
from bigbrain.errors import WiringError
from bigbrain.flows import Acting, Chained, Durability, Flow, How, Notifying, Responding, Selecting, Together, id_of
from bigbrain.models import Askable, Asks, Model, ModelRef, Models, connect
from bigbrain.notices import Notice
from bigbrain.settings import Settings


@dataclass(frozen=True)
class Solo:
    """One agent and the model it asks, if any."""

    agent: Agent
    model: Asks | None


@dataclass(frozen=True)
class Team:
    """Several agents of one flow, who take their turns at once."""

    solos: tuple[Solo, ...]


@dataclass(frozen=True)
class Member:
    """One member of a group: what people call it, and what it does."""

    name: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Members:
    """The members of a group, and how they run together; `spread`: as runs of their own."""

    how: How
    members: tuple[Member, ...]
    spread: bool = False


Work: TypeAlias = Solo | Team | Members | Notice


@dataclass(frozen=True)
class Binding:
    """What a step's path stands for: its work, the flow's name for people, the budgets around it, outermost first."""

    work: Work
    flow: str
    budgets: tuple[tuple[str, Budget], ...] = ()
    durability: Durability | None = None


@dataclass(frozen=True)
class Compiled:
    """A flow ready to run; `faults` says what is wrong with it, a sentence each with its place and remedy."""

    plan: Plan
    bindings: dict[str, Binding]
    faults: tuple[str, ...]

    @cached_property
    def plans(self) -> dict[str, Plan]:
        """The path of each step → the plan that says what comes after it: the flow's, or that of a group's member."""
        groups = [binding.work for binding in self.bindings.values() if isinstance(binding.work, Members)]
        plans = [self.plan, *(Plan(member.items) for group in groups for member in group.members)]
        return {step.path: plan for plan in plans for step in plan.steps()}

    @property
    def models(self) -> Iterator[Asks]:
        """Every model that an agent of it asks."""
        for binding in self.bindings.values():
            solos = binding.work.solos if isinstance(binding.work, Team) else (binding.work,)
            for solo in solos:
                if isinstance(solo, Solo) and solo.model is not None:
                    yield solo.model


@dataclass(frozen=True)
class _Place:
    """Where the compiler is: the ids around it, and the models and budgets that they set, nearest model first."""

    names: tuple[str, ...]
    models: tuple[Askable | ModelRef, ...] = ()
    budgets: tuple[tuple[str, Budget], ...] = ()
    durability: Durability | None = None

    def inside(self, flow: Flow, path: str) -> _Place:
        return _Place(
            (*self.names, flow.id) if flow.id else self.names,
            self.models if flow.model is None else (flow.model, *self.models),
            self.budgets if flow.budget is None else (*self.budgets, (path, flow.budget)),
            flow.durability or self.durability,
        )

    def __str__(self) -> str:
        return "/".join(self.names)


@dataclass(frozen=True)
class _Exits:
    """The ids that the agents of a step say they select; `at` is the step, or group, after which they are looked for."""

    path: str
    at: str
    place: str
    ids: tuple[str, ...]

    def faults(self, fork: Fork | None) -> Iterator[str]:
        where = f"step {self.path} at {self.place} declares the exits"
        if fork is None:
            yield f"{where} {_list(self.ids)}, but no Select comes after it"
            return
        missing = [id for id in self.ids if id not in fork.members]
        if missing:
            yield f"{where} {_list(missing)}, but the next Select, step {fork.path}, has {_list(fork.members)}"


def _list(ids: Iterable[str]) -> str:
    return ", ".join(f"`{id}`" for id in ids)


def compile_flow(name: str, flow: Flow, models: Models, settings: Settings) -> Compiled:
    """The plan of a flow that is served as `name`, its agents bound to models; `settings` has the keys."""
    compiler = _Compiler(models, settings)
    plan = Plan(tuple(compiler.items(flow, _Place((name,)), "")))
    if not any(plan.steps()):
        compiler.faults.append(f"flow `{name}` does nothing: put a flow with an agent into it")
    elif not compiler.faults and plan.first().marks:
        compiler.faults.append(f"flow `{name}` begins with `respond`: put it after what it is to deliver")
    compiler.check_exits(plan)
    return Compiled(plan, compiler.bindings, tuple(compiler.faults))


class _Compiler:
    def __init__(self, models: Models, settings: Settings) -> None:
        self.models = models
        self.settings = settings
        self.bindings: dict[str, Binding] = {}
        self.exits: list[_Exits] = []
        self.faults: list[str] = []

    def items(self, flow: Flow, place: _Place, prefix: str, index: int = 0) -> Iterator[Item]:
        """The items of one flow, the first at `index` of the sequence whose paths begin with `prefix`."""
        path = f"{prefix}{index}"
        inside = place.inside(flow, path)
        match flow.body:
            case Acting(agents):
                yield self._acting(agents, inside, path)
            case Responding():
                yield Mark(path)
            case Chained(flows):
                for link in flows:
                    for item in self.items(link, inside, prefix, index):
                        index += 1
                        yield item
            case Selecting():
                yield self._fork(flow.body, inside, path)
            case Together():
                yield self._together(flow.body, inside, path)
            case Notifying(notice):
                self.bindings[path] = Binding(notice, str(inside), durability=inside.durability)
                yield Step(path, str(inside), (notice.name,), durable=inside.durability is not None, mute=True)
            case _:
                assert_never(flow.body)

    def _acting(self, agents: Sequence[Agent], place: _Place, path: str) -> Step:
        solos = tuple(Solo(agent, self._model(agent, place, path)) for agent in agents)
        self.bindings[path] = Binding(
            solos[0] if len(solos) == 1 else Team(solos), str(place), place.budgets, place.durability
        )
        exits = tuple(exit for agent in agents for exit in agent.selects)
        if exits:
            self.exits.append(_Exits(path, path, str(place), exits))
        return Step(
            path,
            str(place),
            tuple(agent.name for agent in agents),
            durable=place.durability is not None,
            cpu=any(agent.cpu for agent in agents),
        )

    def _fork(self, body: Selecting, place: _Place, path: str) -> Fork:
        members: dict[str, tuple[Item, ...]] = {}
        for number, flow in enumerate(body.members, 1):
            id = id_of(flow)
            if not id:
                self.faults.append(f"member {number} of the Select at {place}, step {path}, has no id: use `.named(…)`")
                id = str(number)
            elif id in members:
                self.faults.append(f"the Select at {place}, step {path}, has two members `{id}`: name one otherwise")
            members[id] = tuple(self.items(flow, place, f"{path}/{id}/"))
        if body.default and body.default not in members:
            self.faults.append(
                f"the Select at {place}, step {path}, has no member `{body.default}`; there are {_list(members)}"
            )
        return Fork(path, str(place), members, body.default)

    def _together(self, body: Together, place: _Place, path: str) -> Step:
        if not body.members:
            self.faults.append(f"the group at {place}, step {path}, has no members: give it some")
        members = tuple(
            Member(id_of(flow) or str(number), tuple(self.items(flow, place, f"{path}/{number}/")))
            for number, flow in enumerate(body.members)
        )
        for member in members:
            self.check_exits(Plan(member.items), path)
        self.bindings[path] = Binding(
            Members(body.how, members, body.spread), str(place), place.budgets, place.durability
        )
        shape = msgspec.json.encode([member.items for member in members]).decode()
        names = tuple(agent for member in members for step in Plan(member.items).steps() for agent in step.agents)
        cpu = any(step.cpu for member in members for step in Plan(member.items).steps())
        return Step(path, str(place), names, f"{body.how} {shape}", place.durability is not None, cpu)

    def check_exits(self, plan: Plan, group: str = "") -> None:
        """Looks for the Select that takes what the agents of `plan` select; inside a group it may come after `group`."""
        paths = {step.path for step in plan.steps()}
        for exits in [exits for exits in self.exits if exits.at in paths]:
            self.exits.remove(exits)
            fork = plan.next_fork(exits.at)
            if fork is None and group:
                self.exits.append(replace(exits, at=group))
            else:
                self.faults += exits.faults(fork)

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
        if agent.plain or agent.needs_model:
            self.faults.append(f"{where}, has no model: give one to the agent, its flow or the brain")
        return None
