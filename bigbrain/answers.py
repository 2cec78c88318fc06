"""What a run's client has been given so far, and the one way to give it more.

A run's answer is one `Response`, built by several flows in several processes. Each
text that a flow gives becomes a part of its own; between the texts of two messages
stands a blank line, which is part of the text, so that a client that streams and
one that waits read the same. A model's answer that is relayed keeps its own parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from bigbrain.events import Closed, Delta, Event, Finished, Opened
from bigbrain.messages import Message, Stop, Text, ToolCall, Usage

BETWEEN = "\n\n"
"""What stands between the texts of two messages of one answer."""


class Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much the client has: the part of a run's state that its answer needs.

    `parts`: parts of the answer; `text`: whether any text is among them; `calls`: ids of the
    calls among them; `stop`: why the message that was relayed last ended.
    """

    parts: int = 0
    text: bool = False
    calls: tuple[str, ...] = ()
    stop: Stop = "end"
    stop_sequence: str | None = None


class Writing:
    """A text of the answer that is being written; its part opens with its first piece, so that none is empty."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._pieces: list[str] = []
        self._index = -1
        self.closed = False

    def write(self, piece: str) -> None:
        """Gives one more piece. Raises `ValueError` when the text was closed before."""
        if self.closed:
            raise ValueError("this stream is closed: open another one with `turn.stream()`")
        if not piece:
            return
        self._pieces.append(piece)
        if self._index < 0:
            self._index, between = self._answer.begin_text()
            piece = between + piece
        self._answer.emit(Delta(self._index, piece))

    def close(self) -> str:
        """Ends the text; the whole of it."""
        if not self.closed and self._index >= 0:
            self._answer.emit(Closed(self._index))
        self.closed = True
        return "".join(self._pieces)


class Answer:
    """One step's hold on the answer: `emit` takes its events to the client."""

    def __init__(self, given: Given, emit: Callable[[Event], None], backlog: Sequence[Message] = ()) -> None:
        """backlog: messages of this stage that the client has not got yet; they go before whatever comes first."""
        self.given = given
        self.emit = emit
        self._backlog = list(backlog)

    def catch_up(self) -> None:
        """Gives the client the texts that it has not got yet."""
        backlog, self._backlog = self._backlog, []
        for message in backlog:
            if message.role == "assistant":
                self.texts([message.text])

    def texts(self, pieces: Iterable[str]) -> str:
        """Gives the pieces of one message's text as they come; the whole text.

        What the pieces' source raises is raised here, with what came before it given.
        """
        writing = Writing(self)
        try:
            for piece in pieces:
                writing.write(piece)
        finally:
            text = writing.close()
        return text

    def begin_text(self) -> tuple[int, str]:
        """Opens a text part: its index and what has to stand before its text."""
        self.catch_up()
        index, between = self.given.parts, BETWEEN if self.given.text else ""
        self._opened(Opened(index, Text()), index)
        self.given = replace(self.given, stop="end", stop_sequence=None)
        return index, between

    def relay(self, events: Iterable[Event], *, calls: bool) -> None:
        """Gives a model's answer part by part as it comes: thinking, text and, if wanted, calls."""
        self.catch_up()
        index, shift = self.given.parts, 0
        parted = not self.given.text
        for event in events:
            match event:
                case Opened():
                    skipped = isinstance(event.part, ToolCall) and not calls
                    shift = -1 if skipped else index
                    if skipped:
                        continue
                    index += 1
                    self._opened(event, shift)
                    if isinstance(event.part, Text) and not parted:
                        parted = True
                        self.emit(Delta(shift, BETWEEN))
                case Delta() if shift >= 0:
                    self.emit(Delta(shift, event.text))
                case Closed() if shift >= 0:
                    self.emit(Closed(shift, event.vendor))
                case Finished():
                    self.given = replace(self.given, stop=event.stop, stop_sequence=event.stop_sequence)
                case _:
                    pass

    def _opened(self, event: Opened, index: int) -> None:
        part = event.part
        self.given = replace(
            self.given,
            parts=index + 1,
            text=self.given.text or isinstance(part, Text),
            calls=(*self.given.calls, part.id) if isinstance(part, ToolCall) else self.given.calls,
        )
        self.emit(Opened(index, part))

    def finish(self, owed: Iterable[ToolCall], usage: Usage) -> None:
        """Ends the answer with the calls that the client is to answer and has not got yet."""
        for call in owed:
            if call.id in self.given.calls:
                continue
            index = self.given.parts
            self._opened(Opened(index, replace(call, arguments="")), index)
            if call.arguments:
                self.emit(Delta(index, call.arguments))
            self.emit(Closed(index))
        stop, sequence = self.given.stop, self.given.stop_sequence
        if self.given.calls and stop != "length":
            stop, sequence = "calls", None
        elif stop == "calls" and not self.given.calls:
            stop = "end"
        self.emit(Finished(stop, usage, sequence))
