"""A streamed answer of the Messages API as events.

The grammar on the wire is the events' own, a block at a time, so reading is mostly
naming. What differs: usage comes in two reports, a signature may come in pieces, and blocks of
hosted tools, which the normal form does not know, leave gaps in the wire's indices but none in ours.

A delta for a block that is not open means that text would be lost or put at a wrong
place: the stream is given up. A block that nobody stopped is closed when the next thing comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from bigbrain.errors import ModelBroke, WireError
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started
from bigbrain.messages import JSON, Growing, Text, Thinking, ToolCall, Usage
from bigbrain.wire import Frame
from bigbrain.wire.anthropic_answers import READABLE, WireUsage, read_stop, read_usage, told
from bigbrain.wire.anthropic_content import noted, notes, read_part
from bigbrain.wire.anthropic_errors import error_of
from bigbrain.wire.anthropic_fields import Fields


class _Delta(msgspec.Struct):
    """The `delta` of a block's delta and of the message's."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: JSON = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: JSON = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: WireUsage | None = None


class _Data(msgspec.Struct):
    """The data of any frame: one flat type decodes in a microsecond and tolerates unknown kinds."""

    type: str = ""
    index: int | None = None
    delta: _Delta | None = None
    content_block: dict[str, JSON] | None = None
    message: _Message | None = None
    usage: WireUsage | None = None
    error: JSON = None


class _Kind(msgspec.Struct):
    type: str = ""


