"""The events of an answer → the frames of a Responses stream.

Written from the answer so far alone. Items and content parts nest: an item is added, its parts are
added, grow and are done, and then the item is done. A message and a reasoning item end only when
something else begins, because neighbouring texts, and thoughts of one upstream item, belong together;
a call ends with its own end. What an item is when it is done, it is in the last frame's response too.

Numbers of frames follow from how many there were before, which only whoever sends them knows.
Source: OpenAI API reference, "Streaming events".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

import msgspec

from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, Started
from bigbrain.messages import JSON, Part, Request, Response, Text, Thinking, ToolCall
from bigbrain.wire.openai_chat_asking import is_custom
from bigbrain.wire.openai_responses_answers import reason_of, write_document, write_done
from bigbrain.wire.openai_responses_output import (
    SILENT,
    Content,
    Item,
    arguments_of,
    contents_of,
    is_raw,
    item_id,
    last_item,
    write_content,
    write_item,
)
from bigbrain.wire.openai_responses_tools import calling, free_text

HEARTBEAT = b": keep-alive\n\n"
"""A comment, for the moment before the answer has an id; afterwards `write_heartbeat` has an event."""

Told: TypeAlias = tuple[str, dict[str, JSON]]
"""An event's type and what stands in it beside type and number."""

_encode = msgspec.json.Encoder().encode


def write_event(event: Event, so_far: Response, request: Request, sent: int = 0) -> Iterator[bytes]:
    """The frames that tell a client of this event; `so_far` is the answer with the event folded in.

    sent: how many frames this answer has had; numbers go on from there.
    """
    for number, (kind, fields) in enumerate(_tell(event, so_far, request), sent):
        yield _frame(kind, number, fields)


def write_heartbeat(so_far: Response, request: Request, sent: int) -> bytes:
    """A frame that means nothing, under the number of the last one, so that none is missing for whoever counts.

    An event and not a comment: Codex waits 300 s for events, whatever else comes.
    """
    if not so_far.id:
        return HEARTBEAT
    document = write_document(so_far, request, "in_progress", output=False)
    return _frame("response.in_progress", max(0, sent - 1), {"response": document})


