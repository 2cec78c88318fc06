"""The parts of an answer as the items of `output`: which parts are one item, where it stands, how it is written.

Neighbouring texts are one message, because clients take the last message for the answer; in it,
plain texts are one content part and refusals another. Thoughts that one upstream item brought
are one reasoning item again. Every call is an item of its own. Ids of items follow from that of
the response and the item's place, so that the same answer has the same ids whenever it is written;
only a reasoning item keeps the id that a model gave it.
Lost: pictures, files and sounds in an answer, which have no item here.
Source: OpenAI API reference, "The response object", `output`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from bigbrain.messages import JSON, Audio, File, Image, Part, Text, Thinking, ToolCall, ToolResult, ToolSpec
from bigbrain.wire.openai_chat_asking import is_custom
from bigbrain.wire.openai_content import own
from bigbrain.wire.openai_responses_items import seal
from bigbrain.wire.openai_responses_tools import calling, free_text

Kind: TypeAlias = Literal["message", "reasoning", "call", "other"]

PREFIXES: dict[Kind, str] = {"message": "msg_", "reasoning": "rs_", "call": "fc_", "other": "item_"}

SILENT = (Image, File, Audio, ToolResult)
"""The parts that no item tells of."""


class Item(NamedTuple):
    """One item: its place in `output`, and the parts that it is made of, in order."""

    place: int
    kind: Kind
    parts: tuple[Part, ...]
    given_id: str
    """What its model named it, if no item before has that name."""


class Content(NamedTuple):
    """One content part of a message: neighbouring texts that are all refusals, or all none."""

    refusal: bool
    text: str
    annotations: list[JSON]
    logprobs: list[JSON]


def items_of(parts: Sequence[Part]) -> list[Item]:
    """The items that tell of these parts."""
    items: list[list[Part]] = []
    last: str | None = None
    for part in parts:
        if isinstance(part, SILENT):
            continue
        key = _key(part)
        if key is not None and key == last:
            items[-1].append(part)
        else:
            items.append([part])
        last = key
    taken: set[str] = {""}
    made = []
    for place, told in enumerate(items):
        given = _given_id(told[0])
        made.append(Item(place, _kind(told[0]), tuple(told), "" if given in taken else given))
        taken.add(given)
    return made


def last_item(parts: Sequence[Part]) -> Item | None:
    """The last of the items that tell of these parts; every token asks for it, so nothing is made of the others."""
    place, first, last = -1, 0, None
    for index, part in enumerate(parts):
        if isinstance(part, SILENT):
            continue
        key = _key(part)
        if key is None or key != last:
            place, first = place + 1, index
        last = key
    if place < 0:
        return None
    given = _given_id(parts[first])
    taken = bool(given) and any(_given_id(part) == given for part in parts[:first])
    told = tuple(part for part in parts[first:] if not isinstance(part, SILENT))
    return Item(place, _kind(parts[first]), told, "" if taken else given)


def _given_id(part: Part) -> str:
    """The id that a model gave to a thought or a hosted tool's item, or ""."""
    if not isinstance(part, Thinking) or not part.vendor:
        return ""
    note = own(part.vendor)
    item = note.get("item")
    given = item.get("id") if isinstance(item, dict) else note.get("id")
    return given if isinstance(given, str) else ""


def _kind(part: Part) -> Kind:
    if isinstance(part, Text):
        return "message"
    if isinstance(part, ToolCall):
        return "call"
    return "other" if "item" in own(part.vendor) else "reasoning"


def _key(part: Part) -> str | None:
    """What neighbours of one item have in common; None for a part that is an item of its own."""
    if isinstance(part, ToolCall):
        return None
    note = own(part.vendor) if part.vendor else {}
    if isinstance(part, Text):
        return f"message {note.get('phase', '')}"
    return f"reasoning {note['id']}" if note.get("id") and "item" not in note else None


def contents_of(item: Item) -> list[Content]:
    """The content parts of a message."""
    contents: list[Content] = []
    for part in item.parts:
        if not isinstance(part, Text):
            continue
        annotations, logprobs = _list(own(part.vendor).get("annotations")), _logprobs(part)
        if contents and contents[-1].refusal == part.refusal:
            before = contents.pop()
            annotations = before.annotations + [_moved(each, len(before.text)) for each in annotations]
            contents.append(Content(part.refusal, before.text + part.text, annotations, before.logprobs + logprobs))
        else:
            contents.append(Content(part.refusal, part.text, annotations, logprobs))
    return contents


