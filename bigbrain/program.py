"""What a brain does in one step of a run: an agent's turn, and all that follows from it.

The engine calls `Program.run` with a claimed step. The step's effect is one `Outcome`:
the messages that were made, what the client is given, where the run goes on. Nothing
of it counts before the engine has committed it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
from msgspec.structs import replace as replace_struct

from bigbrain.answers import Answer
from bigbrain.budgets import Budget, Purse, Spent
from bigbrain.checkpoints import Barriers
from bigbrain.compiling import Compiled, Deferral, Members, Solo
from bigbrain.conversations import Conversation
from bigbrain.counting import Count, count
from bigbrain.delivering import live, tell_way, untold
from bigbrain.engine.plan import Plan, Step, UnknownChoice, Way
from bigbrain.engine.records import END, TRIGGERED, Claim, NewRun, Outcome, Outlook, Terms, Unfinished
from bigbrain.engine.schedules import Start
from bigbrain.engine.store import write_error
from bigbrain.engine.writer import Tape
from bigbrain.errors import (
    BrainChanged,
    BrainError,
    HandlerFailed,
    PayloadError,
    RunCancelled,
    SelectError,
    TriggerError,
)
from bigbrain.events import Event, Failed, Started
from bigbrain.flows import Durability
from bigbrain.kept import written
from bigbrain.messages import Request, unanswered
from bigbrain.models import load
from bigbrain.models.connection import Connection
from bigbrain.performing import Performer, Played, Stand
from bigbrain.resuming import Continuing
from bigbrain.run import Run
from bigbrain.savepoints import Savepoints
from bigbrain.scope import Scope
from bigbrain.spreading import played as played_by
from bigbrain.spreading import runs_of, under_way
from bigbrain.stages import heard, may_respond
from bigbrain.states import RunState, is_readable
from bigbrain.steps import OpenStep, opened, recorded
from bigbrain.trace import Tracer, Trail
from bigbrain.triggers.seeds import carrying
from bigbrain.triggers.standing import Standing

logger = logging.getLogger(__name__)

LONGEST_PAUSE = 60.0
"""Seconds before a step that failed is run again; they begin with 1 and double."""


class Program:
    """The flows of one brain, as the engine executes them."""

    def __init__(
        self,
        flows: Mapping[str, Compiled],
        *,
        tracers: Sequence[Tracer] = (),
        budget: Budget | None = None,
        standing: Mapping[str, Standing] | None = None,
        endpoints: Mapping[str, Deferral] | None = None,
    ) -> None:
        """tracers: who hears of what happens. budget: what each run may spend on models. standing: the triggers.

        endpoints: the webhooks, those that a run opens as well.
        """
        self.standing = standing or {}
        self.endpoints = endpoints or {}
        self._flows = flows
        self._tracers = tuple(tracers)
        self._budget = budget
        self._prints = {name: flow.plan.fingerprint for name, flow in flows.items()}

    @property
    def tracers(self) -> tuple[Tracer, ...]:
        """Who hears of what happens in runs."""
        return self._tracers

    def listen(self, *tracers: Tracer) -> None:
        """Has some more hear of what happens from now on."""
        self._tracers += tracers

    def count_tokens(self, flow: str, request: Request) -> Count:
        """How many input tokens a request to a flow has; asks the model's server where that is the answer."""
        return count(request, self._flows[flow])

    def warm(self) -> None:
        """Imports what the first question to each model would import: seconds, with some SDKs."""
        for flow in self._flows.values():
            for model in flow.models:
                if isinstance(model, Connection):
                    load(model.model.provider)

    def has(self, flow: str) -> bool:
        """Whether there is a flow of this name."""
        return flow in self._flows

    def terms(self, flow: str) -> Terms:
        """How a run of this flow survives."""
        compiled = self._flows[flow]
        steps = {step.path: step for step in compiled.plan.steps()}
        first = compiled.plan.first().path
        kept = [binding.durability for binding in compiled.bindings.values() if binding.durability is not None]
        return Terms(
            durable=first in steps and steps[first].durable,
            lasting=bool(kept),
            ttl=min((durability.ttl for durability in kept if durability.ttl is not None), default=0.0),
            patient=any(durability.resume_on_reregister for durability in kept),
        )

    def _again(self, step: OpenStep, error: BrainError) -> float | None:
        """Seconds after which a step that failed is to run anew; None when it is not."""
        durability = self._durability(step.claim.flow, step.claim.path)
        if durability is None or isinstance(error, (RunCancelled, BrainChanged, PayloadError, TriggerError)):
            return None
        failures = step.claim.failures
        return min(2.0**failures, LONGEST_PAUSE) if failures < durability.retries else None

    def _durability(self, flow: str, path: str) -> Durability | None:
        """How a step survives, if it does."""
        compiled = self._flows.get(flow)
        binding = compiled.bindings.get(path) if compiled else None
        return binding.durability if binding else None

    def _names(self, flow: str, path: str) -> tuple[str, tuple[str, ...]]:
        """What people call a step: its flow and its agents."""
        compiled = self._flows.get(flow)
        if compiled is None or path not in compiled.plans:
            return flow, ()
        step = compiled.plans[path].step(path)
        return step.flow, step.agents

    def compiled(self, flow: str) -> Compiled | None:
        """A flow as it is run here; None when there is none of that name."""
        return self._flows.get(flow)

    def new_run(
        self,
        flow: str,
        first: Started,
        request: Request,
        *,
        scope: str = "",
        fingerprint: str = "",
        quiet: bool = False,
        remembered: float = 0.0,
    ) -> NewRun:
        """A run of a flow from its beginning, under the id that `first` tells. Raises `KeyError` when there is no such flow.

        scope: whose runs it is listed among. fingerprint: which request it answers. quiet: its answer is what stages
        deliver. remembered: seconds for which it is known that it was done.
        """
        return NewRun(
            id=first.id,
            flow=flow,
            plan=self.fingerprint(flow),
            cursor=self.first(flow),
            first=first,
            terms=self.terms(flow),
            request=written(request, "the request"),
            state=msgspec.json.encode(RunState(quiet=quiet)),
            scope=scope,
            fingerprint=fingerprint,
            remembered=remembered,
        )

    def replies(self, flow: str) -> bool:
        """Whether a run of this flow may come to a `respond`, those inside its groups included."""
        return may_respond(self._flows[flow], self._flows[flow].plan.items)

    def begin(self, run_id: str, start: Start) -> NewRun:
        """The run of a firing. Raises `KeyError` when there is no such flow."""
        request = carrying(msgspec.json.decode(start.request, type=Request), {"due": start.due})
        return self.new_run(start.flow, Started(run_id, start.flow, start.due // 1000), request, scope=start.scope)

    @property
    def triggers(self) -> tuple[str, ...]:
        """The ids of all triggers, those that stand in the brain's code and those that its runs reach."""
        return tuple(name.removeprefix(TRIGGERED) for name in self._flows if name.startswith(TRIGGERED))

    def fires(self, flow: str) -> bool:
        """Whether there is a flow of that name."""
        return flow in self._flows

    def fingerprint(self, flow: str) -> str:
        """The structure that a run of this flow is started with."""
        return self._prints[flow]

    def first(self, flow: str) -> str:
        """The path of a flow's first step, or `END` when it has none."""
        return self._flows[flow].plan.first().path

    def ahead(self, flow: str, path: str) -> tuple[Sequence[Step], bool]:
        """The steps from `path` on that are sure to come, and whether the run is to be closed after them.

        Raises `KeyError` when there is no such flow or step.
        """
        plan = self._flows[flow].plans[path]
        steps = plan.ahead(path)
        return steps, not (plan.single or plan.leads_on(steps[-1].path))

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Carries out a step; whatever goes wrong in it is an outcome."""
        trail = Trail(self._tracers, run=claim.run_id, flow=claim.flow, path=claim.path, attempt=claim.attempt)
        purse, names = Purse(self._budget), self._names(claim.flow, claim.path)
        step = OpenStep(claim, RunState(), Request(), (), tape, scope, purse, Purse(), trail, Savepoints(), names)
        try:
            step = opened(step, durable=self._durability(claim.flow, claim.path) is not None)
            scope.check()
            if not self._goes_on(claim.flow, claim.plan, claim.path):
                raise BrainChanged
            return self._perform(step)
        except BrainError as exc:
            return self._failed(step, scope.error or exc)
        # a cancelled task of an `async def` handler is no `Exception`
        except (Exception, SystemExit, asyncio.CancelledError) as exc:
            error = scope.error or HandlerFailed(f"step {claim.path} of flow `{claim.flow}`")
            error.__cause__ = error.__cause__ or exc
            return self._failed(step, error)

    def _goes_on(self, flow: str, plan: str, path: str) -> bool:
        """Whether a run with this next step goes on: it was begun with this structure, or its flow wants that and has the step."""
        if self._prints.get(flow) == plan:
            return True
        durability = self._durability(flow, path)
        return durability is not None and durability.forward_compatible

    def outlook(self, run: Unfinished) -> Outlook:
        """What becomes of a run that another version of this brain has begun."""
        if run.cursor == END or (is_readable(run.state) and self._goes_on(run.flow, run.plan, run.cursor)):
            return "resume"
        flow = self._flows.get(run.flow)
        if run.patient and (flow is None or run.cursor not in flow.plans):
            return "wait"
        return "refuse" if flow is None else "discard"

    def _perform(self, step: OpenStep) -> Outcome:
        claim, flow = step.claim, self._flows[step.claim.flow]
        work = flow.bindings[claim.path].work
        if isinstance(work, Members) and work.spread and under_way(claim.members):
            durable = flow.bindings[claim.path].durability is not None
            members = runs_of(work, claim, step.state, step.messages, durable=durable)
            return Outcome(next=claim.path, state=claim.state, members=members)
        plan = flow.plans[claim.path]
        # several at once would race for the client's ear
        answer = live(step, plan) if isinstance(work, Solo) else None
        performer = Performer(
            flow.bindings, step.own, step.state.spent, step.savepoints, bill=step.bill, inside=step.pieces
        )
        barriers = Barriers(step.state.reached)
        if claim.members:
            played = played_by(claim.members, step.state, lambda state: step.own.take(state.account))
        else:
            run = Run(
                claim.run_id,
                claim.path,
                claim.attempt,
                step.request,
                scope=step.scope,
                purse=step.own,
                trail=step.trail,
                barriers=barriers,
            )
            conversation = Conversation((*step.request.messages, *step.state.base, *step.messages))
            last = not plan.speech_after(claim.path)
            played = performer.play(claim.path, run, Stand(conversation, answer, last, step.state.selected))
        step.scope.check()
        if answer is not None and isinstance(answer.emit, Continuing):
            answer.emit.end()
        return self._go_on(step, plan, played, answer, spent=performer.spent, reached=barriers.reached)

    def _go_on(
        self,
        step: OpenStep,
        plan: Plan,
        played: Played,
        answer: Answer | None,
        *,
        spent: dict[str, Spent],
        reached: tuple[str, ...],
    ) -> Outcome:
        choice = played.selected or step.state.selected
        try:
            way = plan.after(step.claim.path, choice)
        except UnknownChoice as exc:
            raise SelectError(str(exc)) from None
        tell_way(step.trail, played.selected, way)
        selected = None if way.used else choice
        after = replace_struct(step.state, selected=selected, spent=spent, reached=reached)
        return self._done(replace(step, state=after), way, played, answer)

    def _done(self, step: OpenStep, way: Way, played: Played, answer: Answer | None) -> Outcome:
        state, events, made = step.state, list[Event](), played.made
        flow = self._flows[step.claim.flow]
        if state.quiet:
            way = heard(flow, way, responded=played.responded)
        everything = (*step.messages, *made)
        responded = state.responded or way.marks > 0
        complete = not state.answered and not way.more and (responded or not way.speech)
        given, told = state.given, state.told
        if not state.answered and (way.marks or complete):
            backlog = untold(step, way, made, answer)
            ending = Answer(answer.given if answer else given, events.append, backlog)
            ending.catch_up()
            if complete:
                ending.finish(unanswered(everything), step.purse.spent)
            given, told = ending.given, len(everything)
        plans = flow.plans
        after = replace_struct(
            state,
            given=given,
            told=told,
            responded=responded,
            answered=state.answered or complete,
            account=step.purse.account,
        )
        return Outcome(
            next=way.path,
            state=msgspec.json.encode(after),
            messages=tuple(msgspec.json.encode(message) for message in made),
            events=tuple(events),
            durable=way.path != END and plans[way.path].step(way.path).durable,
            answered=after.answered,
            deferred=played.deferred,
            status="done" if plans[step.claim.path].single else "running",
            done=recorded(step, "done"),
        )

    def _failed(self, step: OpenStep, error: BrainError) -> Outcome:
        again = self._again(step, error)
        log = logger.info if isinstance(error, RunCancelled) else logger.warning
        log("run %s: step %s failed: %s", step.claim.run_id, step.claim.path, error, exc_info=error.__cause__)
        state = replace_struct(step.state, account=step.purse.account)
        if again is not None:
            step.trail.tell("retry", after=again, code=error.code)
            return Outcome(
                next=step.claim.path,
                state=msgspec.json.encode(state),
                again=again,
                done=recorded(step, error.code, write_error(error)),
            )
        return Outcome(
            next=step.claim.path,
            state=msgspec.json.encode(state),
            events=() if state.answered else (Failed.of(error),),
            answered=state.answered,
            status="cancelled" if isinstance(error, RunCancelled) else "failed",
            error=write_error(error),
            done=recorded(step, error.code, write_error(error)),
        )
