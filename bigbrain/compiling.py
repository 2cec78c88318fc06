"""From a tree of flows to a plan of steps, with every fault of the wiring found on the way.

A step gets the path of its position, so the same tree gives the same plan in every
process. Models are looked up here, once: the agent's own, its flow's, the nearest
group's around it, the brain's default, the first one added, `BIG_BRAIN_MODEL`.

A group is one step of the plan; what its members consist of is compiled the same
way, under paths below the group's, and played inside that step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias, assert_never

import msgspec

from bigbrain.agents import Agent
from bigbrain.budgets import Budget
from bigbrain.engine.plan import Fork, Item, Mark, Plan, Step
from bigbrain.engine.records import TRIGGERED
from bigbrain.errors import WiringError
from bigbrain.flows import (
    Acting,
    Chained,
    Durability,
    Flow,
    How,
    Notifying,
    Recalling,
    Responding,
    Selecting,
    Together,
    Triggering,
    id_of,
)
from bigbrain.models import Asks, Model, Models, connect
from bigbrain.notices import Notice
from bigbrain.places import Exits, Place, listed
from bigbrain.settings import Settings
from bigbrain.triggers.specs import Endpoint, Single, Startup, Trigger, is_trigger_id


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


@dataclass(frozen=True)
class Deferral:
    """A trigger that is reached in a run: `id` is what its schedules or its endpoint are called, `flow` its body's name."""

    id: str
    trigger: Trigger
    flow: str


Work: TypeAlias = Solo | Team | Members | Notice | Deferral


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
    bodies: tuple[TriggerBody, ...] = ()
    """What its triggers defer; a body that reaches another trigger has that one's body in its own `bodies`."""
    recalled: tuple[tuple[str, str], ...] = ()
    """The triggers whose bodies its triggers start again, and where these stand."""

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
class TriggerBody:
    """What runs when a trigger fires; `deferral.flow` is the name under which the program has it.

    `source`: what it was compiled from, by which two places are known to mean the same.
    """

    deferral: Deferral
    compiled: Compiled
    source: tuple[object, ...]

    def same(self, other: TriggerBody) -> bool:
        """Whether both are one body, which is reached from several places."""
        return len(self.source) == len(other.source) and all(
            one is another for one, another in zip(self.source, other.source, strict=True)
        )


def _ids(links: Sequence[Flow]) -> list[str]:
    """The ids of a body's own flows: those of its chain, up to the next trigger."""
    before = takewhile(lambda link: not isinstance(link.body, Triggering), links)
    return [id for link in before if (id := id_of(link))]


def _only(ids: Sequence[str]) -> str:
    """The one id there is, or nothing."""
    return ids[0] if len(ids) == 1 else ""


def compile_flow(name: str, flow: Flow, models: Models, settings: Settings) -> Compiled:
    """The plan of a flow that is served as `name`, its agents bound to models; `settings` has the keys."""
    compiler = _Compiler(models, settings)
    plan = Plan(tuple(compiler.items(flow, Place((name,)), "")))
    if not any(plan.steps()):
        compiler.faults.append(f"flow `{name}` does nothing: put a flow with an agent into it")
    elif not compiler.faults and plan.first().marks:
        compiler.faults.append(f"flow `{name}` begins with `respond`: put it after what it is to deliver")
    compiler.check_exits(plan)
    return Compiled(plan, compiler.bindings, tuple(compiler.faults), tuple(compiler.bodies), tuple(compiler.recalled))


def compile_trigger(chain: Flow, number: int, models: Models, settings: Settings) -> TriggerBody:
    """The body of a trigger chain; a chain without a trigger at its head is one that runs when the brain comes up.

    number: which one of these it is, for one without a name.
    """
    links = chain.body.flows if isinstance(chain.body, Chained) and not chain.id else (chain,)
    head = links[0]
    compiler = _Compiler(models, settings)
    if isinstance(head.body, Triggering):
        return compiler.deferred(head, head.body.trigger, links[1:], Place(()), f"trigger {number}", standing=True)
    trigger = Startup(id=_only(_ids(links)) or f"boot-{number}")
    return compiler.body(trigger, trigger.id, links, Place(()), [])