def _frame(kind: str, number: int, fields: dict[str, JSON]) -> bytes:
    data = _encode({"type": kind, "sequence_number": number, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _tell(event: Event, so_far: Response, request: Request) -> Iterator[Told]:
    match event:
        case Delta():
            yield from _grow(so_far, request, event.text)
        case Started():
            document = write_document(so_far, request, "in_progress")
            yield "response.created", {"response": document}
            yield "response.in_progress", {"response": document}
        case Opened():
            if not isinstance(event.part, SILENT):
                yield from _open(so_far, request)
        case Closed():
            yield from _close(so_far, request)
        case Finished():
            yield from _end(last_item(so_far.parts), so_far, request)
            status = "incomplete" if reason_of(so_far) else "completed"
            yield f"response.{status}", {"response": write_document(so_far, request, status)}
        case Failed():
            yield "response.failed", {"response": write_document(so_far, request, "failed", event)}
        case _:
            assert_never(event)


def _at(item: Item, so_far: Response) -> dict[str, JSON]:
    return {"item_id": item_id(item, so_far.id), "output_index": item.place}


def _open(so_far: Response, request: Request) -> Iterator[Told]:
    """A part has begun: perhaps with it an item, and before it the end of the one that was open."""
    before, item = last_item(so_far.parts[:-1]), last_item(so_far.parts)
    assert item is not None  # noqa: S101 - a part that is no item is not opened
    if before is None or before.place != item.place:
        yield from _end(before, so_far, request)
        added = write_item(item, so_far.id, request.tools, "in_progress")
        yield "response.output_item.added", {"output_index": item.place, "item": added}
        before = None
    if item.kind != "message":
        return
    contents = contents_of(item)
    known = contents_of(before) if before else []
    if len(contents) > len(known):
        if known:
            yield from _end_content(item, len(known) - 1, known[-1], so_far)
        yield (
            "response.content_part.added",
            {
                **_at(item, so_far),
                "content_index": len(known),
                "part": write_content(contents[-1]._replace(text="", annotations=[], logprobs=[])),
            },
        )


def _grow(so_far: Response, request: Request, text: str) -> Iterator[Told]:
    """More text of the last part."""
    part, item = so_far.parts[-1], last_item(so_far.parts)
    assert item is not None  # noqa: S101 - only parts that are items grow
    at = {**_at(item, so_far)}
    if isinstance(part, Text):
        at["content_index"] = len(contents_of(item)) - 1 if len(item.parts) > 1 else 0
        if part.refusal:
            yield "response.refusal.delta", {**at, "delta": text}
        else:
            yield "response.output_text.delta", {**at, "delta": text, "logprobs": []}
    elif isinstance(part, Thinking):
        if len(part.text) == len(text):
            yield _thought("added", item, so_far, "")
        yield _thought("delta", item, so_far, text)
    elif isinstance(part, ToolCall) and is_custom(part):
        yield "response.custom_tool_call_input.delta", {**at, "delta": text}
    elif isinstance(part, ToolCall) and free_text(part, request.tools) is None:
        yield "response.function_call_arguments.delta", {**at, "delta": text}


def _thought(step: str, item: Item, so_far: Response, text: str) -> Told:
    """One step in the life of the last thought of an item: `added`, `delta`, `text`, `done`."""
    raw = is_raw(item.parts[-1])
    place = sum(is_raw(part) == raw and bool(_text(part)) for part in item.parts[:-1])
    at: dict[str, JSON] = {**_at(item, so_far), ("content_index" if raw else "summary_index"): place}
    part = {"type": "reasoning_text" if raw else "summary_text", "text": text}
    grows = "response.reasoning_text" if raw else "response.reasoning_summary_text"
    frame = "response.content_part" if raw else "response.reasoning_summary_part"
    match step:
        case "delta":
            return f"{grows}.delta", {**at, "delta": text}
        case "text":
            return f"{grows}.done", {**at, "text": text}
        case _:
            return f"{frame}.{step}", {**at, "part": part}


def _text(part: Part) -> str:
    return part.text if isinstance(part, Thinking) else ""


def _close(so_far: Response, request: Request) -> Iterator[Told]:
    """A part is complete: a call with it, and what no other part can belong to."""
    part, item = so_far.parts[-1], last_item(so_far.parts)
    if item is None or isinstance(part, SILENT):
        return
    if isinstance(part, Thinking) and item.kind == "reasoning" and part.text:
        yield _thought("text", item, so_far, part.text)
        yield _thought("done", item, so_far, part.text)
    elif isinstance(part, ToolCall):
        yield from _end_call(part, item, so_far, request)
    elif item.kind == "other":
        yield from _end_item(item, so_far, request)


def _end_call(call: ToolCall, item: Item, so_far: Response, request: Request) -> Iterator[Told]:
    """The end of a call, and before it what could not be told in pieces."""
    at, text = _at(item, so_far), free_text(call, request.tools)
    if text is None:
        arguments = arguments_of(call)
        if arguments != call.arguments:
            yield "response.function_call_arguments.delta", {**at, "delta": arguments}
        name = calling(call, request.tools).name
        yield "response.function_call_arguments.done", {**at, "arguments": arguments, "name": name}
    else:
        if text and not is_custom(call):
            yield "response.custom_tool_call_input.delta", {**at, "delta": text}
        yield "response.custom_tool_call_input.done", {**at, "input": text}
    yield from _end_item(item, so_far, request)


def _end(item: Item | None, so_far: Response, request: Request) -> Iterator[Told]:
    """The end of an item that is still open because more of it might have come."""
    if item is None or item.kind in ("call", "other"):
        return
    if item.kind == "message":
        contents = contents_of(item)
        yield from _end_content(item, len(contents) - 1, contents[-1], so_far)
    yield from _end_item(item, so_far, request)


def _end_item(item: Item, so_far: Response, request: Request) -> Iterator[Told]:
    yield "response.output_item.done", {"output_index": item.place, "item": write_done(item, so_far, request)}


def _end_content(item: Item, place: int, content: Content, so_far: Response) -> Iterator[Told]:
    at: dict[str, JSON] = {**_at(item, so_far), "content_index": place}
    if content.refusal:
        yield "response.refusal.done", {**at, "refusal": content.text}
    else:
        for number, annotation in enumerate(content.annotations):
            told = {"annotation_index": number, "annotation": annotation}
            yield "response.output_text.annotation.added", {**at, **told}
        yield "response.output_text.done", {**at, "text": content.text, "logprobs": content.logprobs}
    yield "response.content_part.done", {**at, "part": write_content(content)}
