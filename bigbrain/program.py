"""What a brain does in one step of a run: an agent's turn, and all that follows from it.

The engine calls `Program.run` with a claimed step. The step's effect is one `Outcome`:
the messages that were made, what the client is given, where the run goes on. Nothing
of it counts before the engine has committed it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec.structs import replace as replace_struct

from bigbrain.answers import Answer
from bigbrain.budgets import Budget, Purse, Spent
from bigbrain.checkpoints import Barriers
from bigbrain.compiling import Compiled, Members, Solo
from bigbrain.conversations import Conversation
from bigbrain.engine.plan import Plan, Step, UnknownChoice, Way
from bigbrain.engine.records import Claim, Outcome
from bigbrain.engine.store import write_error
from bigbrain.engine.writer import Tape
from bigbrain.errors import BrainChanged, BrainError, HandlerFailed, RunCancelled, SelectError
from bigbrain.events import Event, Failed
from bigbrain.messages import Message, Request, unanswered
from bigbrain.models import load
from bigbrain.models.connection import Connection
from bigbrain.performing import Performer, Played, Stand
from bigbrain.run import Run
from bigbrain.scope import Scope
from bigbrain.spreading import played as played_by
from bigbrain.spreading import runs_of, under_way
from bigbrain.states import RunState
from bigbrain.trace import Tracer, Trail

logger = logging.getLogger(__name__)


_state = msgspec.json.Decoder(RunState)
_message = msgspec.json.Decoder(Message)
_request = msgspec.json.Decoder(Request)


@dataclass
class _Step:
    """One step while it is carried out."""

    claim: Claim
    state: RunState
    request: Request
    messages: tuple[Message, ...]
    tape: Tape
    scope: Scope
    purse: Purse
    """The whole run's."""
    own: Purse
    """This step's, inside the run's."""
    trail: Trail


def _opened(step: _Step) -> _Step:
    """The step with what its run has on record. Raises `BrainChanged` when another version wrote it."""
    claim = step.claim
    try:
        state = _state.decode(claim.state)
        return replace(
            step,
            state=state,
            purse=(purse := Purse(step.purse.budget, before=state.account)),
            own=Purse(around=purse),
            request=_request.decode(claim.request),
            messages=tuple(_message.decode(line) for line in claim.messages),
        )
    except msgspec.MsgspecError as exc:
        raise BrainChanged(f"the record of run {claim.run_id} cannot be read: {exc}") from exc


