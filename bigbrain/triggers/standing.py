"""The triggers of a brain as a whole: those that stand from its start, and all bodies that any trigger starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bigbrain.compiling import Compiled, Deferral, TriggerBody
from bigbrain.engine.records import TRIGGERED
from bigbrain.messages import Request
from bigbrain.places import listed
from bigbrain.triggers.seeds import LINEAGE, carrying
from bigbrain.triggers.specs import Endpoint, Startup


@dataclass(frozen=True)
class Standing:
    """A trigger that was added to the brain: what it starts, and the request that each of its runs begins with."""

    deferral: Deferral
    request: Request

    @property
    def id(self) -> str:
        """What its schedule, or its endpoint, is called."""
        return self.deferral.id


@dataclass(frozen=True)
class Built:
    """A brain compiled: its flows and the bodies of its triggers by name, and all faults of its wiring."""

    flows: Mapping[str, Compiled]
    standing: Mapping[str, Standing]
    faults: tuple[str, ...]
    endpoints: Mapping[str, Deferral]
    """The webhooks among what triggers start, by their ids, whether they stand or are opened in a run."""


def build(served: Mapping[str, Compiled], added: Iterable[tuple[TriggerBody, Request]]) -> Built:
    """Puts together what is served and what triggers start, whether they were added or are reached in a run."""
    bodies: dict[str, TriggerBody] = {}
    faults: list[str] = []
    standing: dict[str, Standing] = {}
    heads = list(added)
    reached = (body for compiled in served.values() for body in compiled.bodies)
    for body in _all((*(body for body, _ in heads), *reached)):
        id, known = body.deferral.id, bodies.get(body.deferral.flow)
        if known is not None and not known.same(body):
            faults.append(f"two triggers are called `{id}`: give one an id of its own, `{_function(body)}(…, id=…)`")
        if body.deferral.flow in served:
            faults.append(f"the flow `{body.deferral.flow}` has the name of a trigger's body: name it otherwise")
        bodies.setdefault(body.deferral.flow, body)
    for body, request in heads:
        if body.deferral.id in standing:
            faults.append(f"the trigger `{body.deferral.id}` is added twice: add it once, or give one another id")
        led = 0 if isinstance(body.deferral.trigger, Startup) else 1
        standing[body.deferral.id] = Standing(body.deferral, carrying(request, {LINEAGE: led}))
    for compiled in (*served.values(), *(body.compiled for body in bodies.values())):
        for id, where in compiled.recalled:
            if f"{TRIGGERED}{id}" not in bodies:
                faults.append(f"{where}: there is no trigger `{id}` to start again; there are {listed(_known(bodies))}")
    flows = {**served, **{name: body.compiled for name, body in bodies.items()}}
    endpoints = {
        body.deferral.id: body.deferral for body in bodies.values() if isinstance(body.deferral.trigger, Endpoint)
    }
    every = (*faults, *(fault for compiled in flows.values() for fault in compiled.faults))
    return Built(flows, standing, every, endpoints)


def _all(bodies: Iterable[TriggerBody]) -> Iterator[TriggerBody]:
    """Bodies, and those that are reached in them."""
    for body in bodies:
        yield body
        yield from _all(body.compiled.bodies)


def _known(bodies: Mapping[str, TriggerBody]) -> list[str]:
    return [body.deferral.id for body in bodies.values()]


def _function(body: TriggerBody) -> str:
    return {"every": "Every", "once": "Once", "webhook": "Webhook"}.get(body.deferral.trigger.kind, "named")
