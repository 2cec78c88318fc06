"""The frames of a Responses stream → events.

The wire names an item by its `output_index` and what grows in it by a second index; our events
allow one open part. So each text, thought or call is read as a *piece*: the first piece that is not
closed is the open one and flows live, what comes meanwhile for later ones waits until it is their
turn. Texts and thoughts are closed when something else begins, calls when their item is done.

Servers leave out what they think is plain. What an item holds when it is done and was never told of
in deltas is told then; an answer whose items were never told of at all is that of the last frame.
Source: OpenAI API reference, "Streaming events".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from bigbrain.errors import ModelBroke, WireError
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started
from bigbrain.messages import JSON, Growing, Part, Text, Thinking, ToolCall, Usage, Vendor
from bigbrain.wire import Frame
from bigbrain.wire.openai_chat_answers import read_created
from bigbrain.wire.openai_content import noted, own
from bigbrain.wire.openai_errors import read_error_object
from bigbrain.wire.openai_responses_answers import Document, read_failure, read_parts, read_stop
from bigbrain.wire.openai_responses_items import read_item
from bigbrain.wire.pairing import fresh_id


class _Data(msgspec.Struct, frozen=True, gc=False):
    """The data of any frame that means something."""

    type: str = ""
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    item: dict[str, JSON] | None = None
    response: Document | None = None
    error: JSON = None
    code: JSON = None
    message: JSON = None


class _Kind(msgspec.Struct, frozen=True):
    type: str = ""


class _Item(msgspec.Struct, frozen=True):
    """An item when it begins."""

    type: str = ""
    id: str | None = None
    phase: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None


GROWTH: dict[str, str] = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_summary_text": "summary",
    "response.reasoning_text": "raw",
    "response.function_call_arguments": "call",
    "response.custom_tool_call_input": "call",
}
"""Event, without its `.delta` or `.done` → what grows."""

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
BEGINS = frozenset({"response.created", "response.queued", "response.in_progress"})
ITEMS = frozenset({"response.output_item.added", "response.output_item.done"})
KNOWN = frozenset({"error", *ENDS, *BEGINS, *ITEMS, *(f"{one}.{step}" for one in GROWTH for step in ("delta", "done"))})
"""The frames that mean something; all others are passed over."""

Place: TypeAlias = tuple[int, str, int]
"""A piece: its item, what grows, and the index of that in the item."""

_decode = msgspec.json.Decoder(_Data).decode
_decode_kind = msgspec.json.Decoder(_Kind).decode


def read_events(frames: Iterable[Frame]) -> Iterator[Event]:
    """One streamed answer as events in legal order, `Finished` last.

    Raises the `ModelError` that a failed response or an error frame means, and `ModelBroke` when the
    frames end before the response does or are not what the protocol allows.
    """
    reading = _Reading()
    for frame in frames:
        data = _read_frame(frame)
        yield from reading.take(data)
        if reading.over:
            return
    raise ModelBroke("the model's stream ended before its response did")


def _read_frame(frame: Frame) -> _Data:
    """The frame's data; that of an unknown kind, whatever it holds, is empty."""
    if frame.data == b"[DONE]":
        # some servers end all their streams as Chat Completions does
        return _Data()
    try:
        return _decode(frame.data)
    except msgspec.ValidationError as exc:
        if not _is_known(frame):
            return _Data()
        raise ModelBroke(f"the model sent a frame that its protocol does not know: {exc}") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ModelBroke(f"the model sent a frame that is no JSON: {frame.data[:200]!r}") from exc


def _is_known(frame: Frame) -> bool:
    try:
        return _decode_kind(frame.data).type in KNOWN
    except msgspec.ValidationError:
        return True  # no object at all, or a `type` that is no text


class _Piece:
    """One part as it comes in; `held` is what came before its turn."""

    def __init__(self, place: Place, part: Part, index: int) -> None:
        self.place = place
        self.part = part
        self.index = index
        self.grew = False
        self.closed = False
        self.held: list[Event] = [Opened(index, part)]


