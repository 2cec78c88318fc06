"""The model side of a turn: what is asked, with which tools, in which shape.

`ask` is one question: it runs no tool, whatever the model calls. `resolve` runs the
author's tools and asks again until the model answers. Nothing about tools is implicit:
those of one question are named with it, the client's only when it is forwarded.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from bigbrain.errors import WiringError
from bigbrain.fitting import answer_schema, fitted, told
from bigbrain.messages import JSON, Message, Request, ToolChoice, ToolSpec, system, user
from bigbrain.models import Askable, Asks, Model, connect
from bigbrain.models.connection import Connection
from bigbrain.prefilling import prefilled
from bigbrain.replies import Reply as Reply
from bigbrain.resolving import Loop
from bigbrain.run import Run
from bigbrain.schemas import Shape, shape
from bigbrain.settings import Settings
from bigbrain.tools import Tool, specs

Role: TypeAlias = str | Callable[[], str]
"""The system text of a chat, or what gives it anew for each question."""

MAX_ROUNDS = 8
"""Rounds of a tool loop unless the author says otherwise; the seed's own figure."""


@dataclass(frozen=True)
class _Question:
    """What one question adds to the conversation."""

    tools: tuple[Tool[..., object] | ToolSpec, ...]
    choice: ToolChoice
    client: Request | None
    shape: Shape[JSON] | None
    repairs: int

    def request(self, messages: Sequence[Message], choice: ToolChoice, model: Asks) -> Request:
        """The request itself; the author's tools come after the client's, and instead of those of the same name."""
        own = tuple(specs(self.tools))
        request = Request(messages=tuple(messages), tools=own, tool_choice=choice)
        if self.client is not None:
            request = _forwarded(request, self.client)
        if self.shape is not None:
            request = replace(request, schema=answer_schema(self.shape, model))
        return request