def _list(found: JSON) -> list[JSON]:
    return found if isinstance(found, list) else []


def _logprobs(part: Text) -> list[JSON]:
    """How probable the tokens of a text were, as far as its model's server said so."""
    told = own(part.vendor).get("logprobs")
    return _list(told.get("content")) if isinstance(told, dict) else []


def _moved(annotation: JSON, by: int) -> JSON:
    """An annotation of a text that has come to stand behind another one."""
    if not isinstance(annotation, dict):
        return annotation
    moved = {k: annotation[k] + by for k in ("start_index", "end_index") if isinstance(annotation.get(k), int)}
    return {**annotation, **moved}


def item_id(item: Item, response_id: str) -> str:
    """The item's id."""
    if item.given_id:
        return item.given_id
    first = item.parts[0]
    prefix = "ctc_" if isinstance(first, ToolCall) and is_custom(first) else PREFIXES[item.kind]
    return f"{prefix}{response_id.removeprefix('resp_')}_{item.place}"


def write_content(content: Content) -> dict[str, JSON]:
    """A content part of a message."""
    if content.refusal:
        return {"type": "refusal", "refusal": content.text}
    return {
        "type": "output_text",
        "text": content.text,
        "annotations": content.annotations,
        "logprobs": content.logprobs,
    }


def arguments_of(call: ToolCall) -> str:
    """The arguments of a function as they go out: verbatim, only nothing is no JSON text that a client could parse."""
    return call.arguments if call.arguments.strip() else "{}"


def write_item(
    item: Item, response_id: str, tools: Sequence[ToolSpec], status: str = "completed", *, sealed: bool = False
) -> dict[str, JSON]:
    """The item, complete or, when its status is `in_progress`, as it is when it begins.

    sealed: a thought has `encrypted_content` also when there is nothing to keep in it.
    """
    first, begins = item.parts[0], status == "in_progress"
    about: dict[str, JSON] = {"id": item_id(item, response_id)}
    if isinstance(first, ToolCall):
        return _write_call(first, about, tools, status)
    if item.kind == "message":
        phase = own(first.vendor).get("phase")
        content = [] if begins else [write_content(content) for content in contents_of(item)]
        said: dict[str, JSON] = {**about, "type": "message", "role": "assistant", "status": status, "content": content}
        return said if phase is None else {**said, "phase": phase}
    if item.kind == "other":
        return {**own(first.vendor)["item"], **about}
    return {**about, **_write_reasoning(() if begins else item.parts, sealed=sealed and not begins)}


def _write_call(call: ToolCall, about: dict[str, JSON], tools: Sequence[ToolSpec], status: str) -> dict[str, JSON]:
    name, namespace = calling(call, tools)
    begins, text = status == "in_progress", free_text(call, tools)
    named: dict[str, JSON] = {"call_id": call.id, "name": name}
    if text is None:
        arguments = "" if begins else arguments_of(call)
        written = {**about, "type": "function_call", "status": status, **named, "arguments": arguments}
    else:
        written = {**about, "type": "custom_tool_call", "status": status, **named, "input": "" if begins else text}
    return {**written, "namespace": namespace} if namespace else written


def is_raw(thought: Part) -> bool:
    """Whether it is the model's own text, and not a summary of it."""
    return own(thought.vendor).get("form") == "reasoning_text"


def _write_reasoning(thoughts: Sequence[Part], *, sealed: bool) -> dict[str, JSON]:
    told = [part for part in thoughts if isinstance(part, Thinking) and part.text]
    written: dict[str, JSON] = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": part.text} for part in told if not is_raw(part)],
    }
    if texts := [{"type": "reasoning_text", "text": part.text} for part in told if is_raw(part)]:
        written["content"] = texts
    secret = sealed_of(thoughts) or (seal({}) if sealed else "")
    return {**written, "encrypted_content": secret} if secret else written


def sealed_of(thoughts: Sequence[Part]) -> str:
    """What a client is to keep of thoughts and give back: what their model sealed, else the notes that other models need."""
    for part in reversed(thoughts):
        found = own(part.vendor).get("encrypted_content")
        if isinstance(found, str):
            return found
    foreign = next(
        (part.vendor for part in thoughts if part.vendor.keys() - {"openai"} or "field" in own(part.vendor)), {}
    )
    return seal(foreign) if foreign else ""
