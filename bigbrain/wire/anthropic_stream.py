"""A streamed answer of the Messages API as events.

The grammar on the wire is the events' own, a block at a time, so reading is mostly
naming. What differs: usage comes in two reports, a signature may come in pieces, and blocks of
hosted tools, which the normal form does not know, leave gaps in the wire's indices but none in ours.

A delta for a block that is not open means that text would be lost or put at a wrong
place: the stream is given up. A block that nobody stopped is closed when the next thing comes,
but for a call: servers that run several at once send their arguments in turns. Our events allow
one open part, so what comes of a later block is held back until the calls before it are closed.
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
from bigbrain.wire.anthropic_content import noted, notes, read_carried, read_part
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


def _read_start(data: _Data) -> Growing | None:
    """The part that a block begins; None for one that the normal form does not know."""
    block = Fields(data.content_block or {}, "content_block")
    # compared, not hashed: what came may be a list
    if not any(block.data.get("type") == kind for kind in READABLE):
        return None
    try:
        part = read_part(block, "assistant")
    except WireError as error:
        raise ModelBroke(f"the model sent a block that its protocol does not know: {error}") from error
    if not isinstance(part, Growing):
        raise ModelBroke(f"the model sent a `{block.text('type')}` block in an answer")
    return part


class _Block:
    """A block that is being read, and what of it is held back because one before it is still open."""

    def __init__(self, at: int | None, index: int) -> None:
        """at: its index on the wire. index: that of its part in our counting."""
        self.at = at
        self.stopped = False
        self.held: list[Event] = []
        self._index = index
        self._part: Growing | None = None
        """The part as it was opened; None when the block is passed over."""
        self._grew = False
        self._spare = ""
        """The arguments that stood in the start of a call: they count when no delta brings others."""
        self._signature = ""
        self._citations: list[JSON] = []

    @property
    def calls(self) -> bool:
        """Whether it is a call's."""
        return isinstance(self._part, ToolCall)

    def open(self, part: Growing) -> Iterator[Event]:
        """The events of its start."""
        text = ""
        if isinstance(part, ToolCall):
            self._part, self._spare = replace(part, arguments=""), part.arguments
        else:
            self._part, text = replace(part, text=""), part.text
        self._signature = str(notes(part.vendor).get("signature", ""))
        yield Opened(self._index, self._part)
        if text:
            yield Delta(self._index, text)

    def grow(self, delta: _Delta) -> Iterable[Event]:
        """The events of a delta. Raises `ModelBroke` for one of another kind of block."""
        if self._part is None:
            return ()
        grows = GROWS.get(delta.type)
        if grows is None:
            self._note(delta)
            return ()
        if grows is not type(self._part):
            raise ModelBroke(f"the model sent a `{delta.type}` for a block of another kind")
        text = delta.text or delta.thinking or delta.partial_json
        if not text:
            return ()
        self._grew = True
        return (Delta(self._index, text),)

    def _note(self, delta: _Delta) -> None:
        """Keeps what a block says besides its text; pieces of a signature belong together."""
        self._signature += delta.signature
        if delta.citation is not None:
            self._citations.append(delta.citation)

    def stop(self) -> Iterable[Event]:
        """The events of its end; a call without arguments has those of its start."""
        self.stopped = True
        part = self._part
        if part is None:
            return ()
        own = notes(part.vendor)
        if isinstance(part, Thinking) and (others := read_carried(self._signature)) is not None:
            return (Closed(self._index, others),)
        if isinstance(part, Thinking) and self._signature:
            own = {**own, "signature": self._signature}
        if isinstance(part, Text) and self._citations:
            own = {**own, "citations": self._citations}
        closed = Closed(self._index, noted(own) if own != notes(part.vendor) else {})
        if isinstance(part, ToolCall) and not self._grew:
            return (Delta(self._index, self._spare), closed)
        return (closed,)


class _Reading:
    """What must be known of a stream to read on."""

    def __init__(self) -> None:
        self.begun = False
        self.over = False
        self.owing = False
        self.usage = Usage()
        self.end = _Delta()
        self.count = 0
        """Of the parts that were opened."""
        self.blocks: list[_Block] = []
        """The open blocks in the order in which they began: only the first one's events go out as they come."""

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
                return self._open(data)
            case "content_block_stop":
                return self._stop(data.index)
            case "message_delta":
                return self._note_end(data)
            case "message_stop":
                return [*self._stop_all(), self._finish()]
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
        for one in tuple(self.blocks):
            if not one.calls or one.at == data.index:
                yield from self._tell(one, one.stop())
        block = _Block(data.index, self.count)
        self.blocks.append(block)
        part = _read_start(data)
        if part is not None:
            self.count += 1
            self.owing = self.owing or isinstance(part, ToolCall)
            yield from self._tell(block, block.open(part))

    def _grow(self, data: _Data) -> Iterable[Event]:
        block = self._block(data.index)
        if data.delta is None or block is None:
            raise ModelBroke(f"the model sent a delta for block {data.index}, which is not open")
        return self._tell(block, block.grow(data.delta))

    def _block(self, index: int | None) -> _Block | None:
        """The open block of that index."""
        for block in self.blocks:
            if block.at == index and index is not None and not block.stopped:
                return block
        return None

    def _stop(self, index: int | None) -> Iterable[Event]:
        block = self._block(index)
        return () if block is None else self._tell(block, block.stop())

    def _stop_all(self) -> Iterator[Event]:
        for block in tuple(self.blocks):
            if not block.stopped:
                yield from self._tell(block, block.stop())

    def _tell(self, block: _Block, events: Iterable[Event]) -> Iterable[Event]:
        """The events that can go out now that these have come of a block."""
        if block is not self.blocks[0]:
            block.held += events
            return ()
        if not block.stopped:
            return events
        out = [*events]
        while self.blocks and self.blocks[0].stopped:
            self.blocks.pop(0)
            if self.blocks:
                out += self.blocks[0].held
                self.blocks[0].held = []
        return out

    def _note_end(self, data: _Data) -> Iterable[Event]:
        self.usage = read_usage(data.usage, self.usage)
        if data.delta is not None and data.delta.stop_reason is not None:
            self.end = data.delta
        return self._stop_all()

    def _finish(self) -> Event:
        self.over = True
        details = told(self.end.stop_details)
        vendor = noted({"stop_details": details} if details else {})
        stop = read_stop(self.end.stop_reason, owing=self.owing)
        return Finished(stop, self.usage, self.end.stop_sequence, vendor)
