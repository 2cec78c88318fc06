"""The orchestrator: owns agents, and carries tasks out with a model that finds its way through them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Unpack

from bigbrain.agents import Agent as BrainAgent
from bigbrain.chat import Chat, model_name
from bigbrain.errors import TaskFailed, WiringError
from bigbrain.messages import Message, user
from bigbrain.models import Asks, ModelRef, connect
from bigbrain.orchestrator import prompting
from bigbrain.orchestrator.agents import Agent, check_agents, outline
from bigbrain.orchestrator.backends import Backend, ModelBackend
from bigbrain.orchestrator.cancellation import joined
from bigbrain.orchestrator.claude_code import ClaudeCode
from bigbrain.orchestrator.conversations import asked_of, check_given, plain
from bigbrain.orchestrator.options import Options, Wanted
from bigbrain.orchestrator.results import TaskResult, ToolTrace
from bigbrain.orchestrator.tasks import Listeners, Task, failure
from bigbrain.run import Run
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.turns import Turn


class Orchestrator:
    """Carries tasks out with agents and their tools; for any number of threads.

    On its own by `execute_task`; as an agent of a brain by `Flow(Orchestrator(…))`, which serves it as a model.
    """

    def __init__(self, agents: Sequence[Agent], **options: Unpack[Wanted]) -> None:
        """agents: those at the top; the model sees their names and descriptions. options: see `Options`.

        Raises `WiringError` with everything that is wrong about the agents or cannot be meant by the options.
        """
        self.agents = tuple(agents)
        check_agents(self.agents)
        _check_names(set(options))
        self.options = Options(**options)
        self._own_backend = _own_backend(self.options)

    def __repr__(self) -> str:
        return f"Orchestrator({[one.name for one in self.agents]!r}, name={self.options.name!r})"

    def execute_task(
        self,
        prompt: str | Message,
        *,
        history: Sequence[Message] = (),
        tool_traces: Sequence[ToolTrace] = (),
        log_callback: Callable[[str], None] | None = None,
        on_token: Callable[[str], None] | None = None,
    ) -> TaskResult:
        """Carries a task out. Whatever goes wrong on the way is a result with the status `error`, never raised.

        history: what was said before, messages of users and assistants; calls and results of other tools in it are told
        in words. tool_traces: what earlier tasks found out
        (`result.tool_traces`), to be used again instead of fetched again; not part of this result.
        log_callback: for developers: hears every reply of the model raw, piece by piece, and `[[END]]` behind each.
        on_token: for users: hears the answer and nothing else, as the model writes it; together the pieces are
        `result.answer`. With an error they may be a part of an answer that broke off.

        Raises `WiringError` when arguments are mixed up.
        """
        check_given(history, tool_traces)
        if log_callback is not None and log_callback == on_token:
            raise WiringError(
                "`log_callback` and `on_token` are the same function: it would get the protocol and the answer mixed "
                "up; `on_token` alone gives the answer"
            )
        listeners = Listeners(log_callback, on_token)
        asked = user(prompt) if isinstance(prompt, str) else prompt
        return self._carry_out(asked, plain(history), tool_traces, listeners, Run(), self._lone_backend)

    def as_agent(self) -> BrainAgent:
        """The orchestrator as an agent of a brain, which `Flow(…)` makes of it by itself."""
        needs_model = self._own_backend is None
        return BrainAgent(
            name=self.options.name,
            handler=self._take_turn,
            model=self.options.wanted_model if needs_model else None,
            needs_model=needs_model,
            parts=tuple(outline(self.agents)),
        )

    def _take_turn(self, turn: Turn, chat: Chat) -> None:
        """Answers the client: live where the flow may, the conversation before its last message being the history."""
        history, prompt = asked_of(turn.messages)

        def carried_out(on_token: Callable[[str], None] | None) -> str:
            listeners = Listeners(token=on_token)
            result = self._carry_out(
                prompt,
                plain(history),
                (),
                listeners,
                chat.run,
                lambda: self._own_backend or self._model(chat.model),
                turn.begun,
            )
            if result.error is not None:
                raise result.error
            return result.answer

        stream = turn.stream()
        if stream is None:
            turn.reply(carried_out(None))
            return
        with stream:
            carried_out(stream.write)

    def _carry_out(
        self,
        prompt: Message,
        history: Sequence[Message],
        traces: Sequence[ToolTrace],
        listeners: Listeners,
        run: Run,
        backend: Callable[[], Backend],
        begun: str = "",
    ) -> TaskResult:
        stop = self.options.cancellation
        try:
            if not prompt.parts:
                raise TaskFailed("the prompt is empty; say what is to be done")
            with joined(run.scope, stop.scope if stop is not None else Scope()) as scope:
                task = Task(
                    self.agents,
                    self.options,
                    backend(),
                    replace(run, scope=scope),
                    history=history,
                    begin=(*prompting.known(traces), prompt),
                    listeners=listeners,
                    begun=begun,
                )
                return task.result()
        except Exception as exc:
            error = failure(exc)
            return TaskResult("error", str(error), error=error)

    def _lone_backend(self) -> Backend:
        return self._own_backend or self._model(self._lone_model)

    def _model(self, model: Asks) -> ModelBackend:
        options = self.options
        return ModelBackend(
            model, model_name(model), json_only=options.enforce_json_output, caching=options.enable_prompt_caching
        )

    @cached_property
    def _lone_model(self) -> Asks:
        """The model outside of a brain, connected with the first task. Raises `WiringError` without a key for it."""
        wanted = self.options.lone_model
        if isinstance(wanted, ModelRef):
            raise WiringError("only a brain looks up `model(…)` by its tags; give the `Model` itself")
        return connect(wanted, Settings.read())


def _own_backend(options: Options) -> Backend | None:
    """The backend that is not a model of ours, if there is one."""
    if not isinstance(options.backend, str):
        return options.backend
    if options.backend == "model" or options.session_id is None:
        return None
    return ClaudeCode(
        options.session_id,
        options.cli_path,
        model=options.model if isinstance(options.model, str) else None,
        api_key=options.api_key,
        server_url=options.server_url,
    )


def _check_names(given: set[str]) -> None:
    known = [one.name for one in fields(Options)]
    faults = []
    for name in sorted(given - set(known)):
        [meant] = difflib.get_close_matches(name, known, n=1, cutoff=0.5) or [""]
        faults.append(f"`{name}` is no option of an orchestrator; " + (f"did you mean `{meant}`?" if meant else ""))
    if faults:
        raise WiringError(*faults)