KINDS = frozenset(
    {
        *("message_start", "message_delta", "message_stop", "error"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
    }
)
"""The frames that mean something; `ping` and all others are passed over."""

GROWS: dict[str, type[Growing]] = {"text_delta": Text, "thinking_delta": Thinking, "input_json_delta": ToolCall}
"""Kind of delta → the part it makes grow."""

_decode = msgspec.json.Decoder(_Data).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


def read_events(frames: Iterable[Frame]) -> Iterator[Event]:
    """A streamed answer as events in legal order, `Finished` last.

    Raises `ModelError` when an error frame comes, `ModelBroke` when the frames end before
    `message_stop` or are not what the dialect allows.
    """
    reading = _Reading()
    for frame in frames:
        yield from reading.take(_read_frame(frame))
        if reading.over:
            return
    raise ModelBroke("the model's stream ended before its `message_stop`")


def _read_frame(frame: Frame) -> _Data:
    """The frame's data; that of an unknown kind, whatever it holds, is empty."""
    try:
        return _decode(frame.data)
    except msgspec.ValidationError as error:
        if not _is_known(frame):
            return _Data()
        raise ModelBroke(f"the model sent a frame that its protocol does not know: {error}") from error
    except msgspec.DecodeError as error:
        raise ModelBroke(f"the model sent a frame that is no JSON: {frame.data[:200]!r}") from error


def _is_known(frame: Frame) -> bool:
    try:
        return _decode_kind(frame.data).type in KINDS
    except msgspec.ValidationError:
        return True  # no object at all, or a `type` that is no text


class _Reading:
    """What must be known of a stream to read on."""

    def __init__(self) -> None:
        self.begun = False
        self.over = False
        self.owing = False
        self.usage = Usage()
        self.end = _Delta()
        self.index = -1
        """Of the last part that was opened, in our counting."""
        self.at: int | None = None
        """Of the open block, in the wire's counting; None between blocks."""
        self.part: Growing | None = None
        """The open part as it was opened; None when the open block is passed over."""
        self.grew = False
        self.spare = ""
        """The arguments that stood in the start of a call: they count when no delta brings others."""
        self.signature = ""
        self.citations: list[JSON] = []

    def take(self, data: _Data) -> Iterable[Event]:
        """The events of one frame. Raises `ModelError` as `read_events` does."""
        if data.type == "content_block_delta":
            return self._grow(data)
        if data.type == "error" or data.error is not None:
            raise error_of(data.error)
        if data.type in KINDS and not self.begun and data.type != "message_start":
            raise ModelBroke(f"the model's stream begins with `{data.type}` and not with `message_start`")
        match data.type:
            case "message_start":
                return self._start(data)
            case "content_block_start":
                return [*self._close(), *self._open(data)]
            case "content_block_stop":
                return self._close() if data.index == self.at else ()
            case "message_delta":
                return self._note_end(data)
            case "message_stop":
                return [*self._close(), self._finish()]
            case _:
                return ()

    def _start(self, data: _Data) -> Iterable[Event]:
        """The beginning; a second one, as some proxies send, means nothing."""
        if self.begun:
            return ()
        self.begun = True
        message = data.message or _Message()
        self.usage = read_usage(message.usage)
        return (Started(message.id or "", message.model or "", usage=self.usage),)

    def _open(self, data: _Data) -> Iterator[Event]:
        self.at, self.part = data.index, None
        self.grew, self.spare, self.signature, self.citations = False, "", "", []
        block = Fields(data.content_block or {}, "content_block")
        # compared, not hashed: what came may be a list
        if not any(block.data.get("type") == kind for kind in READABLE):
            return
        try:
            part = read_part(block, "assistant")
        except WireError as error:
            raise ModelBroke(f"the model sent a block that its protocol does not know: {error}") from error
        self.index += 1
        match part:
            case Text() | Thinking():
                yield from self._opened(replace(part, text=""), part.text)
            case ToolCall():
                self.owing, self.spare = True, part.arguments
                yield from self._opened(replace(part, arguments=""), "")
            case _:
                raise ModelBroke(f"the model sent a `{block.text('type')}` block in an answer")

    def _opened(self, part: Growing, text: str) -> Iterator[Event]:
        self.part = part
        self.signature = str(notes(part.vendor).get("signature", ""))
        yield Opened(self.index, part)
        if text:
            yield Delta(self.index, text)

    def _grow(self, data: _Data) -> Iterable[Event]:
        delta = data.delta
        if delta is None or self.at is None or data.index != self.at:
            raise ModelBroke(f"the model sent a delta for block {data.index}, which is not open")
        if self.part is None:
            return ()
        grows = GROWS.get(delta.type)
        if grows is None:
            self._note(delta)
            return ()
        if grows is not type(self.part):
            raise ModelBroke(f"the model sent a `{delta.type}` for a block of another kind")
        text = delta.text or delta.thinking or delta.partial_json
        if not text:
            return ()
        self.grew = True
        return (Delta(self.index, text),)

    def _note(self, delta: _Delta) -> None:
        """Keeps what a block says besides its text; pieces of a signature belong together."""
        self.signature += delta.signature
        if delta.citation is not None:
            self.citations.append(delta.citation)

    def _close(self) -> list[Event]:
        """Closes the open block, if any; a call without arguments has those of its start."""
        part, self.at, self.part = self.part, None, None
        if part is None:
            return []
        own = notes(part.vendor)
        if isinstance(part, Thinking) and self.signature:
            own = {**own, "signature": self.signature}
        if isinstance(part, Text) and self.citations:
            own = {**own, "citations": self.citations}
        late = [Delta(self.index, self.spare)] if isinstance(part, ToolCall) and not self.grew else []
        return [*late, Closed(self.index, noted(own) if own != notes(part.vendor) else {})]

    def _note_end(self, data: _Data) -> Iterable[Event]:
        self.usage = read_usage(data.usage, self.usage)
        if data.delta is not None and data.delta.stop_reason is not None:
            self.end = data.delta
        return self._close()

    def _finish(self) -> Event:
        self.over = True
        details = told(self.end.stop_details)
        vendor = noted({"stop_details": details} if details else {})
        stop = read_stop(self.end.stop_reason, owing=self.owing)
        return Finished(stop, self.usage, self.end.stop_sequence, vendor)
