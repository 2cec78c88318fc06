"""The frames of a Chat Completions stream → events.

The wire has flat deltas that never say where a part begins or ends, and servers differ in
how they mark calls: by `index`, by `id`, by both, by neither, all with `index` 0, whole or in
fragments, one after the other or mixed. Our events allow one open part. So:

- the first part that is not complete is the open one and flows live; what comes meanwhile for
  later parts waits until it is their turn;
- text and thoughts are complete as soon as something else comes; a call is complete when its
  arguments are a whole JSON object, and at the finish;
- a new id, or anything that comes for a complete call, begins a new call.

Usage may come on a chunk of its own behind the reason, so the end waits for `[DONE]` or for the
end of the input. Source: OpenAI API reference, "chat completion chunk object".
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Event, Finished, Opened, Started
from bigbrain.messages import JSON, Growing, Part, Text, Thinking, ToolCall, Usage
from bigbrain.wire import Frame
from bigbrain.wire.openai_chat_answers import UsageRead, minted_id, read_created, read_stop
from bigbrain.wire.openai_chat_thinking import read_detail_notes
from bigbrain.wire.openai_content import NAME, noted, own, read_arguments
from bigbrain.wire.openai_errors import read_error_object
from bigbrain.wire.pairing import fresh_id


class _Called(msgspec.Struct, frozen=True, gc=False):
    name: str | None = None
    arguments: str | dict[str, JSON] | None = None
    input: str | None = None


class _CallDelta(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: _Called | None = None
    custom: _Called | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: JSON = None
    reasoning_details: JSON = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct, frozen=True):
    index: int | None = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: dict[str, list[JSON] | None] | None = None


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    id: str | None = None
    model: str | None = None
    created: float | None = None
    usage: UsageRead | None = None
    error: JSON = None
    system_fingerprint: str | None = None
    service_tier: str | None = None


_chunks = msgspec.json.Decoder(_Chunk)

THOUGHTS = frozenset({"reasoning_content", "reasoning"})
"""The fields of a delta that hold thinking."""

_MARKS = re.compile(r"\\.?|[\"{}]", re.DOTALL)


class _Entry:
    """One part as it comes in; `waiting` is what came before its turn."""

    complete = True

    def __init__(self, kind: str, part: Growing) -> None:
        self.kind = kind
        self.part = part
        self.waiting: list[str] = []
        self.is_open = False
        self.notes: dict[str, JSON] = {}
        """What is known of it at its end, as a part's `vendor`."""


class _CallEntry(_Entry):
    """A call as it comes in; it follows the braces of its arguments, to know without decoding when they are whole."""

    def __init__(self, fragment: _CallDelta) -> None:
        custom = noted(type="custom") if fragment.custom is not None else {}
        super().__init__("call", ToolCall("", "", vendor=custom))
        self.index = fragment.index
        self.given_id = fragment.id or ""
        self.name = ""
        self.pieces: list[str] = []
        self.complete = False
        self._depth = 0
        self._quoted = False
        self._escaped = False

    def add(self, text: str) -> None:
        """More arguments; those of a custom tool are no JSON, so that its call is complete only at the finish."""
        self.waiting.append(text)
        self.pieces.append(text)
        if self.part.vendor:
            return
        if self._escaped:
            text = text[1:]
            self._escaped = False
        for mark in _MARKS.findall(text):
            if mark == '"':
                self._quoted = not self._quoted
            elif mark[0] == "\\":
                self._escaped = len(mark) == 1
            elif not self._quoted:
                self._depth += 1 if mark == "{" else -1
                self.complete = self._depth == 0

    def continues(self, fragment: _CallDelta, text: str) -> bool:
        """Whether a fragment that names this call, or no call, belongs to it."""
        if not self.complete:
            return True
        if fragment.id:
            # Some servers repeat the whole call at its end.
            return not text.strip() or text == "".join(self.pieces)
        called = fragment.function or fragment.custom
        return not text.strip() and not (called and called.name)


