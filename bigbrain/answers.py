"""What a run's client has been given so far, and the one way to give it more.

A run's answer is one `Response`, built by several flows in several processes. Each
text that a flow gives becomes a part of its own; between the texts of two messages
stands a blank line, which is part of the text, so that a client that streams and
one that waits read the same. A model's answer that is relayed keeps its own parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from bigbrain.events import Closed, Delta, Event, Finished, Opened
from bigbrain.messages import Message, Stop, Text, Thinking, ToolCall, Usage, Vendor
from bigbrain.resuming import Continuing
from bigbrain.wire.pairing import fresh_id

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
    """A text that is being written; its part opens with its first piece, so that none is empty."""

    def __init__(self, answer: Answer | None) -> None:
        """answer: where the text goes as it is written; None keeps it until it is whole."""
        self._answer = answer
        self._pieces: list[str] = []
        self._index = -1
        self.closed = False

    def write(self, piece: str) -> None:
        """Gives one more piece.

        Raises `ValueError` when the text was closed before and for half of a character (a surrogate),
        `TypeError` for what is no text.
        """
        if self.closed:
            raise ValueError("this stream is closed: open another one with `turn.stream()`")
        piece = _text(piece)
        if not piece:
            return
        if self._answer is not None:
            between = ""
            if self._index < 0:
                self._index, between = self._answer.begin_text()
            self._answer.emit(Delta(self._index, between + piece))
        self._pieces.append(piece)

    def close(self) -> str:
        """Ends the text; the whole of it."""
        if not self.closed and self._answer is not None and self._index >= 0:
            self._answer.end_part(self._index)
        return self.break_off()

    def break_off(self) -> str:
        """Ends the text where its source broke off; what there is of it.

        Its part stays open until something else is given or the turn ends, so that another attempt can go on with it.
        """
        self.closed = True
        return "".join(self._pieces)


def _text(piece: str) -> str:
    """The piece as plain text. Raises `TypeError`, and `UnicodeEncodeError` for half a character."""
    if not isinstance(piece, str):
        raise TypeError(f"a piece of text is a `{type(piece).__name__}`: reply with strings")
    if not piece.isascii():
        # raises for what no JSON can carry, here and not in the thread that writes the logs of all runs
        piece.encode()
    # a text of a kind of its own, such as a template's markup, has no JSON
    return piece if type(piece) is str else str.__str__(piece)


class Answer:
    """One step's hold on the answer: `emit` takes its events to the client."""

    def __init__(self, given: Given, emit: Callable[[Event], None], backlog: Sequence[Message] = ()) -> None:
        """backlog: messages of this stage that the client has not got yet; they go before whatever comes first."""
        self.given = given
        self.emit = emit
        self.backlog = tuple(backlog)
        self._open = -1

    @property
    def begun(self) -> str:
        """The text that the client has of what is to be given next, from an earlier attempt."""
        emit = self.emit
        if not isinstance(emit, Continuing) or self.backlog:
            return ""
        return emit.begun.removeprefix(BETWEEN if self.given.text else "")

    def catch_up(self) -> None:
        """Gives the client the texts that it has not got yet."""
        backlog, self.backlog = self.backlog, ()
        for message in backlog:
            if message.role == "assistant":
                writing = Writing(self)
                writing.write(message.text)
                writing.close()

    def begin_text(self) -> tuple[int, str]:
        """Opens a text part: its index and what has to stand before its text."""
        self.catch_up()
        index, between = self.given.parts, BETWEEN if self.given.text else ""
        self._opened(Opened(index, Text()), index)
        self.given = replace(self.given, stop="end", stop_sequence=None)
        return index, between

    def think(self, pieces: Iterable[str]) -> None:
        """Gives thinking in pieces; its part opens with its first piece, so that none is empty."""
        self.catch_up()
        index = -1
        for piece in pieces:
            if not (text := _text(piece)):
                continue
            if index < 0:
                index = self.given.parts
                self._opened(Opened(index, Thinking()), index)
            self.emit(Delta(index, text))
        if index >= 0:
            self.end_part(index)

    def relay(self, events: Iterable[Event], *, calls: bool) -> None:
        """Gives a model's answer part by part as it comes: thinking, text and, if wanted, calls.

        A text opens with its first piece, so that none is empty. What the events' source raises is
        raised here, with what came before it given; the part that was being given stays open as in `Writing.break_off`.
        """
        self.catch_up()
        between = BETWEEN if self.given.text else ""
        text: Opened | None = None
        # whether the part that is open is this answer's: one that broke off before may be open still
        giving = False
        for event in events:
            match event:
                case Opened():
                    text = event if isinstance(event.part, Text) else None
                    giving = text is None and (calls or not isinstance(event.part, ToolCall))
                    if giving:
                        self._opened(event, self.given.parts)
                case Delta() if text is not None:
                    piece = _text(event.text)
                    self._opened(text, self.given.parts)
                    self.emit(Delta(self._open, between + piece))
                    text, between, giving = None, "", True
                case Delta() if giving:
                    self.emit(Delta(self._open, event.text))
                case Closed() if giving:
                    self.end_part(self._open, event.vendor)
                case Finished():
                    self.given = replace(self.given, stop=event.stop, stop_sequence=event.stop_sequence)
                case _:
                    pass
        self.settle()

    def settle(self) -> None:
        """Closes the part that is open, if any."""
        if self._open >= 0:
            self.end_part(self._open)

    def end_part(self, index: int, vendor: Vendor | None = None) -> None:
        """Closes the part that is open."""
        self._open = -1
        self.emit(Closed(index, vendor or {}))

    def _opened(self, event: Opened, index: int) -> None:
        self.settle()
        self._open = index
        part = event.part
        self.given = replace(
            self.given,
            parts=index + 1,
            text=self.given.text or isinstance(part, Text),
            calls=(*self.given.calls, part.id) if isinstance(part, ToolCall) else self.given.calls,
        )
        self.emit(Opened(index, part))

    def finish(self, owed: Iterable[ToolCall], usage: Usage) -> None:
        """Ends the answer with the calls that the client is to answer and has not got yet.

        Calls of different turns may have one id, which the client could not tell apart: later ones get another.
        """
        had = Counter(self.given.calls)
        for call in owed:
            if had[call.id]:
                had[call.id] -= 1
                continue
            index, id = self.given.parts, fresh_id(call.id, set(self.given.calls))
            self._opened(Opened(index, replace(call, id=id, arguments="")), index)
            if call.arguments:
                self.emit(Delta(index, call.arguments))
            self.end_part(index)
        stop, sequence = self.given.stop, self.given.stop_sequence
        if self.given.calls and stop != "length":
            stop, sequence = "calls", None
        elif stop == "calls" and not self.given.calls:
            stop = "end"
        self.emit(Finished(stop, usage, sequence))
