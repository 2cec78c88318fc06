"""The client side of a turn: what was asked of the brain, and the answer to it.

`reply` takes a text, a model's reply or any pieces of text; whether they flow to
the client as they come is decided by where the flow stands (the one before a
`respond`, or the last), never by the author.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from bigbrain.answers import Answer, Writing
from bigbrain.chat import Reply
from bigbrain.messages import Message, Request, assistant


class Stream:
    """The client's live stream, for a handler that shapes the pieces itself; a context manager."""

    def __init__(self, turn: Turn, writing: Writing) -> None:
        self._turn = turn
        self._writing = writing

    def write(self, piece: str) -> None:
        """Gives the client one more piece of text. Raises `ValueError` when the stream is closed."""
        self._writing.write(piece)

    def close(self) -> None:
        """Ends the text and puts the whole of it on the turn; closing twice does nothing."""
        if not self._writing.closed:
            self._turn.record(self._writing.close())

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Turn:
    """One agent's turn on one conversation."""

    def __init__(
        self, messages: Sequence[Message], request: Request, *, run_id: str, answer: Answer | None, last: bool
    ) -> None:
        """answer: the client's answer when this turn may give to it live. last: nothing comes after this flow."""
        self._messages = tuple(messages)
        self._request = request
        self._run_id = run_id
        self._answer = answer
        self._last = last
        self._made: list[Message] = []
        self._streams: list[Stream] = []
        self._busy = False

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far: the client's messages, then what earlier flows replied."""
        return self._messages

    @property
    def last(self) -> Message:
        """The newest message that is not an instruction; an empty user's message when there is none."""
        for message in reversed(self._messages):
            if message.role != "system":
                return message
        return Message("user")

    @property
    def request(self) -> Request:
        """What the client asked, knobs and tools included: an input, never applied by itself."""
        return self._request

    @property
    def run_id(self) -> str:
        """The id of the run that this turn is part of."""
        return self._run_id

    @property
    def made(self) -> tuple[Message, ...]:
        """What this turn has replied so far."""
        return tuple(self._made)

    def reply(self, text: str | Reply | Iterable[str]) -> None:
        """Answers the client with a text, a model's reply or pieces of text; may be called again for more.

        Live where the flow may answer live, whole otherwise: the client reads the same text, also
        when a source of pieces breaks off and the handler goes on.
        Raises `ModelError` when a model's reply breaks off, `ValueError` while another reply is being given.
        """
        with self._giving():
            writing = Writing(self._answer)
            try:
                for piece in (text,) if isinstance(text, str) else text:
                    writing.write(piece)
            finally:
                self.record(writing.close())

    def relay(self, reply: Reply) -> None:
        """Answers the client with all that a model answered: thinking, text and tool calls, as its own.

        The calls are the client's to answer, unless a later flow answers them.
        """
        with self._giving():
            try:
                if self._answer is not None:
                    # a later flow may still answer the calls, so only the very last one hands them out as they come
                    self._answer.relay(reply.events(), calls=self._last)
                if reply.response.parts:
                    self._made.append(reply.message)
            except Exception:
                self.record(reply.so_far.text)
                raise

    def stream(self) -> Stream | None:
        """The client's live stream, to write pieces to; None when this turn may not answer live: use `reply` then.

        Raises `ValueError` while a reply is being given.
        """
        with self._giving():
            if self._answer is None:
                return None
            stream = Stream(self, Writing(self._answer))
        self._streams.append(stream)
        return stream

    @contextmanager
    def _giving(self) -> Iterator[None]:
        """One text at a time: a part of the answer cannot begin inside another."""
        if self._busy:
            raise ValueError("another reply is being given: let it end before the next one begins")
        self.close()
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def record(self, text: str) -> None:
        """Puts a text that the client gets, or has got, on the conversation; an empty one is none."""
        if text:
            self._made.append(assistant(text))

    def close(self) -> None:
        """Ends a stream that is still open, so that texts stand in the order in which they were begun."""
        for stream in self._streams:
            stream.close()
