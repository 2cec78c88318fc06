"""One task: the model is asked, what it replies is done, it is asked again, until it finishes or gives up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bigbrain.errors import BrainError, SchemaError, TaskAborted, TaskFailed
from bigbrain.messages import Message, Text, ToolResult, Usage
from bigbrain.orchestrator import prompting
from bigbrain.orchestrator.actions import Abort, Call, Finish, Plan
from bigbrain.orchestrator.agents import Agent
from bigbrain.orchestrator.answering import Answering
from bigbrain.orchestrator.backends import Backend, Conversation, Said
from bigbrain.orchestrator.calling import Done, carry_out
from bigbrain.orchestrator.options import Options
from bigbrain.orchestrator.recording import FAULT, Record, Step
from bigbrain.orchestrator.results import Status, TaskResult
from bigbrain.run import Run

END = "[[END]]"
"""What `log_callback` gets behind each reply."""


@dataclass(frozen=True)
class Listeners:
    """Who hears of a task while it is under way; a step that ends well or badly ends with `END` in the log."""

    log: Callable[[str], None] | None = None
    token: Callable[[str], None] | None = None


def failure(error: Exception) -> BrainError:
    """What a task failed with, as an error of ours: else it is a callback's, or a backend's that breaks its promise."""
    if isinstance(error, BrainError):
        return error
    failed = TaskFailed(f"{type(error).__name__}: {error}")
    failed.__cause__ = error
    return failed


class Task:
    """A task under way; `result` carries it out."""

    def __init__(
        self,
        agents: tuple[Agent, ...],
        options: Options,
        backend: Backend,
        run: Run,
        *,
        history: Sequence[Message],
        begin: Sequence[Message],
        listeners: Listeners,
        begun: str = "",
    ) -> None:
        """run: stops it, pays for it, hears of it and keeps it. begin: what is known already, and the prompt.

        begun: what the user has of the answer, from an attempt that was lost; the model is asked to go on with it.
        """
        self._agents = agents
        self._options = options
        self._backend = backend
        self._run = run
        self._history = tuple(history)
        self._system = prompting.instructions(agents, options.optional_prompt)
        self._log = listeners.log
        self._answering = Answering(listeners.token)
        self._record = Record(begin, history, agents, run.rounds)
        self._usage = Usage()
        self._begun = begun

    def result(self) -> TaskResult:
        """Carries the task out; whatever it fails with is in the result."""
        try:
            return self._result("success", self._answer())
        except Exception as exc:
            error = failure(exc)
            return self._result("error", str(error), error)

    def _result(self, status: Status, answer: str, error: BrainError | None = None) -> TaskResult:
        traces, steps = tuple(self._record.traces), len(self._record.steps)
        return TaskResult(status, answer, traces, usage=self._usage, steps=steps, error=error)

    def _answer(self) -> str:
        steps = self._record.steps
        while True:
            if steps and steps[-1].plan is not None:
                answer = self._go_on(steps[-1], steps[-1].plan)
                if answer is not None:
                    return answer
            self._check_caps()
            said = self._ask()
            try:
                step = self._record.replied(said.text)
                self._check_given(step)
            except SchemaError as exc:
                self._put_back(said, exc)

    def _check_given(self, step: Step) -> None:
        """Raises `SchemaError` when a reply does something else after part of an answer was given."""
        plan, given = step.plan, self._answering.given
        if given and plan is not None and not (isinstance(plan.end, Finish) and plan.end.answer.startswith(given)):
            step.plan = None
            raise SchemaError("it is not the finish action that it began with")

    def _go_on(self, step: Step, plan: Plan) -> str | None:
        """Does what a reply says and is not done yet; the answer, if that ends the task."""
        match plan.end:
            case Finish(answer):
                self._answering.end(answer)
                self._record.ended(step)
                return answer
            case Abort(reason):
                raise TaskAborted(reason)
        for action in plan.todo[len(step.results) :]:
            self._check_last(action)
            done = carry_out(action, self._agents, self._run)
            self._record.done(step, done.result)
            self._check_tool(done)
        return None

    def _check_last(self, action: object) -> None:
        if len(self._record.steps) >= self._options.max_steps:
            what = f"calls `{action.tool}`" if isinstance(action, Call) else "asks for an agent"
            raise TaskFailed(
                f"`max_steps={self._options.max_steps}`: the model still {what} in the last step; allow more steps, or "
                "make the task smaller"
            )

    def _check_tool(self, done: Done) -> None:
        if done.fault is not None:
            raise done.fault
        if done.called and done.result.is_error and self._options.on_tool_error == "fail":
            raise TaskFailed(f"a tool failed: {done.result.text}")

    def _check_caps(self) -> None:
        self._run.scope.check()
        count = len(self._record.steps)
        if count >= self._options.max_steps:
            raise TaskFailed(f"`max_steps={self._options.max_steps}`: no answer after {count} steps; allow more steps")
        if count and self._options.steps_interval:
            self._run.scope.wait(self._options.steps_interval)

    def _put_back(self, said: Said, exc: SchemaError) -> None:
        step = self._record.steps[-1]
        told = str(exc)
        if said.stop in ("length", "context"):
            told += f"; it was cut off, because a reply may have {self._options.max_tokens} tokens: make it shorter"
        if self._record.faults >= self._options.repairs:
            count = self._options.repairs + 1
            raise TaskFailed(f"{count} replies in a row are outside the protocol; the last one: {told}") from exc
        text = prompting.fault(told, self._answering.given).text
        self._record.done(step, ToolResult(FAULT, (Text(text),), is_error=True))

    def _told(self) -> tuple[Message, ...]:
        """The task as the model is told it now."""
        lost = self._begun and not self._answering.given
        return (*self._record.conversation, *((prompting.begun(self._begun),) if lost else ()))

    def _ask(self) -> Said:
        """The next reply, paid for and told of like any question to a model."""
        run = self._run
        run.purse.admit()
        run.trail.tell("model.start", model=self._backend.name)
        self._answering.begin()
        began = time.perf_counter()
        with run.trail.timed("model.call", model=self._backend.name) as detail:

            def told(piece: str) -> None:
                detail.setdefault("first", time.perf_counter() - began)
                if self._log is not None:
                    self._log(piece)
                self._answering.hear(piece)

            def spent(usage: Usage) -> None:
                detail["usage"] = usage
                self._usage += usage
                run.purse.spend(usage)

            conversation = Conversation(self._system, self._history, self._told())
            deadline = time.monotonic() + self._options.timeout
            try:
                said = self._backend.ask(conversation, told=told, spent=spent, scope=run.scope, deadline=deadline)
            finally:
                if self._log is not None:
                    self._log(END)
            detail["stop"] = said.stop
            return said
