"""Going on with an answer that an earlier attempt of the same step began.

The client has what that attempt told; the new one does the step from its start. As long as
it tells the same, nothing is told again, and from where the client is on everything is:
it notices nothing. When it tells something else, which a model may, the client's answer
cannot be made whole any more: it ends with an error, at once, and the run goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bigbrain.errors import RunInterrupted
from bigbrain.events import Closed, Delta, Event, Failed, Opened, collect, read_events
from bigbrain.messages import Part, Text, Thinking, ToolCall


class Continuing:
    """Takes the events of a new attempt, and emits those that the client does not have yet."""

    def __init__(self, emit: Callable[[Event], None], told: Sequence[Event], base: int) -> None:
        """told: what the client has of this step. base: how many parts of the answer come before it."""
        self._emit = emit
        self._parts = collect(told).parts
        self._closed = {event.index - base for event in told if isinstance(event, Closed)}
        self._base = base
        self._seen = 0
        self._text = ""
        self.diverged = False

    @classmethod
    def of(cls, emit: Callable[[Event], None], lines: Iterable[bytes], base: int) -> Continuing:
        """The same from lines of the run's log."""
        return cls(emit, [event for line in lines for event in read_events(line)], base)

    def __call__(self, event: Event) -> None:
        """Takes an event of the new attempt."""
        if self.diverged:
            return
        match event:
            case Opened(index, part) if self._told(index):
                self._seen, self._text = index - self._base + 1, ""
                if not _alike(part, self._parts[index - self._base]):
                    self._diverge()
            case Delta(index, text) if self._told(index):
                self._more(index, text)
            case Closed(index) if self._told(index):
                self._close(event)
            case _:
                self._emit(event)

    def end(self) -> None:
        """The new attempt is over: it has told all that the client has, or the answer breaks off."""
        if not self.diverged and self._seen < len(self._parts):
            self._diverge()

    def _told(self, index: int) -> bool:
        return index - self._base < len(self._parts)

    def _more(self, index: int, text: str) -> None:
        told = _text(self._parts[index - self._base])
        before, self._text = self._text, self._text + text
        if told.startswith(self._text):
            return
        if self._text.startswith(told) and index - self._base not in self._closed:
            self._emit(Delta(index, self._text[max(len(before), len(told)) :]))
        else:
            self._diverge()

    def _close(self, event: Closed) -> None:
        if not self._text.startswith(_text(self._parts[event.index - self._base])):
            self._diverge()
        elif event.index - self._base not in self._closed:
            self._emit(event)

    def _diverge(self) -> None:
        self.diverged = True
        self._emit(Failed.of(RunInterrupted()))


def _alike(new: Part, told: Part) -> bool:
    if isinstance(new, ToolCall) and isinstance(told, ToolCall):
        return (new.id, new.name) == (told.id, told.name)
    return type(new) is type(told)


def _text(part: Part) -> str:
    match part:
        case Text(text) | Thinking(text):
            return text
        case ToolCall():
            return part.arguments
        case _:
            return ""
