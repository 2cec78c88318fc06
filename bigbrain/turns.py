"""The client side of a turn: what was asked of the brain, and the answer to it.

`reply` takes a text, a model's reply or any pieces of text; whether they flow to
the client as they come is decided by where the flow stands (the one before a
`respond`, or the last), never by the author.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import TypeVar, overload

import marshmallow
from msgspec.structs import replace

from bigbrain.answers import Answer, Writing
from bigbrain.checkpoints import Checkpoint
from bigbrain.counterparts import call_of, result_of
from bigbrain.errors import PayloadError, SchemaError
from bigbrain.kept import kept_message, kept_part, kept_text
from bigbrain.messages import JSON, Message, Request, ToolCall, ToolResult, Usage, assistant
from bigbrain.replies import Reply
from bigbrain.run import Run
from bigbrain.schemas import Shape, shape
from bigbrain.webhooks.payloads import payload, raw_payload

T = TypeVar("T")

TRIGGER = "bigbrain"
"""The key in a request's `extra` under which a trigger hands its payload and metadata to the run; no dialect's name."""


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
        if error is not None and not self._writing.closed:
            self._turn.record(self._writing.break_off())
        self.close()


class Turn:
    """One agent's turn on one conversation."""

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        run: Run,
        answer: Answer | None,
        last: bool,
        heard: Callable[[Message], None] = lambda _: None,
    ) -> None:
        """messages: the conversation, which others may go on with meanwhile.

        answer: the client's answer when this turn may give to it live. last: nothing comes after this flow.
        heard: told of every message that the turn makes, at the moment it is made.
        """
        self._messages = messages
        self._run = run
        self._heard = heard
        self._answer = answer
        self._last = last
        self._made: list[Message] = []
        self._streams: list[Stream] = []
        self._calls: list[ToolCall] = []
        self._busy = False
        self._selected: str | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far: the client's messages, then what earlier flows replied."""
        return tuple(self._messages)

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
        return self._run.request

    @property
    def run_id(self) -> str:
        """The id of the run that this turn is part of."""
        return self._run.id

    @property
    def idempotency_key(self) -> str:
        """A key for what must not be done twice: the same in every attempt of this step, another one elsewhere."""
        return hashlib.sha256(f"{self._run.id}\0{self._run.path}".encode()).hexdigest()[:32]

    @property
    def begun(self) -> str:
        """The text that the client has of this turn's answer from an attempt that was lost with its worker; mostly "".

        To be given to the model to go on with: `chat.ask(…, beginning=turn.begun)`.
        """
        return self._answer.begun if self._answer is not None else ""

    @property
    def spent(self) -> Usage:
        """What the whole run has spent on models so far; calls under way are not in it."""
        return self._run.purse.total

    @property
    def cancelled(self) -> bool:
        """Whether the run is to stop."""
        return self._run.scope.cancelled

    def check(self) -> None:
        """Goes on, unless the run is to stop. Raises what it was stopped with."""
        self._run.scope.check()

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """What the client has sent back for the calls of the last round; empty when its last message is another's."""
        results: list[ToolResult] = []
        for message in self._run.request.messages:
            results = [] if message.role == "assistant" else [*results, *message.results]
        return tuple(results)

    def result_of(self, call: ToolCall) -> ToolResult | None:
        """The result that answers a call in this conversation, by turn and position; None while there is none."""
        return result_of(call, self.messages)

    def call_of(self, result: ToolResult) -> ToolCall:
        """The call that a result answers; a stub with only its id when the call is not in this conversation."""
        return call_of(result, self.messages)

    @overload
    def payload(self, kind: type[marshmallow.Schema] | marshmallow.Schema) -> JSON: ...
    @overload
    def payload(self, kind: type[T] | Shape[T]) -> T | None: ...
    @overload
    def payload(self, kind: object) -> JSON: ...
    def payload(self, kind: object) -> JSON:
        """The data that the trigger of this run carries, as a value of a type, fully checked; None when there is none.

        `turn.payload(bytes)` gives a webhook's body exactly as it came, whatever else it is read as.
        Raises `PayloadError`, a `SchemaError`, when it does not fit.
        """
        carried = self._carried
        if kind is bytes:
            return raw_payload(carried)
        with _told_as_payload():
            return _shaped(payload(carried), kind)

    @overload
    def metadata(self, kind: type[marshmallow.Schema] | marshmallow.Schema) -> JSON: ...
    @overload
    def metadata(self, kind: type[T] | Shape[T]) -> T | None: ...
    @overload
    def metadata(self, kind: object) -> JSON: ...
    def metadata(self, kind: object) -> JSON:
        """What came beside the payload, such as a webhook's headers, as a value of a type; None when there is none.

        Raises `PayloadError`, a `SchemaError`, when it does not fit.
        """
        with _told_as_payload():
            return _shaped(self._carried.get("metadata"), kind)

    @property
    def due(self) -> datetime | None:
        """The instant that this run answers for, in UTC, when a schedule has started it, however late it runs."""
        due = self._carried.get("due")
        return None if due is None else datetime.fromtimestamp(due / 1000, UTC)

    @property
    def _carried(self) -> dict[str, JSON]:
        return self._run.request.extra.get(TRIGGER, {})

    @property
    def made(self) -> tuple[Message, ...]:
        """What this turn has replied so far; the calls of `call` are in it once the turn is over."""
        return tuple(self._made)

    def reply(
        self, text: str | Message | Reply | Iterable[str], *, thinking: bool | str | Iterable[str] = False
    ) -> None:
        """Answers the client with a text, a message's text, a model's reply or pieces; may be called again for more.

        Live where the flow may answer live, whole otherwise: the client reads the same text, also
        when a source of pieces breaks off and the handler goes on.

        thinking: how the answer was found, which clients show apart from it: a text or pieces of your own, before the
        answer, or True for what the model of a reply thought. It is told where the flow may answer live, and only there.

        Raises `ModelError` when a model's reply breaks off, `ValueError` while another reply is being given and for the
        thinking of what is no model's reply.
        """
        if thinking is True:
            self._reply_thinking(text)
            return
        with self._giving():
            self._think((thinking,) if isinstance(thinking, str) else thinking or ())
            writing = Writing(self._answer)
            try:
                for piece in _pieces(text):
                    writing.write(piece)
            except BaseException:
                self.record(writing.break_off())
                raise
            self.record(writing.close())

    def _reply_thinking(self, reply: str | Message | Reply | Iterable[str]) -> None:
        if not isinstance(reply, Reply):
            raise ValueError("`thinking=True` is for a model's reply; give the thinking itself as a text or pieces")
        with self._giving():
            try:
                if self._answer is not None:
                    self._answer.relay(reply.events(), calls=False)
                parts = tuple(part for part in reply.response.parts if not isinstance(part, ToolCall))
                if parts:
                    self._put(Message("assistant", parts))
            except Exception:
                self.record(reply.so_far.text)
                raise

    def _think(self, pieces: Iterable[str]) -> None:
        if self._answer is not None:
            self._answer.think(pieces)
            return
        for _ in pieces:
            # their source may be what finds the answer
            pass

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
                    self._put(reply.message)
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
        self._end_streams()
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def select(self, id: str) -> None:
        """Chooses the member of the next Select that runs; the last choice of a turn counts. Raises `Unstorable` for what is no text."""
        self._selected = kept_text(id, f"step {self._run.path}, `turn.select`")

    @property
    def selected(self) -> str | None:
        """The id that was chosen last, if any."""
        return self._selected

    def reach(self, checkpoint: Checkpoint) -> None:
        """Lets all go on that wait for a checkpoint in this run, now and later. Raises `Unstorable` for a name that is no text."""
        kept_text(checkpoint.name, f"step {self._run.path}, the name of a checkpoint")
        self._run.barriers.reach(checkpoint.name)

    def wait_for(self, checkpoint: Checkpoint, timeout: float | None = None) -> None:
        """Waits until somebody in this run reaches a checkpoint.

        Raises what the run is stopped with, and `RunError` after `timeout` seconds.
        """
        self._run.barriers.wait(checkpoint.name, self._run.scope, timeout)

    def call(self, *calls: ToolCall) -> None:
        """Asks the client to run tools. They leave with the turn's last reply, or as a message of their own without one.

        A later flow may still answer them; then the client hears nothing of them. A call without an id gets one.
        Raises `Unstorable` for a call that cannot be kept, such as one whose arguments are not JSON text.
        """
        for call in calls:
            kept_part(call, f"step {self._run.path}, `turn.call`")
            number = len(self._calls)
            made = hashlib.sha256(f"{self.idempotency_key}\0{number}".encode()).hexdigest()[:24]
            self._calls.append(call if call.id else replace(call, id=f"call_{made}"))

    def record(self, text: str) -> None:
        """Puts a text that the client gets, or has got, on the conversation; an empty one is none."""
        if text:
            self._put(assistant(text))

    def close(self) -> None:
        """Ends the turn: a stream that is still open, and the calls, which join the last reply."""
        self._end_streams()
        if self._answer is not None:
            self._answer.settle()
        calls, self._calls = tuple(self._calls), []
        if not calls:
            return
        # whoever shares the conversation has heard the reply already
        self._heard(Message("assistant", calls))
        last = self._made.pop() if self._made else Message("assistant")
        self._made.append(replace(last, parts=(*last.parts, *calls)))

    def _put(self, message: Message) -> None:
        kept_message(message, f"step {self._run.path}, a reply")
        self._made.append(message)
        self._heard(message)

    def _end_streams(self) -> None:
        """Ends a stream that is still open, so that texts stand in the order in which they were begun."""
        for stream in self._streams:
            stream.close()


def _pieces(text: str | Message | Reply | Iterable[str]) -> Iterable[str]:
    match text:
        case str():
            return (text,)
        case Message():
            return (text.text,)
        case _:
            return text


def _shaped(value: JSON, kind: object) -> JSON:
    if value is None:
        return None
    wanted: Shape[JSON] = kind if isinstance(kind, Shape) else shape(kind)
    return wanted.read(value)


@contextmanager
def _told_as_payload() -> Iterator[None]:
    """What a sender sent and not what a model said is at fault, and another attempt would read the same."""
    try:
        yield
    except SchemaError as exc:
        raise PayloadError(str(exc)) from exc
