"""Flows: what runs, and in which order. A chain of flows is a flow, and so is a group.

Flows are values: `named`, `>>` and the like give new ones. What a flow consists of
is its `body`, a closed union that the compiler (`compiling`) takes apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from bigbrain.agents import ActsAsAgent, Agent
from bigbrain.budgets import Budget
from bigbrain.errors import WiringError
from bigbrain.models import Askable, ModelRef
from bigbrain.notices import Notice
from bigbrain.triggers.specs import Trigger

How: TypeAlias = Literal["all", "one", "group"]


@dataclass(frozen=True)
class Acting:
    """The body of a flow in which agents take their turns, several of them at once."""

    agents: tuple[Agent, ...]


@dataclass(frozen=True)
class Chained:
    """The body of a flow that runs others one after the other."""

    flows: tuple[Flow, ...]


@dataclass(frozen=True)
class Responding:
    """The body of a flow that ends a stage of the answer."""


@dataclass(frozen=True)
class Selecting:
    """The body of a flow that runs the one member that was selected, or `default` when none was."""

    members: tuple[Flow, ...]
    default: str


@dataclass(frozen=True)
class Together:
    """The body of a flow that runs its members at once."""

    how: How
    members: tuple[Flow, ...]
    spread: bool = False


@dataclass(frozen=True)
class Notifying:
    """The body of a flow that tells somebody outside."""

    notice: Notice


@dataclass(frozen=True)
class Triggering:
    """The body of a flow that ends its chain here: what comes after it runs later, on its own, when `trigger` fires."""

    trigger: Trigger


@dataclass(frozen=True)
class Recalling:
    """The body of a flow that stands, behind a trigger, for what the trigger of this id starts."""

    id: str


Body: TypeAlias = Acting | Chained | Responding | Selecting | Together | Notifying | Triggering | Recalling


@dataclass(frozen=True)
class Durability:
    """How a flow survives; see `NamedFlow.durable`."""

    retries: int
    ttl: float | None
    forward_compatible: bool
    resume_on_reregister: bool


class Flow:
    """Something that runs on a conversation and hands it on."""

    def __init__(
        self,
        *agents: Agent | ActsAsAgent,
        model: Askable | ModelRef | None = None,
        role: str = "",
        budget: Budget | None = None,
    ) -> None:
        """agents: who take their turns (agents and orchestrators), all at once when there are several, their replies in
        this order; without any the model itself answers, as a transparent proxy, in its `role`.

        model: what the agents ask that name none. budget: what may be spent in this flow.
        Raises `WiringError` for a role beside an agent, which has its own.
        """
        acting = tuple(map(_acting, agents))
        if acting and role:
            raise WiringError(f"`role` is the agent's business: give it to `@agent(role=…)` of `{acting[0].name}`")
        self._body: Body = Acting(acting or (Agent(name="model", role=role),))
        self._model = model
        self._id = ""
        self._budget = budget
        self._durability: Durability | None = None

    @property
    def body(self) -> Body:
        """What the flow consists of."""
        return self._body

    @property
    def model(self) -> Askable | ModelRef | None:
        """What is asked by the agents in it that name no model."""
        return self._model

    @property
    def id(self) -> str:
        """The id that `named` gave it, or nothing."""
        return self._id

    @property
    def budget(self) -> Budget | None:
        """What may be spent on models in it."""
        return self._budget

    @property
    def durability(self) -> Durability | None:
        """What was asked for with `durable`, if it was."""
        return self._durability

    def named(self, id: str) -> NamedFlow:
        """The same flow under an id, by which people and other flows know it.

        Raises `WiringError` for an id that is empty or has a slash or a space in it, because paths are made of ids.
        """
        if not id or any(char in "/ \t\n" for char in id):
            raise WiringError(f"`{id}` is no id for a flow: it must not be empty nor have slashes or spaces in it")
        return NamedFlow._of(self._body, self._model, id, self._budget, self._durability)

    def asking(self, model: Askable | ModelRef) -> Self:
        """The same flow with a model for all agents in it that name none."""
        return self._of(self._body, model, self._id, self._budget, self._durability)

    def within(self, budget: Budget) -> Self:
        """The same flow with a budget: once it is spent, no model is asked in it any more."""
        return self._of(self._body, self._model, self._id, budget, self._durability)

    def next(self, flow: Flow) -> Flow:
        """A chain: this flow, then `flow` on what this one made of the conversation."""
        return Flow._of(Chained((*_links(self), *_links(flow))))

    def __rshift__(self, flow: Flow) -> Flow:
        """`a >> b` is `a.next(b)`."""
        return self.next(flow)

    @classmethod
    def _of(
        cls,
        body: Body,
        model: Askable | ModelRef | None = None,
        id: str = "",
        budget: Budget | None = None,
        durability: Durability | None = None,
    ) -> Self:
        flow = cls.__new__(cls)
        flow._body, flow._model, flow._id, flow._budget, flow._durability = body, model, id, budget, durability
        return flow


class NamedFlow(Flow):
    """A flow with an id, which may be made durable."""

    def durable(
        self,
        *,
        retries: int = 0,
        ttl: float | None = None,
        forward_compatible: bool = False,
        resume_on_reregister: bool = False,
    ) -> NamedFlow:
        """The same flow, which survives the death of its worker: it goes on elsewhere from its last completed step.

        retries: how often a step of it that fails is run again, after 1, 2, 4 … seconds. ttl: seconds after which a
        run with it that waits, for a worker, a retry or its flow, is given up. forward_compatible: a run that was begun
        before the brain's structure was changed goes on all the same, as far as its next step still exists.
        resume_on_reregister: a run whose flow is not served any more waits until it is, instead of ending with an error.

        At least once, not exactly once: what a step did outside before it was lost is done again, but for finished
        rounds of tool calls; `turn.idempotency_key` helps whoever is told twice. Raises `WiringError` for values that
        cannot be meant.
        """
        if retries < 0 or (ttl is not None and ttl <= 0):
            raise WiringError(f"`{self.id}.durable(retries={retries}, ttl={ttl})`: give 0 or more, and seconds above 0")
        return self._of(
            self._body,
            self._model,
            self._id,
            self._budget,
            Durability(retries, ttl, forward_compatible, resume_on_reregister),
        )


def _acting(given: Agent | ActsAsAgent) -> Agent:
    if isinstance(given, Agent):
        return given
    if not hasattr(given, "as_agent"):
        raise WiringError(f"{given!r} is no agent of a flow; give what `@agent` makes, or an `Orchestrator`")
    return given.as_agent()


def flow_of(body: Body) -> Flow:
    """A flow that consists of this."""
    return Flow._of(body)


def _links(flow: Flow) -> tuple[Flow, ...]:
    """What a flow adds to a chain: a plain chain its links, anything with a name, a model or a budget itself."""
    if isinstance(flow.body, Chained) and not flow.id and flow.model is None and flow.budget is None:
        return flow.body.flows
    return (flow,)


def id_of(flow: Flow) -> str:
    """The id that a flow goes by: its own, else that of the only named link of a chain, else nothing."""
    if flow.id or not isinstance(flow.body, Chained):
        return flow.id
    ids = [link.id for link in flow.body.flows if link.id]
    return ids[0] if len(ids) == 1 else ""


respond = Flow._of(Responding())
"""Ends a stage of the answer: the client gets all that was replied since the last one, or since the start.