class Program:
    """The flows of one brain, as the engine executes them."""

    def __init__(
        self, flows: Mapping[str, Compiled], *, tracers: Sequence[Tracer] = (), budget: Budget | None = None
    ) -> None:
        """tracers: who hears of what happens. budget: what each run may spend on models."""
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

    def warm(self) -> None:
        """Imports what the first question to each model would import: seconds, with some SDKs."""
        for flow in self._flows.values():
            for model in flow.models:
                if isinstance(model, Connection):
                    load(model.model.provider)

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
        return steps, not (plan.single or plan.forks_after(steps[-1].path))

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Carries out a step; whatever goes wrong in it is an outcome."""
        trail = Trail(self._tracers, run=claim.run_id, flow=claim.flow, path=claim.path, attempt=claim.attempt)
        step = _Step(claim, RunState(), Request(), (), tape, scope, Purse(self._budget), Purse(), trail)
        try:
            step = _opened(step)
            scope.check()
            if self._prints.get(claim.flow) != claim.plan:
                raise BrainChanged
            return self._perform(step)
        except BrainError as exc:
            return self._failed(step, scope.error or exc)
        # a cancelled task of an `async def` handler is no `Exception`
        except (Exception, SystemExit, asyncio.CancelledError) as exc:
            error = scope.error or HandlerFailed(f"step {claim.path} of flow `{claim.flow}`")
            error.__cause__ = error.__cause__ or exc
            return self._failed(step, error)

    def _perform(self, step: _Step) -> Outcome:
        claim, flow = step.claim, self._flows[step.claim.flow]
        work = flow.bindings[claim.path].work
        if isinstance(work, Members) and work.spread and under_way(claim.members):
            members = runs_of(work, claim, step.state, step.messages)
            return Outcome(next=claim.path, state=claim.state, members=members)
        plan = flow.plans[claim.path]
        # several at once would race for the client's ear
        answer = _live(step, plan) if isinstance(work, Solo) else None
        performer = Performer(flow.bindings, step.own, step.state.spent)
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
        return self._go_on(step, plan, played, answer, spent=performer.spent, reached=barriers.reached)

    def _go_on(
        self,
        step: _Step,
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
        _tell_way(step.trail, played.selected, way)
        selected = None if way.used else choice
        after = replace_struct(step.state, selected=selected, spent=spent, reached=reached)
        return self._done(replace(step, state=after), way, played.made, answer)

    def _done(self, step: _Step, way: Way, made: tuple[Message, ...], answer: Answer | None) -> Outcome:
        state, events = step.state, list[Event]()
        everything = (*step.messages, *made)
        responded = state.responded or way.marks > 0
        complete = not state.answered and not way.more and (responded or not way.speech)
        given, told = state.given, state.told
        if not state.answered and (way.marks or complete):
            untold = _untold(step, way, made, answer)
            ending = Answer(answer.given if answer else given, events.append, untold)
            ending.catch_up()
            if complete:
                ending.finish(unanswered(everything), step.purse.spent)
            given, told = ending.given, len(everything)
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
            durable=False,
            answered=after.answered,
            status="done" if self._flows[step.claim.flow].plans[step.claim.path].single else "running",
            done=_record(step, "done"),
        )

    @staticmethod
    def _failed(step: _Step, error: BrainError) -> Outcome:
        log = logger.info if isinstance(error, RunCancelled) else logger.warning
        log("run %s: step %s failed: %s", step.claim.run_id, step.claim.path, error, exc_info=error.__cause__)
        state = replace_struct(step.state, account=step.purse.account)
        return Outcome(
            next=step.claim.path,
            state=msgspec.json.encode(state),
            events=() if state.answered else (Failed.of(error),),
            answered=state.answered,
            status="cancelled" if isinstance(error, RunCancelled) else "failed",
            error=write_error(error),
            done=_record(step, error.code),
        )


def _live(step: _Step, plan: Plan) -> Answer | None:
    """The answer, if this step may give to it live: a stage ends after it, or the whole run without any stage."""
    state, path = step.state, step.claim.path
    if state.answered:
        return None
    if plan.stage_ends_after(path):
        return Answer(state.given, step.tape.write, step.messages[state.told :])
    if state.responded or plan.marks_after(path) or plan.speech_after(path):
        return None
    # without any stage the answer is what the last flow says, and the others' words are not part of it
    return Answer(state.given, step.tape.write)


def _untold(step: _Step, way: Way, made: tuple[Message, ...], answer: Answer | None) -> Sequence[Message]:
    """The messages that the client is still to get when a stage or the run ends with this step."""
    earlier = step.messages[step.state.told :]
    if way.marks:
        return answer.backlog if answer is not None else (*earlier, *made)
    if step.state.responded:
        return ()
    # without any stage the answer is what the last flow said, or the last word there was when it said nothing
    if made:
        return () if answer is not None else made
    return earlier[-1:]


def _tell_way(trail: Trail, selected: str | None, way: Way) -> None:
    if selected is not None:
        trail.tell("select", id=selected)
    for fork in way.skipped:
        trail.tell("select.none", at=fork)
    for _ in range(way.marks):
        trail.tell("respond")


def _record(step: _Step, result: str) -> dict[str, object]:
    spent = step.own.spent
    return {
        "path": step.claim.path,
        "attempt": step.claim.attempt,
        "result": result,
        "usage": msgspec.to_builtins(spent),
    }
