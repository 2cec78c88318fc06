"""A brain: the flows that are served and the models that they ask, in one place.

A brain is written first and built when it is used: `program` compiles every flow and
reports all faults of the wiring at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from bigbrain.aside import Aside
from bigbrain.budgets import Budget
from bigbrain.compiling import Compiled, compile_flow, compile_trigger
from bigbrain.embedded import find_url
from bigbrain.engine.server import connect
from bigbrain.errands import ERRAND, Rule, is_errand
from bigbrain.errors import UnknownModel, WiringError
from bigbrain.flows import Flow
from bigbrain.messages import Message, Request
from bigbrain.models import Askable, Models, model
from bigbrain.program import Program
from bigbrain.schedules import Schedules
from bigbrain.settings import Settings
from bigbrain.stores import RedisStore, Store
from bigbrain.trace import Tracer
from bigbrain.trees import draw
from bigbrain.triggers.seeds import seed
from bigbrain.triggers.standing import Built, build


class Brain:
    """Flows under names, of which a client picks one with its request's `model`."""

    def __init__(
        self,
        name: str,
        flow: Flow | None = None,
        *,
        budget: Budget | None = None,
        trace: Sequence[Tracer] = (),
        strict_models: bool = False,
        memory: Store | None = None,
        errands: Rule | None = is_errand,
    ) -> None:
        """name: what `/v1/models` calls the default flow. flow: the default flow, which answers for every unknown model.

        Without a flow, the last one added without a name is the default, else the last one added.
        budget: what each run may spend on models. trace: who hears of what happens in runs,
        each from a thread of its own, so that a slow one holds nobody up.
        strict_models: a request for an unknown model is refused instead of answered by the default flow.
        memory: what `brain.memory` is, by default a store in the deployment's Redis.
        errands: which requests are those of a chat interface itself (`bigbrain/errands.py`): the model with the tag
        `cheap` answers them, else the brain's default model, and no flow. None: the flows answer them, too.
        """
        self.name = name
        self.budget = budget
        self.trace: tuple[Tracer, ...] = tuple(Aside.of(tracer) for tracer in trace)
        self.strict_models = strict_models
        self.errands = errands
        self._memory = memory
        self._schedules: Schedules | None = None
        self.models = Models()
        self._default = flow
        self._unnamed: Flow | None = None
        self._named: dict[str, Flow] = {}
        self._twice: list[str] = []
        self._triggers: list[tuple[Flow, Request]] = []

    @property
    def memory(self) -> Store:
        """The brain's memory, shared by all its processes; connected with its first use."""
        if self._memory is None:
            self._memory = RedisStore(find_url(Settings.read()), prefix=f"bb:memory:{self.name}:")
        return self._memory

    @property
    def schedules(self) -> Schedules:
        """What the deployment is going to do, also for handlers: listed, cancelled, run now; connected with its first use."""
        if self._schedules is None:
            self._schedules = Schedules(connect(find_url(Settings.read())))
        return self._schedules

    @schedules.setter
    def schedules(self, schedules: Schedules) -> None:
        self._schedules = schedules

    def add_model(self, model: Askable, *, tags: tuple[str, ...] | str = (), default: bool = False) -> Askable:
        """Registers a model under tags; the model itself, to go on with.

        The first one added, or the last one added as the default, is asked where nothing nearer names a model.
        """
        self.models.add(model, tags, default=default)
        return model

    def add_flow(self, flow: Flow, *, name: str = "") -> Flow:
        """Serves another flow: under `name`, or as the default. The flow itself, to go on with."""
        if name in self._named:
            self._twice.append(name)
        if name:
            self._named[name] = flow
        else:
            self._unnamed = flow
        return flow

    def add_trigger(
        self,
        chain: Flow,
        *,
        seed_chat: str | Message | Sequence[Message] = (),
        seed_request: Request | None = None,
        seed_payload: object = None,
        seed_metadata: object = None,
    ) -> Flow:
        """Has the brain act on its own: `Every(…) >> flow`, `Once(…) >> flow`, `Webhook(…) >> flow`.

        A chain without a trigger at its head is a boot task: it runs when the brain comes up. Each firing begins with
        the seeds: what was said, the request with its knobs and tools, and what `turn.payload` and `turn.metadata` give
        (of a webhook, each call brings these two). The chain itself is given back, to go on with.
        Raises `WiringError` for a payload that is no JSON.
        """
        self._triggers.append((chain, seed(seed_request, seed_chat, seed_payload, seed_metadata)))
        return chain

    @property
    def flows(self) -> dict[str, Flow]:
        """Every served flow under its name, the default first."""
        default = self._default or self._unnamed
        if default is not None:
            return {self.name: default, **{name: flow for name, flow in self._named.items() if name != self.name}}
        return dict(reversed(self._named.items()))

    def route(self, model: str) -> str:
        """The name of the flow that answers a request for `model`: the one of that name, else the default.

        Raises `WiringError` when the brain has no flow, `UnknownModel` when it is strict and has none of that name.
        """
        flows = self.flows
        if not flows:
            raise WiringError(_NO_FLOW)
        if model in flows:
            return model
        if self.strict_models and model:
            raise UnknownModel(f"there is no model `{model}`; there are {', '.join(f'`{name}`' for name in flows)}")
        return next(iter(flows))

    def compiled(self, settings: Settings) -> Mapping[str, Compiled]:
        """Every flow ready to run, faulty or not: those that are served, what triggers start, and
        that of errands if it is sound."""
        return self.built(settings).flows

    def built(self, settings: Settings) -> Built:
        """The whole of it compiled: flows, triggers and faults."""
        served = {name: compile_flow(name, flow, self.models, settings) for name, flow in self.flows.items()}
        added = [
            (compile_trigger(chain, number, self.models, settings), request)
            for number, (chain, request) in enumerate(self._triggers, 1)
        ]
        if served and self.errands is not None:
            ref = model("cheap") if "cheap" in self.models.tags else model()
            errand = compile_flow(ERRAND, Flow(model=ref), self.models, settings)
            if not errand.faults:
                served[ERRAND] = errand
        return build(served, added)

    def faults(self, settings: Settings | None = None) -> tuple[str, ...]:
        """All that is wrong with the wiring, a sentence each with its place and remedy."""
        return self._faults(self.built(settings or Settings.read()))

    def _faults(self, built: Built) -> tuple[str, ...]:
        if not built.flows:
            return (_NO_FLOW,)
        twice = (f"two flows are named `{name}`, so one could never answer: rename one" for name in self._twice)
        return (*twice, *built.faults)

    def program(self, settings: Settings | None = None) -> Program:
        """The brain built: what an engine executes.

        Raises `WiringError` with every fault of the wiring.
        """
        built = self.built(settings or Settings.read())
        faults = self._faults(built)
        if faults:
            raise WiringError(*faults)
        return Program(
            built.flows, tracers=self.trace, budget=self.budget, standing=built.standing, endpoints=built.endpoints
        )

    def tree(self, settings: Settings | None = None) -> str:
        """The brain's flows, steps, agents and models as lines of text."""
        built = self.built(settings or Settings.read())
        return draw({name: flow for name, flow in built.flows.items() if name != ERRAND}, built.standing)

    @property
    def has_cpu_steps(self) -> bool:
        """Whether an agent of it keeps a processor busy, so that workers for that are needed."""
        return any(step.cpu for flow in self.compiled(Settings()).values() for step in flow.plan.steps())

    def run(self) -> None:
        """Has the brain act on its own from this one process until it is interrupted: triggers and engine, no HTTP.

        A Redis server is started beside it unless `BIG_BRAIN_REDIS_URL` names one; calls of webhooks reach nobody.
        Raises `WiringError` with every fault of the wiring.
        """
        # it is above this module, so it is named, not imported
        import_module("bigbrain.headless").run(self)

    def serve(self, host: str = "127.0.0.1", port: int = 8080) -> None:
        """Serves the brain from this one process until it is interrupted: OpenAI and Anthropic at `port`.

        A Redis server is started beside it unless `BIG_BRAIN_REDIS_URL` names one.
        Raises `WiringError` with every fault of the wiring.
        """
        # the web side is above this package, so it is named, not imported
        import_module("web.serving").serve(self, host=host, port=port)


_NO_FLOW = "the brain has no flow: give one to `Brain(name, flow)` or `brain.add_flow(flow)`"