May stand several times in a chain. The answer is complete at the last one; what comes
after it goes on in the background, and the client hears nothing of it.
"""


def again(id: str) -> Flow:
    """Behind a trigger, what the trigger `id` starts: so that a body can have itself run again.

    `Flow(check).named("poll") >> Once(not_yet) >> again("poll")` looks again until `not_yet` gives None, as a run of its own
    each time; at most eight may lead to one another.
    """
    return Flow._of(Recalling(id))


def Select(*members: Flow, default: str = "", model: Askable | ModelRef | None = None) -> Flow:
    """Runs the one member whose id an agent before it selected with `turn.select(id)`.

    A selection waits for the next Select of its chain, whatever stands in between. Without
    one, the member `default` runs, or none. An id that no member has fails the run.
    model: what the agents in it ask that name none.
    """
    return Flow._of(Selecting(members, default), model)


def All(*members: Flow, spread: bool = False, model: Askable | ModelRef | None = None) -> Flow:
    """Runs all members at once, each on its own copy of the conversation; their replies come in this order.

    The first that fails stops the others and fails the flow. spread: each member's steps go to
    whatever worker is free instead of sharing the process; then checkpoints and budgets around
    the group do not hold between the members. Inside another group it makes no difference.
    """
    return Flow._of(Together("all", members, spread), model)


def One(*members: Flow, model: Askable | ModelRef | None = None) -> Flow:
    """Runs all members at once and takes what the first that succeeds made; the others are stopped.

    A member that fails is out of the race; the flow fails when all have.
    """
    return Flow._of(Together("one", members), model)


def Group(*members: Flow, model: Askable | ModelRef | None = None) -> Flow:
    """Runs all members at once on one live conversation: what one replies the others see at once.

    Replies come in the order in which they were made. The first member that fails stops the others.
    """
    return Flow._of(Together("group", members), model)


def Notify(to: Callable[[str], object] | str, *, secret: str = "", tries: int = 3) -> Flow:
    """Tells somebody outside the newest message; a failure is tried again, recorded, and never fails the run.

    to: a function of the text, or a URL that gets `{"text": …}` by POST, signed with `secret` as
    Standard Webhooks says. tries: how often at most.
    """
    return Flow._of(Notifying(Notice.to(to, secret=secret, tries=tries)))
