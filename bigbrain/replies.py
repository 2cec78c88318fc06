"""A model's reply as it comes.

A reply is read as it is used: iterating gives its text live, `text` waits for all of it,
and both may be done, in any order. Whatever breaks off on the way is raised to whoever
reads, each time, never cut short silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, overload

import marshmallow

from bigbrain import schemas
from bigbrain.errors import ModelBroke
from bigbrain.events import Delta, Event, Finished, Opened, fold
from bigbrain.kept import kept_part
from bigbrain.messages import JSON, Message, Response, Text, ToolCall, Usage
from bigbrain.schemas import Shape

T = TypeVar("T")


class Reply:
    """A model's answer: live for whoever iterates, whole for whoever asks for `text`; both may be done."""

    def __init__(self, events: Iterator[Event], spend: Callable[[Usage], None] = lambda _: None) -> None:
        """spend: told once what the answer cost, when it is complete, breaks off or is closed."""
        self._source = events
        self._spend = spend
        self._seen: list[Event] = []
        self._so_far = Response()
        self._complete = False
        self._over = False
        self._pulling = False
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

    @overload
    def extract(self, kind: type[marshmallow.Schema] | marshmallow.Schema) -> JSON: ...
    @overload
    def extract(self, kind: type[T] | Shape[T]) -> T: ...
    @overload
    def extract(self, kind: object) -> JSON: ...
    def extract(self, kind: object) -> JSON:
        """The value of a type that stands in the text, fully checked; waits for the end.

        Raises `SchemaError` when there is none, or none that fits.
        """
        return schemas.extract(self.text, kind)

    @property
    def over(self) -> bool:
        """Whether nothing more comes, for whatever reason."""
        return self._over

    @property
    def busy(self) -> bool:
        """Whether somebody is waiting for the next of it right now."""
        return self._pulling

    def begin(self) -> None:
        """Waits until the model has begun to answer. Raises `ModelError` when it refuses."""
        if not self._seen:
            self._pull()

    def begin_text(self) -> None:
        """Waits for the first piece of text, or for the end when none comes. Raises what reading raises."""
        for _ in self:
            return

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
            self._pulling = True
            try:
                event = next(self._source)
                if isinstance(event, Opened):
                    kept_part(event.part, "a model's answer")
            except StopIteration:
                self._end(ModelBroke("the model's answer stopped without an end"))
            except Exception as exc:
                self._end(exc)
            else:
                self._take(event)
                return True
            finally:
                self._pulling = False
        if self._error is not None:
            raise self._error
        return False

    def _take(self, event: Event) -> None:
        self._seen.append(event)
        self._so_far = fold(self._so_far, event)
        if isinstance(event, Finished):
            # not yet the end of the source: what it does after its last event makes its connection free again
            self._complete = True
            self._spend(self._so_far.usage)

    def _end(self, error: Exception) -> None:
        """Nothing more comes: an error to whoever reads on, unless the answer was complete."""
        self._over = True
        if not self._complete:
            self._error = error
            self._spend(self._so_far.usage)
