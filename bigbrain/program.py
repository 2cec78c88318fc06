"""What a brain does in one step of a run: an agent's turn, and all that follows from it.

The engine calls `Program.run` with a claimed step. The step's effect is one `Outcome`:
the messages that were made, what the client is given, where the run goes on. Nothing
of it counts before the engine has committed it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from msgspec.structs import replace as replace_struct

from bigbrain.answers import Answer, Given
from bigbrain.chat import Chat
from bigbrain.compiling import Compiled
from bigbrain.engine.plan import Step, Way
from bigbrain.engine.records import END, Claim, Outcome
from bigbrain.engine.store import write_error
from bigbrain.engine.writer import Tape
from bigbrain.errors import BrainChanged, BrainError, HandlerFailed, RunCancelled
from bigbrain.events import Event, Failed
from bigbrain.messages import Message, Request, Usage, unanswered
from bigbrain.models import load
from bigbrain.models.connection import Connection
from bigbrain.scope import Scope
from bigbrain.turns import Turn

logger = logging.getLogger(__name__)


class RunState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run carries from step to step beside its messages.

    `told`: how many of its messages the client has got; `responded`: whether a stage has
    ended; `answered`: whether the answer is complete.
    """

    given: Given = Given()
    told: int = 0
    responded: bool = False
    answered: bool = False
    usage: Usage = Usage()


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
    usage: Usage = field(default_factory=Usage)

    def spend(self, usage: Usage) -> None:
        self.usage = self.usage + usage


def _opened(step: _Step) -> _Step:
    """The step with what its run has on record. Raises `BrainChanged` when another version wrote it."""
    claim = step.claim
    try:
        return replace(
            step,
            state=_state.decode(claim.state),
            request=_request.decode(claim.request),
            messages=tuple(_message.decode(line) for line in claim.messages),
        )
    except msgspec.MsgspecError as exc:
        raise BrainChanged(f"the record of run {claim.run_id} cannot be read: {exc}") from exc


class Program:
    """The flows of one brain, as the engine executes them."""

    def __init__(self, flows: Mapping[str, Compiled]) -> None:
        self._flows = flows
        self._prints = {name: flow.plan.fingerprint for name, flow in flows.items()}

    def warm(self) -> None:
        """Imports what the first question to each model would import: seconds, with some SDKs."""
        for flow in self._flows.values():
            for binding in flow.bindings.values():
                if isinstance(binding.model, Connection):
                    load(binding.model.model.provider)

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
        plan = self._flows[flow].plan
        steps = plan.ahead(path)
        return steps, not (plan.single or plan.forks_after(steps[-1].path))

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Carries out a step; whatever goes wrong in it is an outcome."""
        step = _Step(claim, RunState(), Request(), (), tape, scope)
        try:
            step = _opened(step)
            scope.check()
            if self._prints.get(claim.flow) != claim.plan:
                raise BrainChanged
            return self._take_turn(step)
        except BrainError as exc:
            return self._failed(step, scope.error or exc)
        # a cancelled task of an `async def` handler is no `Exception`
        except (Exception, SystemExit, asyncio.CancelledError) as exc:
            error = scope.error or HandlerFailed(f"step {claim.path} of flow `{claim.flow}`")
            error.__cause__ = error.__cause__ or exc
            return self._failed(step, error)

    def _take_turn(self, step: _Step) -> Outcome:
        flow = self._flows[step.claim.flow]
        binding = flow.bindings[step.claim.path]
        way = flow.plan.after(step.claim.path)
        answer = self._live(step, way)
        turn = Turn(
            (*step.request.messages, *step.messages),
            step.request,
            run_id=step.claim.run_id,
            answer=answer,
            last=way.path == END,
        )
        chat = Chat(binding.model, role=binding.agent.role, scope=step.scope, client=step.request, spend=step.spend)
        try:
            binding.agent.act(turn, chat)
            turn.close()
        finally:
            chat.close()
        step.scope.check()
        return self._done(step, way, turn, answer)

    def _live(self, step: _Step, way: Way) -> Answer | None:
        """The answer, if this step may give to it live: a stage ends after it, or the whole run without any stage."""
        state = step.state
        if state.answered or not (way.marks or (way.path == END and not state.responded)):
            return None
        # without any stage the answer is what the last flow says, and the others' words are not part of it
        backlog = step.messages[state.told :] if way.marks else ()
        return Answer(state.given, step.tape.write, backlog)

    def _done(self, step: _Step, way: Way, turn: Turn, answer: Answer | None) -> Outcome:
        state, events = step.state, list[Event]()
        made = (*step.messages, *turn.made)
        usage = state.usage + step.usage
        responded = state.responded or way.marks > 0
        complete = not state.answered and not way.more and (responded or way.path == END)
        given, told = state.given, state.told
        if way.marks or complete:
            ending = Answer(answer.given if answer else given, events.append, self._untold(step, way, turn, answer))
            ending.catch_up()
            if complete:
                ending.finish(unanswered(made), usage)
            given, told = ending.given, len(made)
        after = RunState(given, told, responded, state.answered or complete, usage)
        return Outcome(
            next=way.path,
            state=msgspec.json.encode(after),
            messages=tuple(msgspec.json.encode(message) for message in turn.made),
            events=tuple(events),
            durable=False,
            answered=after.answered,
            status="done" if self._flows[step.claim.flow].plan.single else "running",
            done=_done(step, "done"),
        )

    @staticmethod
    def _untold(step: _Step, way: Way, turn: Turn, answer: Answer | None) -> Sequence[Message]:
        """The messages that the client is still to get when a stage or the run ends with this step."""
        if answer is not None:
            if way.marks:
                return answer.backlog
            return () if turn.made else step.messages[step.state.told :][-1:]
        if step.state.answered or not way.marks:
            return ()
        return (*step.messages[step.state.told :], *turn.made)

    @staticmethod
    def _failed(step: _Step, error: BrainError) -> Outcome:
        log = logger.info if isinstance(error, RunCancelled) else logger.warning
        log("run %s: step %s failed: %s", step.claim.run_id, step.claim.path, error, exc_info=error.__cause__)
        state = replace_struct(step.state, usage=step.state.usage + step.usage)
        return Outcome(
            next=step.claim.path,
            state=msgspec.json.encode(state),
            events=() if state.answered else (Failed.of(error),),
            answered=state.answered,
            status="cancelled" if isinstance(error, RunCancelled) else "failed",
            error=write_error(error),
            done=_done(step, error.code),
        )


def _done(step: _Step, result: str) -> dict[str, object]:
    return {
        "path": step.claim.path,
        "attempt": step.claim.attempt,
        "result": result,
        "usage": msgspec.to_builtins(step.usage),
    }
