"""Going on with an answer that an earlier attempt of the same step began.

The client has what that attempt told; the new one does the step from its start. As long as
it tells the same, nothing is told again, and from where the client is on everything is:
it notices nothing. When it tells something else, which a model may, what the client has cannot be made
whole any more: what was told since the last commit is taken back from the log, and the new attempt tells all of its
own there. A client that has some of the old gets an error, at once; one that asks again, or has nothing yet,
gets the new answer, whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bigbrain.events import Closed, Delta, Event, Opened, collect, read_events
from bigbrain.messages import Part, Text, Thinking, ToolCall


class Continuing:
    """Takes the events of a new attempt, and emits those that the client does not have yet."""

    def __init__(
        self, emit: Callable[[Event], None], told: Sequence[Event], base: int, take_back: Callable[[], None]
    ) -> None:
        """told: what the client has of this step. base: how many parts of the answer come before it.

        take_back: takes that back, called before the first event is emitted that does not go on with it.
        """
        self._emit = emit
        self._take_back = take_back
        self._swallowed: list[Event] = []
        self._parts = collect(told).parts
        self._closed = {event.index - base for event in told if isinstance(event, Closed)}
        self._base = base
        self._seen = 0
        self._text = ""
        self.anew = False
        """Whether the new attempt told something else, and so tells all of its own."""

    @classmethod
    def of(
        cls, emit: Callable[[Event], None], lines: Iterable[bytes], base: int, take_back: Callable[[], None]
    ) -> Continuing:
        """The same from lines of the run's log."""
        return cls(emit, [event for line in lines for event in read_events(line)], base, take_back)

    @property
    def begun(self) -> str:
        """The text that the client has, if it has nothing else of this step and the text is not closed."""
        match self._parts:
            case (Text(text),) if not self._closed:
                return text
            case _:
                return ""

    def __call__(self, event: Event) -> None:
        """Takes an event of the new attempt."""
        if self.anew:
            self._emit(event)
            return
        match event:
            case Opened(index, part) if self._told(index):
                self._seen, self._text = index - self._base + 1, ""
                self._swallow(event, alike=_alike(part, self._parts[index - self._base]))
            case Delta(index, text) if self._told(index):
                self._more(event, self._text, self._text + text)
            case Closed(index) if self._told(index):
                self._close(event)
            case _:
                self._emit(event)

    def end(self) -> None:
        """The new attempt is over: it has told all that the client has, or told something else."""
        if not self.anew and self._seen < len(self._parts):
            self._begin_anew()

    def _told(self, index: int) -> bool:
        return index - self._base < len(self._parts)

    def _more(self, event: Delta, before: str, now: str) -> None:
        told, self._text = _text(self._parts[event.index - self._base]), now
        if now.startswith(told) and now != told and event.index - self._base not in self._closed:
            self._emit(Delta(event.index, now[max(len(before), len(told)) :]))
        else:
            self._swallow(event, alike=told.startswith(now))

    def _close(self, event: Closed) -> None:
        if event.index - self._base not in self._closed and self._has_all(event.index):
            self._emit(event)
        else:
            self._swallow(event, alike=self._has_all(event.index))

    def _has_all(self, index: int) -> bool:
        return self._text.startswith(_text(self._parts[index - self._base]))

    def _swallow(self, event: Event, *, alike: bool) -> None:
        """Takes an event that the client has already, or that shows that it has something else."""
        self._swallowed.append(event)
        if not alike:
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Nothing was emitted so far: that begins only where all that the client has was told again."""
        self.anew = True
        self._take_back()
        for event in self._swallowed:
            self._emit(event)


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