class _Parts:
    """The parts of one answer in order of appearance; the first in `queue` is the open one."""

    def __init__(self, response_id: str) -> None:
        self.response_id = response_id
        self.queue: deque[_Entry] = deque()
        self.calls: list[_CallEntry] = []
        self.opened: list[Part] = []
        self._ids: set[str] = set()

    def add(self, delta: _Delta) -> Iterator[Event]:
        """What one delta brings; empty texts bring nothing."""
        if delta.reasoning_content:
            yield from self._text("reasoning_content", delta.reasoning_content)
        elif delta.reasoning and isinstance(delta.reasoning, str):
            yield from self._text("reasoning", delta.reasoning)
        if delta.reasoning_details:
            yield from self.sign(delta.reasoning_details)
        if delta.content:
            yield from self._text("text", delta.content)
        if delta.refusal:
            yield from self._text("refusal", delta.refusal)
        for fragment in delta.tool_calls or ():
            yield from self._call(fragment)

    def _text(self, kind: str, text: str) -> Iterator[Event]:
        queue = self.queue
        if not queue or queue[-1].kind != kind:
            queue.append(_Entry(kind, _part(kind)))
        elif len(queue) == 1:
            yield Delta(len(self.opened) - 1, text)
            return
        queue[-1].waiting.append(text)
        yield from self._advance()

    def weigh(self, logprobs: dict[str, list[JSON] | None]) -> None:
        """How probable the tokens of the newest part were; they are told at its end."""
        for name, items in logprobs.items() if self.queue else ():
            if items:
                told = self.queue[-1].notes.setdefault(NAME, {"logprobs": {}})["logprobs"]
                told.setdefault(name, []).extend(items)

    def sign(self, details: JSON) -> Iterator[Event]:
        """Who signed the thinking that comes now; a thought may be all signature."""
        if not (notes := read_detail_notes(details)):
            return
        if not self.queue or self.queue[-1].kind not in THOUGHTS:
            self.queue.append(_Entry("reasoning_content", _part("reasoning_content")))
        entry = self.queue[-1]
        entry.notes = {**notes, NAME: {**own(entry.part.vendor), **own(notes)}}
        yield from self._advance()

    def _call(self, fragment: _CallDelta) -> Iterator[Event]:
        called = fragment.function or fragment.custom or _Called()
        text = read_arguments(called.input if fragment.custom is not None else called.arguments)
        entry = self._called(fragment)
        if entry is not None and entry.complete and entry.continues(fragment, text):
            return
        if entry is None or not entry.continues(fragment, text):
            if not (fragment.id or called.name or text.strip()):
                return
            entry = _CallEntry(fragment)
            self.calls.append(entry)
            self.queue.append(entry)
        entry.given_id = entry.given_id or fragment.id or ""
        entry.name = entry.name or called.name or ""
        if text:
            entry.add(text)
        yield from self._advance()

    def _called(self, fragment: _CallDelta) -> _CallEntry | None:
        """The call that a fragment names by id or index, or the last one when it names none."""
        for entry in reversed(self.calls):
            same_place = fragment.index is None or entry.index is None or fragment.index == entry.index
            if same_place and (not fragment.id or fragment.id == entry.given_id):
                return entry
            if same_place and fragment.index is not None and not entry.given_id and not entry.complete:
                return entry
        return None

    def _advance(self, *, over: bool = False) -> Iterator[Event]:
        """Opens, grows and closes what can be; everything when the answer is over."""
        while self.queue:
            entry = self.queue[0]
            if not entry.is_open:
                if isinstance(entry, _CallEntry) and not entry.name and not over:
                    return
                self._open(entry)
                yield Opened(len(self.opened) - 1, entry.part)
            if entry.waiting:
                yield Delta(len(self.opened) - 1, "".join(entry.waiting))
                entry.waiting.clear()
            if not over and (len(self.queue) == 1 or not entry.complete):
                return
            self.queue.popleft()
            yield Closed(len(self.opened) - 1, {**entry.part.vendor, **entry.notes} if entry.notes else {})

    def _open(self, entry: _Entry) -> None:
        if isinstance(entry, _CallEntry):
            if not entry.name:
                raise ModelBroke("a call in the stream has no name")
            wish = entry.given_id or minted_id(len(self._ids), self.response_id)
            entry.part = ToolCall(fresh_id(wish, self._ids), entry.name, vendor=entry.part.vendor)
        entry.is_open = True
        self.opened.append(entry.part)

    def end(self) -> Iterator[Event]:
        """What is still open or waiting."""
        yield from self._advance(over=True)


def _part(kind: str) -> Growing:
    if kind in THOUGHTS:
        return Thinking(vendor=noted(field=kind))
    return Text(refusal=kind == "refusal")


def _read_chunk(frame: Frame) -> _Chunk:
    """Raises what an error frame means, and `ModelBroke` for what is no chunk."""
    try:
        if frame.event == "error":
            raise read_error_object(msgspec.json.decode(frame.data))
        chunk = _chunks.decode(frame.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ModelBroke(f"the stream has a frame that is no chunk ({exc}): {frame.data[:200]!r}") from exc
    if chunk.error:
        raise read_error_object(chunk.error)
    return chunk


def _first_choice(chunk: _Chunk) -> _Choice | None:
    """Of several choices only the first is read; some servers leave out its index."""
    for choice in chunk.choices or ():
        if not choice.index:
            return choice
    return None


def read_events(frames: Iterable[Frame]) -> Iterator[Event]:
    """One streamed answer as events in legal order, `Finished` last; stops reading at `[DONE]`.

    A chunk without choices (a filter's result before the answer, the usage behind it) begins nothing.

    Raises the `ModelError` that an error frame means, and `ModelBroke` when the frames end with
    neither a reason nor `[DONE]`, or are no chunks.
    """
    parts: _Parts | None = None
    reason = ""
    done = False
    usage = Usage()
    notes: dict[str, str] = {}
    for frame in frames:
        if frame.data == b"[DONE]":
            done = True
            break
        chunk = _read_chunk(frame)
        if chunk.usage is not None:
            usage = chunk.usage.usage
        choice = _first_choice(chunk)
        if choice is None:
            continue
        if parts is None:
            parts = _Parts(chunk.id or "")
            notes = _notes(chunk)
            yield Started(chunk.id or "", chunk.model or "", read_created(chunk.created))
        if choice.delta is not None:
            yield from parts.add(choice.delta)
        if choice.logprobs:
            parts.weigh(choice.logprobs)
        reason = choice.finish_reason or reason
    if parts is None or not (done or reason):
        raise ModelBroke("the stream ended in the middle of the answer")
    yield from parts.end()
    yield Finished(read_stop(reason or "stop", parts.opened), usage, vendor=noted(**notes))


def _notes(chunk: _Chunk) -> dict[str, str]:
    found = {"system_fingerprint": chunk.system_fingerprint, "service_tier": chunk.service_tier}
    return {name: value for name, value in found.items() if value is not None}