class Chat:
    """A conversation with a model, built message by message.

    In a handler it is the turn's own; on its own, `Chat(Model("gpt-4o-mini")).ask("hi").text`
    needs no flow and no server.
    """

    def __init__(
        self,
        model: Askable | None,
        *,
        role: Role = "",
        run: Run | None = None,
        schema: object = None,
        repairs: int = 1,
        settings: Settings | None = None,
    ) -> None:
        """role: the system text that stands before all messages. schema, repairs: see `ask`, for all questions.

        run: what stops it, pays for it and hears of it, and whose request may be forwarded.
        settings: has the keys, when the model is a `Model`; by default the environment's, read with the first question.
        """
        self._model = model
        self._asks: Asks | None = None if isinstance(model, Model) else model
        self._role = role
        self._run = run or Run()
        self._schema = schema
        self._repairs = repairs
        self._settings = settings
        self._messages: list[Message] = []
        self._replies: list[Reply] = []
        self._loops: list[Reply] = []
        self._asked = Counter[str]()

    @property
    def run(self) -> Run:
        """The run that it is part of; one of its own outside of a flow."""
        return self._run

    @property
    def model(self) -> Asks:
        """What it asks. Raises `WiringError` when there is none, or no key for it."""
        return self._connected()

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the next `ask` sends, without the role."""
        return tuple(self._messages)

    def add(self, *messages: Message | str) -> Chat:
        """Adds messages to what the model is asked; a string is a user's message. The chat itself, to go on with."""
        self._messages += [user(message) if isinstance(message, str) else message for message in messages]
        return self

    def ask(
        self,
        *messages: Message | str,
        tools: Sequence[Tool[..., object] | ToolSpec] = (),
        choice: ToolChoice = "auto",
        forward: bool = False,
        schema: object = None,
        repairs: int | None = None,
        beginning: str = "",
    ) -> Reply:
        """Adds `messages`, asks the model once and gives its reply; the reply is not added, and no tool is run.

        tools, choice: what the model may, or must, call in this answer.
        forward: sends what the client's request asks of an answer as well: its tools, before the author's, its
        choice among them unless there is another, the answer's schema unless there is another, its stop texts, its
        token limit and, from one OpenAI dialect to another, its wish for log probabilities. The name of the model that it asks for goes along too, but an agent's model is its own.
        schema: the shape that the answer must have, a dataclass, a marshmallow Schema, a pydantic model or a `Shape`.
        The answer is then read whole and checked fully; the reply's text is its JSON, in one piece.
        repairs: how often an answer that does not fit is put back to the model with its faults.
        beginning: how the answer begins, such as `turn.begun`; a model that can (`Model.prefill`) goes on from there, any
        other is asked for all of it. The reply has the beginning, too. Not for answers with a schema.

        Raises `WiringError` when there is no model, `ModelError` when the model refuses or cannot be reached,
        `SchemaError` when its last answer does not fit or was cut off, `BudgetSpent` when no more may be asked.
        """
        self.settle()
        self.add(*messages)
        question = self._question(tools, choice, forward=forward, schema=schema, repairs=repairs)
        return self._round(question, question.choice, beginning)

    def resolve(
        self,
        *messages: Message | str,
        tools: Sequence[Tool[..., object] | ToolSpec] = (),
        max_rounds: int = MAX_ROUNDS,
        choice: ToolChoice = "auto",
        forward: bool = False,
        schema: object = None,
        repairs: int | None = None,
        timeout: float | None = None,
        aloud: bool = True,
    ) -> Reply:
        """Adds `messages`, then asks, runs the tools that the model calls and asks again, until it calls none.

        The functions of one round run at the same time, each in a thread of its own. The calls and their results are
        added to the chat, the last answer is not. A call without a function here (the client's, a bare tool) ends the
        loop: nothing of that round is run, and the reply has all its calls. A name that nobody knows is answered with
        the names that there are.

        The reply is live: it is given once its text begins. Its text is what the model says in all rounds, a blank line
        between them; with `aloud=False`, and with a schema, that of the last round alone, which comes whole. Its usage
        is the last round's. What nobody reads of it is carried out by the chat's next question or at the turn's end.

        max_rounds: how often the model is asked. choice: a forced one holds for the first round only.
        timeout: seconds for all rounds together, looked at before each and while tools run.

        Raises what `ask` raises, and `ToolError` when the model calls tools in the last round, which are not run, or
        when the time is over.
        """
        if max_rounds < 1:
            raise WiringError(f"`max_rounds` is {max_rounds}: give 1 or more")
        self.settle()
        self.add(*messages)
        question = self._question(tools, choice, forward=forward, schema=schema, repairs=repairs)
        own = {one.name: one for one in question.tools if isinstance(one, Tool) and one.handler is not None}
        others = (*question.tools, *(question.client.tools if question.client else ()))
        loop = Loop(
            id=self._loop_id(question),
            ask=lambda choice: self._round(question, choice),
            add=self.add,
            tools=own,
            theirs=frozenset(one.name for one in others) - own.keys(),
            run=self._run,
            choice=question.choice,
            max_rounds=max_rounds,
            timeout=timeout,
            aloud=aloud and question.shape is None,
        )
        reply = Reply(loop.events())
        self._replies.append(reply)
        self._loops.append(reply)
        reply.begin_text()
        return reply

    def settle(self) -> None:
        """Carries out what nobody has read of a tool loop: its tools are run whether its answer is wanted or not.

        Raises what reading raises.
        """
        for loop in self._loops:
            # not the one that is under way right now: a tool's function may use the chat that runs it
            if not loop.over and not loop.busy:
                _ = loop.response
        self._loops = [loop for loop in self._loops if not loop.over]

    def close(self) -> None:
        """Closes the replies that nobody has read to their end."""
        for reply in self._replies:
            with contextlib.suppress(Exception):
                reply.close()

    def _question(
        self,
        tools: Sequence[Tool[..., object] | ToolSpec],
        choice: ToolChoice,
        *,
        forward: bool,
        schema: object,
        repairs: int | None,
    ) -> _Question:
        kind = self._schema if schema is None else schema
        wanted: Shape[JSON] | None = kind if isinstance(kind, Shape) or kind is None else shape(kind)
        client = self._run.request if forward else None
        if client is not None and choice == "auto":
            choice = client.tool_choice
        return _Question(
            tuple(tools),
            choice,
            client,
            wanted,
            self._repairs if repairs is None else repairs,
        )

    def _round(self, question: _Question, choice: ToolChoice, beginning: str = "") -> Reply:
        """One answer; a fitted one when there is a shape."""
        model = self._connected()
        role = self._role if isinstance(self._role, str) else self._role()
        if question.shape is not None:
            role = "\n\n".join(filter(None, (role, told(question.shape))))
        messages = (*((system(role),) if role else ()), *self._messages)
        request = question.request(messages, choice, model)
        if question.shape is None:
            return self._call(prefilled(model, request, beginning), request)
        return fitted(
            lambda more: self._call(model, replace(request, messages=(*request.messages, *more))),
            question.shape,
            question.repairs,
        )

    def _call(self, model: Asks, request: Request) -> Reply:
        """Asks the model, as far as the run may go on and pay for it."""
        self._run.scope.check()
        self._run.purse.admit()
        events = self._run.trail.listen(model_name(model), model.ask(request, self._run.scope))
        reply = Reply(events, self._run.purse.spend)
        self._replies = [*(one for one in self._replies if not one.over), reply]
        reply.begin()
        return reply

    def _connected(self) -> Asks:
        if self._asks is None:
            if self._model is None:
                raise WiringError("this agent has no model: give one to the agent, its flow or the brain")
            self._asks = connect(self._model, self._settings or Settings.read())
        return self._asks

    def _loop_id(self, question: _Question) -> str:
        """The name of a tool loop: the same when a step runs again and asks the same, different for each loop."""
        asked = msgspec.json.encode([self._messages, [one.name for one in question.tools]])
        digest = hashlib.sha256(asked).hexdigest()[:32]
        self._asked[digest] += 1
        return f"{digest}-{self._asked[digest]}"


def model_name(model: Asks) -> str:
    """What traces call a model."""
    return model.model.name if isinstance(model, Connection) else str(getattr(model, "name", type(model).__name__))


def _forwarded(request: Request, client: Request) -> Request:
    own = {one.name for one in request.tools}
    return replace(
        request,
        model=client.model,
        tools=(*(one for one in client.tools if one.name not in own), *request.tools),
        parallel_calls=client.parallel_calls,
        schema=client.schema,
        stop=client.stop,
        max_tokens=client.max_tokens,
        extra=client.extra,
    )