class _Compiler:
    def __init__(self, models: Models, settings: Settings) -> None:
        self.bodies: list[TriggerBody] = []
        self.recalled: list[tuple[str, str]] = []
        self.models = models
        self.settings = settings
        self.bindings: dict[str, Binding] = {}
        self.exits: list[Exits] = []
        self.faults: list[str] = []

    def items(self, flow: Flow, place: Place, prefix: str, index: int = 0) -> Iterator[Item]:
        """The items of one flow, the first at `index` of the sequence whose paths begin with `prefix`."""
        path = f"{prefix}{index}"
        inside = place.inside(flow, path)
        match flow.body:
            case Acting(agents):
                yield self._acting(agents, inside, path)
            case Responding():
                yield Mark(path)
            case Chained(flows):
                yield from self.chain(flows, inside, prefix, index)
            case Selecting():
                yield self._fork(flow.body, inside, path)
            case Together():
                yield self._together(flow.body, inside, path)
            case Notifying(notice):
                self.bindings[path] = Binding(notice, str(inside), durability=inside.durability)
                yield Step(path, str(inside), (notice.name,), durable=inside.durability is not None, mute=True)
            case Triggering(trigger):
                yield self._trigger(flow, trigger, (), inside, path)
            case Recalling(id):
                self.faults.append(
                    f"`again({id!r})` at {inside}, step {path}, is behind no trigger that a run reaches:"
                    f" write `… >> Once(…) >> again({id!r})`"
                )
            case _:
                assert_never(flow.body)

    def _trigger(self, head: Flow, trigger: Trigger, links: Sequence[Flow], place: Place, path: str) -> Step:
        """The step of a trigger that is reached in a run."""
        where = f"the trigger at {place}, step {path}"
        following = links[0].body if links else None
        if isinstance(following, Recalling):
            deferral = self._again(following.id, trigger, links, where)
        else:
            body = self.deferred(head, trigger, links, place, where)
            self.bodies.append(body)
            deferral = body.deferral
        self.bindings[path] = Binding(deferral, str(place), durability=place.durability)
        name = f"{trigger.kind} {deferral.id}"
        return Step(path, str(place), (name,), durable=place.durability is not None, mute=True)

    def _again(self, id: str, trigger: Trigger, links: Sequence[Flow], where: str) -> Deferral:
        """A trigger that starts what the trigger `id` starts."""
        self.faults += [f"{where}, {trigger.kind}: {fault}" for fault in trigger.faults()]
        if isinstance(trigger, Endpoint):
            self.faults.append(f"{where}: a webhook cannot start `again({id!r})`; put the flow itself behind it")
        if len(links) > 1:
            self.faults.append(f"{where}: something comes after `again({id!r})`, which never comes back: put it before")
        self.recalled.append((id, where))
        return Deferral(trigger.id or id, trigger, f"{TRIGGERED}{id}")

    def deferred(
        self,
        head: Flow,
        trigger: Trigger,
        links: Sequence[Flow],
        place: Place,
        where: str,
        *,
        standing: bool = False,
    ) -> TriggerBody:
        """What a trigger, the body of `head`, defers; `where` it stands, for people. standing: no turn reaches it."""
        where = f"{where}, {trigger.kind}"
        ids = _ids(links)
        faults = [f"{where}: {fault}" for fault in trigger.faults()]
        if standing and isinstance(trigger, Single) and callable(trigger.when):
            faults.append(
                f"{where}: no turn reaches it, so a function of the turn cannot say when: give a time or a span"
            )
        if head.id:
            faults.append(f"{where} is named `{head.id}`: name the flow after it instead")
        if not links:
            faults.append(f"{where} has nothing after it: put the flow that it is to start behind it, `… >> flow`")
        elif len(ids) != 1 and not isinstance(trigger, Endpoint):
            found = f"the ids {listed(ids)}" if ids else "no id"
            faults.append(
                f"{where}: what it starts has {found}; exactly one flow of its chain must have one, `.named(…)`,"
                " by which it is found again after a restart"
            )
        id = trigger.id or _only(ids)
        if id and not is_trigger_id(id):
            faults.append(
                f"{where}: `{id}` is no id for a trigger; use at most 80 letters, digits or `_`, `:`, `-`, `.`"
            )
        return self.body(trigger, id, links, place, faults)

    def body(
        self, trigger: Trigger, id: str, links: Sequence[Flow], place: Place, faults: Sequence[str]
    ) -> TriggerBody:
        """What a trigger defers, compiled on its own."""
        compiler = _Compiler(self.models, self.settings)
        later = place.later(trigger)
        compiler.faults += faults
        items = compiler.chain(links, later)
        plan = Plan(tuple(items))
        if links and not any(plan.steps()):
            compiler.faults.append(f"trigger `{id}` does nothing: put a flow with an agent behind it")
        elif not compiler.faults and plan.first().marks:
            compiler.faults.append(f"trigger `{id}` begins with `respond`: put it after what it is to deliver")
        compiler.check_exits(plan)
        compiled = Compiled(
            plan, compiler.bindings, tuple(compiler.faults), tuple(compiler.bodies), tuple(compiler.recalled)
        )
        return TriggerBody(
            Deferral(id, trigger, f"{TRIGGERED}{id}"), compiled, (trigger, *links, *place.models, place.durability)
        )

    def chain(self, links: Sequence[Flow], place: Place, prefix: str = "", index: int = 0) -> Iterator[Item]:
        """The items of a sequence of flows, up to a trigger among them and with it."""
        for number, link in enumerate(links):
            if isinstance(link.body, Triggering):
                yield self._trigger(link, link.body.trigger, links[number + 1 :], place, f"{prefix}{index}")
                return
            for item in self.items(link, place, prefix, index):
                index += 1
                yield item

    def _acting(self, agents: Sequence[Agent], place: Place, path: str) -> Step:
        solos = tuple(Solo(agent, self._model(agent, place, path)) for agent in agents)
        self.bindings[path] = Binding(
            solos[0] if len(solos) == 1 else Team(solos), str(place), place.budgets, place.durability
        )
        exits = tuple(exit for agent in agents for exit in agent.selects)
        if exits:
            self.exits.append(Exits(path, path, str(place), exits))
        return Step(
            path,
            str(place),
            tuple(agent.name for agent in agents),
            durable=place.durability is not None,
            cpu=any(agent.cpu for agent in agents),
        )

    def _fork(self, body: Selecting, place: Place, path: str) -> Fork:
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
                f"the Select at {place}, step {path}, has no member `{body.default}`; there are {listed(members)}"
            )
        return Fork(path, str(place), members, body.default)

    def _together(self, body: Together, place: Place, path: str) -> Step:
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

    def _model(self, agent: Agent, place: Place, path: str) -> Asks | None:
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