class _Reading:
    """What must be known of a stream to read on."""

    def __init__(self) -> None:
        self.over = False
        self._begun = False
        self._items: dict[int, _Item] = {}
        self._done: set[int] = set()
        self._pieces: dict[Place, _Piece] = {}
        self._queue: deque[_Piece] = deque()
        self._ids: set[str] = set()
        self._parts: list[Part] = []
        """The parts that were opened, as they were then."""

    def take(self, data: _Data) -> Iterator[Event]:
        """The events of one frame. Raises `ModelError` as `read_events` does."""
        name, _, step = data.type.rpartition(".")
        if data.type == "error" or data.error is not None:
            raise read_error_object(data.error or {"code": data.code, "message": data.message})
        if data.type not in KNOWN:
            return
        yield from self._begin(data.response)
        if name in GROWTH:
            yield from self._grow(data, GROWTH[name], done=step == "done")
        elif data.type == "response.output_item.added":
            yield from self._add(data)
        elif data.type == "response.output_item.done":
            yield from self._finish_item(data)
        elif data.type in ENDS:
            yield from self._finish(data)

    def _begin(self, document: Document | None) -> Iterator[Event]:
        if self._begun:
            return
        self._begun = True
        found = document or Document()
        yield Started(found.id or "", found.model or "", read_created(found.created_at))

    def _add(self, data: _Data) -> Iterator[Event]:
        """An item begins; of a call it is known what it calls."""
        index = _index(data)
        item = self._read_item(data.item)
        self._items[index] = item
        if item.type in ("function_call", "custom_tool_call"):
            yield from self._open((index, "call", 0), self._call(item))

    def _read_item(self, item: dict[str, JSON] | None) -> _Item:
        try:
            return msgspec.convert(item or {}, _Item)
        except msgspec.ValidationError as exc:
            raise ModelBroke(f"the model sent an item that its protocol does not know: {exc}") from exc

    def _call(self, item: _Item) -> ToolCall:
        if not item.name:
            raise ModelBroke("a call in the stream has no name")
        kind = "custom" if item.type == "custom_tool_call" else None
        wish = item.call_id or item.id or ""
        return ToolCall(fresh_id(wish, self._ids), item.name, vendor=noted(type=kind, namespace=item.namespace))

    def _grow(self, data: _Data, what: str, *, done: bool) -> Iterator[Event]:
        """More of a piece; its end counts only when nothing came before."""
        second = data.summary_index if what == "summary" else None if what == "call" else data.content_index
        place = (_index(data), what, second or 0)
        piece = self._pieces.get(place)
        text = data.delta if not done else _whole(data)
        if done and piece is not None and piece.grew:
            return
        if not text:
            return
        if place[0] in self._done or (piece is not None and piece.closed):
            raise ModelBroke(f"the model sent a `{data.type}` for item {place[0]}, which is done")
        if piece is None:
            if what == "call":
                raise ModelBroke(f"the model sent arguments for item {place[0]}, which is no call")
            yield from self._open(place, _part(what, self._items.get(place[0], _Item())))
            piece = self._pieces[place]
        piece.grew = True
        yield from self._tell(piece, Delta(piece.index, text))

    def _open(self, place: Place, part: Part) -> Iterator[Event]:
        for one in tuple(self._queue):
            if not isinstance(one.part, ToolCall):
                yield from self._close(one)
        if place in self._pieces:
            raise ModelBroke(f"the model began item {place[0]} twice")
        piece = _Piece(place, part, len(self._parts))
        self._parts.append(part)
        self._pieces[place] = piece
        self._queue.append(piece)
        yield from self._advance()

    def _tell(self, piece: _Piece, event: Event) -> Iterator[Event]:
        if piece is self._queue[0]:
            yield event
        else:
            piece.held.append(event)

    def _close(self, piece: _Piece, vendor: Vendor | None = None) -> Iterator[Event]:
        if piece.closed:
            return
        piece.closed = True
        piece.held.append(Closed(piece.index, vendor or {}))
        yield from self._advance()

    def _advance(self) -> Iterator[Event]:
        """What can go out now."""
        while self._queue:
            piece = self._queue[0]
            yield from piece.held
            piece.held.clear()
            if not piece.closed:
                return
            self._queue.popleft()

    def _finish_item(self, data: _Data) -> Iterator[Event]:
        """An item is done: what of it was never told is told now, and what it says only now is noted."""
        index, item = _index(data), data.item or {}
        if index in self._done:
            return
        try:
            parts = tuple(read_item(item, f"output[{index}]", ()))
        except WireError as exc:
            raise ModelBroke(f"the model sent an item that its protocol does not know: {exc}") from exc
        pieces = [piece for place, piece in self._pieces.items() if place[0] == index]
        if not pieces:
            for number, part in enumerate(parts):
                yield from self._tell_whole((index, "whole", number), part)
        else:
            yield from self._complete(pieces, parts)
        self._done.add(index)

    def _complete(self, pieces: Sequence[_Piece], parts: Sequence[Part]) -> Iterator[Event]:
        """Closes the pieces of an item that is done; the last of them learns what the item says of itself."""
        for place, piece in enumerate(pieces):
            match = parts[place] if len(parts) == len(pieces) else None
            if isinstance(piece.part, ToolCall) and not piece.grew and isinstance(match, ToolCall) and match.arguments:
                yield from self._tell(piece, Delta(piece.index, match.arguments))
            if isinstance(match, ToolCall) or match is None or match.vendor == piece.part.vendor:
                yield from self._close(piece)
            elif not piece.closed:
                yield from self._close(piece, match.vendor)
            elif own(match.vendor).get("encrypted_content"):
                # it was closed before its item was done, and its seal must not be lost
                yield from self._tell_whole((*piece.place[:2], -1), Thinking(vendor=match.vendor))

    def _tell_whole(self, place: Place, part: Part) -> Iterator[Event]:
        """A part of which nothing came before."""
        text = ""
        if isinstance(part, ToolCall):
            text = part.arguments
            part = ToolCall(fresh_id(part.id, self._ids), part.name, vendor=part.vendor)
        elif isinstance(part, Text | Thinking):
            text, part = part.text, msgspec.structs.replace(part, text="")
        yield from self._open(place, part)
        piece = self._pieces[place]
        if text:
            yield from self._tell(piece, Delta(piece.index, text))
        yield from self._close(piece)

    def _finish(self, data: _Data) -> Iterator[Event]:
        """The response is over."""
        found = data.response or Document()
        if data.type in ("response.failed", "response.cancelled") or found.error:
            raise read_failure(found)
        for piece in tuple(self._queue):
            yield from self._close(piece)
        if not self._parts:
            for number, part in enumerate(read_parts(found.output or [])):
                yield from self._tell_whole((-1, "whole", number), part)
        self.over = True
        status = data.type.removeprefix("response.")
        stop = read_stop(msgspec.structs.replace(found, status=status), self._parts)
        yield Finished(stop, found.usage.usage if found.usage else Usage())


def _index(data: _Data) -> int:
    if data.output_index is None:
        raise ModelBroke(f"the model sent a `{data.type}` without `output_index`")
    return data.output_index


def _whole(data: _Data) -> str | None:
    return next((text for text in (data.text, data.refusal, data.arguments, data.input) if text), None)


def _part(what: str, item: _Item) -> Growing:
    if what in ("summary", "raw"):
        return Thinking(vendor=noted(id=item.id, form="reasoning_text" if what == "raw" else None))
    return Text(refusal=what == "refusal", vendor=noted(phase=item.phase))
