"""The model side of a turn: what is asked, and the reply as it comes.

A reply is read as it is used: `ask` returns once the model has begun to answer (a
refusal is raised there), iterating gives the text live, `text` waits for all of it.
Whatever breaks off on the way is raised to whoever reads, each time, never cut short silently.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from bigbrain.errors import ModelBroke, WiringError
from bigbrain.events import Delta, Event, Finished, Opened, fold
from bigbrain.messages import Message, Request, Response, Text, ToolCall, Usage, system, user
from bigbrain.models import Asks
from bigbrain.scope import Scope


class Reply:
    """A model's answer: live for whoever iterates, whole for whoever asks for `text`; both may be done."""

    def __init__(self, events: Iterator[Event], spend: Callable[[Usage], None] = lambda _: None) -> None:
        self._source = events
        self._spend = spend
        self._seen: list[Event] = []
        self._so_far = Response()
        self._spent = False
        self._over = False
        self._error: Exception | None = None

    def events(self) -> Iterator[Event]:
        """The events of the answer, from its start; each call begins anew."""
        index = 0
        while index < len(self._seen) or self._pull():
            yield self._seen[index]
            index += 1

    def __iter__(self) -> Iterator[str]:
        """The text, piece by piece as the model writes it.

        Raises `ModelError` where the model breaks off.
        """
        text = False
        for event in self.events():
            if isinstance(event, Opened):
                text = isinstance(event.part, Text)
            elif isinstance(event, Delta) and text:
                yield event.text

    @property
    def response(self) -> Response:
        """The whole answer; waits for its end. Raises `ModelError` when the model breaks off."""
        while self._pull():
            pass
        return self._so_far

    @property
    def so_far(self) -> Response:
        """What has been read of the answer; waits for nothing."""
        return self._so_far

    @property
    def text(self) -> str:
        """The whole text; waits for its end. Raises `ModelError` when the model breaks off."""
        return self.response.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls that the model asks for; waits for the end."""
        return self.response.calls

    @property
    def usage(self) -> Usage:
        """What this one answer cost, in tokens; waits for the end. Zeros where the model reports nothing."""
        return self.response.usage

    @property
    def message(self) -> Message:
        """The whole answer as a message of a conversation; waits for the end."""
        return self.response.message

    def begin(self) -> None:
        """Waits until the model has begun to answer. Raises `ModelError` when it refuses."""
        if not self._seen:
            self._pull()

    def close(self) -> None:
        """Ends a reply that is not wanted any more: the model's connection is closed at once."""
        if self._over:
            return
        self._end(ValueError("this reply is closed: it was not read to its end in time"))
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _pull(self) -> bool:
        if not self._over:
            try:
                event = next(self._source)
            except StopIteration:
                self._end(ModelBroke("the model's answer stopped without an end"))
            except Exception as exc:
                self._end(exc)
            else:
                self._take(event)
                return True
        if self._error is not None:
            raise self._error
        return False

    def _take(self, event: Event) -> None:
        self._seen.append(event)
        self._so_far = fold(self._so_far, event)
        if isinstance(event, Finished):
            # not yet the end of the source: what it does after its last event makes its connection free again
            self._settle()

    def _end(self, error: Exception) -> None:
        """Nothing more comes: an error to whoever reads on, unless the answer was complete."""
        self._over = True
        if not self._spent:
            self._error = error
            self._settle()

    def _settle(self) -> None:
        self._spent = True
        self._spend(self._so_far.usage)


class Chat:
    """A conversation with a model, built message by message.

    In a handler it is the turn's own; on its own, `Chat(Model("gpt-4o-mini")).ask("hi").text`
    needs no flow and no server.
    """

    def __init__(
        self,
        model: Asks | None,
        *,
        role: str = "",
        scope: Scope | None = None,
        client: Request | None = None,
        spend: Callable[[Usage], None] = lambda _: None,
    ) -> None:
        """role: the system text that stands before all messages. client: the request whose tools may be forwarded."""
        self._model = model
        self._role = role
        self._scope = scope or Scope()
        self._client = client or Request()
        self._spend = spend
        self._messages: list[Message] = []
        self._replies: list[Reply] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the next `ask` sends, without the role."""
        return tuple(self._messages)

    def add(self, *messages: Message | str) -> Chat:
        """Adds messages to what the model is asked; a string is a user's message. The chat itself, to go on with."""
        self._messages += [user(message) if isinstance(message, str) else message for message in messages]
        return self

    def ask(self, *messages: Message | str, forward: bool = False) -> Reply:
        """Adds `messages`, asks the model once and gives its reply; the reply is not added.

        forward: sends what the client's request asks of an answer as well: its tools and its
        choice among them, the answer's schema, its stop texts and its token limit. The name of
        the model that it asks for goes along too, but an agent's model is its own.

        Raises `WiringError` when there is no model, `ModelError` when the model refuses or cannot be reached.
        """
        self.add(*messages)
        if self._model is None:
            raise WiringError("this agent has no model: give one to the agent, its flow or the brain")
        self._scope.check()
        role = (system(self._role),) if self._role else ()
        request = Request(messages=(*role, *self._messages))
        if forward:
            request = _forwarded(request, self._client)
        reply = Reply(self._model.ask(request, self._scope), self._spend)
        self._replies.append(reply)
        reply.begin()
        return reply

    def close(self) -> None:
        """Closes the replies that nobody has read to their end."""
        for reply in self._replies:
            with contextlib.suppress(Exception):
                reply.close()


def _forwarded(request: Request, client: Request) -> Request:
    return replace(
        request,
        model=client.model,
        tools=client.tools,
        tool_choice=client.tool_choice,
        parallel_calls=client.parallel_calls,
        schema=client.schema,
        stop=client.stop,
        max_tokens=client.max_tokens,
    )
