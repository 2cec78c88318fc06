"""Anthropic's content blocks ⇄ parts.

What a block holds beyond its part (`cache_control`, `citations`, a document's
`context` …) rides in the part's `vendor["anthropic"]` under the same names. Four
names there are ours:

- `signature` on a `Thinking`: it is Anthropic's own and may go back;
- `redacted` on an empty `Thinking`: the data of a `redacted_thinking` block;
- `source` on a `File`: a document made of blocks, which a `File` cannot hold;
- `block` on any part: a whole block that the normal form has no part for.

**Blocks without a part** never get lost on the way to an Anthropic server, which
receives the `block` unchanged. For every other reader a `search_result` is a
`File` with its text; any other block of the user, or inside a result, is a `Text` with the
words found in it (its JSON when there are none); any other block of the
assistant (a hosted tool's call or result, a compaction) is an empty `Thinking`, which every dialect
drops when it is not its own.
"""

from __future__ import annotations

import base64
import binascii
from typing import Literal, TypeAlias, assert_never

import msgspec

from bigbrain.errors import ToolError, WireError
from bigbrain.messages import JSON, Audio, File, Image, Part, Text, Thinking, ToolCall, ToolResult, Vendor
from bigbrain.wire.anthropic_fields import Fields

NAME = "anthropic"

CARRIED = "bigbrain."
"""How a signature of ours begins."""

Block: TypeAlias = dict[str, JSON]
Place: TypeAlias = Literal["system", "user", "assistant", "result"]
"""Where a block stands; `result` is inside a `tool_result`."""

HOME: dict[str, Place] = {
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_use": "assistant",
    "tool_result": "user",
}
"""Blocks that belong to one place only → that place."""


def notes(vendor: Vendor) -> dict[str, JSON]:
    """What this dialect noted; a value of an unexpected type counts as nothing."""
    found = vendor.get(NAME)
    return found if isinstance(found, dict) else {}


def noted(own: dict[str, JSON]) -> Vendor:
    """A vendor mapping with this dialect's notes; an empty one for no notes."""
    return {NAME: own} if own else {}


def is_empty(part: Part) -> bool:
    """Whether a part says nothing at all; such parts are not in the normal form."""
    match part:
        case Text():
            return not part.text and "block" not in notes(part.vendor)
        case Thinking():
            return not part.text and not part.vendor
        case File():
            return part == File(name=part.name)
        case _:
            return False


def read_parts(message: Fields, place: Place) -> list[Part]:
    """The parts of a `content`, which is a string or a list of blocks; empty ones are left out.

    Raises `WireError` when it is neither, or when a block is wrong.
    """
    if isinstance(message.data.get("content"), str):
        parts: list[Part] = [Text(message.text("content"))]
    else:
        parts = [read_part(block, place) for block in message.objects("content")]
    return [part for part in parts if not is_empty(part)]


def read_part(block: Fields, place: Place) -> Part:
    """One block as a part, perhaps an empty one. Raises `WireError` when the block is wrong."""
    kind = block.needed_text("type")
    if place == "system" and kind != "text":
        raise block.wrong("type", "`text` in a system message")
    if place != "result" and HOME.get(kind, place) != place:
        raise WireError(
            f"`{block.at}`: a `{kind}` block may only stand in a message of the {HOME[kind]}", param=block.at
        )
    match kind:
        case "text":
            return Text(_given_text(block, "text"), vendor=noted(_beyond(block, "text")))
        case "image":
            return _read_image(block)
        case "document":
            return _read_document(block)
        case "search_result":
            raw = noted({"block": block.data})
            return File(text=words(block.data.get("content")), name=block.text("title"), vendor=raw)
        case "tool_result" if place != "result":
            return _read_result(block)
        case _ if place == "assistant":
            return _read_assistants(block, kind)
        case _:
            readable = words(block.data) or msgspec.json.encode(block.data).decode()
            return Text(readable, vendor=noted({"block": block.data}))


def _read_assistants(block: Fields, kind: str) -> Part:
    """A block that only the assistant's messages hold."""
    match kind:
        case "thinking":
            own, signature = _beyond(block, "thinking"), block.text("signature")
            if (others := read_carried(signature)) is not None:
                return Thinking(block.text("thinking"), others)
            return Thinking(block.text("thinking"), noted({"signature": signature, **own} if signature else own))
        case "redacted_thinking":
            return Thinking(vendor=noted({"redacted": block.needed_text("data")}))
        case "tool_use":
            own = _beyond(block, "id", "name", "input")
            return ToolCall(block.needed_text("id"), block.needed_text("name"), _read_input(block), noted(own))
        case _:
            return Thinking(vendor=noted({"block": block.data}))


def _beyond(block: Fields, *known: str) -> dict[str, JSON]:
    """What a block holds beyond its part; a stranger cannot set the names that are ours."""
    return block.rest("type", "block", "redacted", "signature", *known)


def _given_text(block: Fields, name: str) -> str:
    """A string that must be there but may be empty."""
    if not block.has(name):
        raise block.wrong(name, "a string")
    return block.text(name)


def _read_input(block: Fields) -> str:
    """The arguments as JSON text; what is no object is kept as it is, for `ToolCall.input` to judge."""
    value = block.data.get("input")
    if isinstance(value, str):
        return value if value.strip() else "{}"
    return "{}" if value is None else msgspec.json.encode(value).decode()


def _read_image(block: Fields) -> Image:
    source, own = block.inner("source"), noted(_beyond(block, "source"))
    match source.text("type"):
        case "base64":
            return Image(data=source.needed_text("data"), media_type=source.needed_text("media_type"), vendor=own)
        case "url":
            return Image(url=source.needed_text("url"), vendor=own)
        case "file":
            return Image(file_id=source.needed_text("file_id"), vendor=own)
        case _:
            raise source.wrong("type", "`base64`, `url` or `file`")


def _read_document(block: Fields) -> File:
    source, own = block.inner("source"), _beyond(block, "source", "title")
    name, vendor = block.text("title"), noted(own)
    match source.text("type"):
        case "base64":
            data, media_type = source.needed_text("data"), source.text("media_type") or "application/pdf"
            return File(data=data, media_type=media_type, name=name, vendor=vendor)
        case "text":
            return File(text=_given_text(source, "data"), name=name, vendor=vendor)
        case "content":
            text = words(source.data.get("content"))
            return File(text=text, name=name, vendor=noted({**own, "source": source.data}))
        case "url":
            return File(url=source.needed_text("url"), name=name, vendor=vendor)
        case "file":
            return File(file_id=source.needed_text("file_id"), name=name, vendor=vendor)
        case _:
            raise source.wrong("type", "`base64`, `text`, `content`, `url` or `file`")


def _read_result(block: Fields) -> ToolResult:
    parts = tuple(part for part in read_parts(block, "result") if isinstance(part, (Text, Image, File)))
    own = _beyond(block, "tool_use_id", "content", "is_error")
    return ToolResult(block.needed_text("tool_use_id"), parts, block.flag("is_error") or False, noted(own))


def words(value: JSON) -> str:
    """The readable text of a string, a block or a list of blocks: what stands under `text` and `content`."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case list() as items:
                waiting.extend(reversed(items))
            case dict() as block:
                waiting.extend(block[name] for name in ("content", "text") if name in block)
            case _:
                pass
    return "\n\n".join(text for text in found if text.strip())


def write_blocks(parts: tuple[Part, ...]) -> list[Block]:
    """The blocks of a message that goes to a server: none empty or blank, none it would refuse.

    Thinking goes only when Anthropic signed it, and then untouched: a server checks the signature.
    """
    return [block for part in parts if (block := write_block(part)) is not None]


def write_block(part: Part) -> Block | None:
    """One part as a server takes it, or None when there is nothing that it would take."""
    own = notes(part.vendor)
    if isinstance(own.get("block"), dict):
        raw: Block = own["block"]
        return raw
    match part:
        case Text():
            return {"type": "text", "text": part.text, **own} if part.text.strip() else None
        case Image():
            return {"type": "image", "source": _image_source(part), **own}
        case File():
            return _write_document(part, own)
        case Audio():
            return {"type": "text", "text": placeholder(part)}
        case Thinking():
            return write_thinking(part) if own.get("signature") or own.get("redacted") else None
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": write_input(part), **own}
        case ToolResult():
            return write_result(part)
        case _:
            assert_never(part)


def write_thinking(part: Thinking) -> Block:
    """A thinking block, redacted or not; without a signature it has ours, or an empty one."""
    own = notes(part.vendor)
    if "redacted" in own:
        return {"type": "redacted_thinking", "data": own["redacted"]}
    known = {name: value for name, value in own.items() if name != "block"}
    return {"type": "thinking", "thinking": part.text, "signature": signature_of(part), **known}


def signature_of(part: Thinking) -> str:
    """Anthropic's own signature, or one of ours that carries what another dialect noted; "" when there is neither.

    A client sends thinking back as it got it, so what another provider wants to see again comes back too.
    """
    others = {name: own for name, own in part.vendor.items() if name != NAME}
    if signature := notes(part.vendor).get("signature"):
        return str(signature)
    return CARRIED + base64.urlsafe_b64encode(msgspec.json.encode(others)).decode() if others else ""


def read_carried(signature: str) -> Vendor | None:
    """What a signature of ours carries; None when it is none of ours."""
    if not signature.startswith(CARRIED):
        return None
    try:
        found = msgspec.json.decode(base64.urlsafe_b64decode(signature.removeprefix(CARRIED)))
    except (binascii.Error, msgspec.DecodeError, UnicodeError):
        return {}
    return {name: own for name, own in found.items() if name != NAME} if isinstance(found, dict) else {}


def write_input(call: ToolCall) -> dict[str, JSON]:
    """The arguments as an object; what is none goes as `{"_raw": text}`, so that a history with it stays valid."""
    try:
        return call.input
    except ToolError:
        return {"_raw": call.arguments}


def write_result(result: ToolResult) -> Block:
    """A result; what it says may be nothing, but never a blank text."""
    block: Block = {"type": "tool_result", "tool_use_id": result.call_id}
    if content := write_blocks(result.parts):
        block["content"] = content
    if result.is_error:
        block["is_error"] = True
    return {**block, **notes(result.vendor)}


def placeholder(part: Image | File | Audio | ToolResult) -> str:
    """A sentence in the place of a part that the wire cannot carry, so that its absence is seen."""
    match part:
        case Image() | File() if part.url:
            return part.url
        case Image():
            return "[an image, which this protocol cannot carry here]"
        case File():
            return part.text or f"[the file `{part.name or part.file_id}`, which this protocol cannot carry here]"
        case Audio():
            return f"[a sound (`{part.format}`), which this protocol cannot carry]"
        case ToolResult():
            return part.text or "[a tool's result]"
        case _:
            assert_never(part)


_STARTS = {"/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the base64 of a picture begins → its type, for pictures that came without one."""


def _image_source(image: Image) -> Block:
    if image.url:
        return {"type": "url", "url": image.url}
    if image.file_id:
        return {"type": "file", "file_id": image.file_id}
    guess = next((kind for start, kind in _STARTS.items() if image.data.startswith(start)), "image/png")
    return {"type": "base64", "media_type": image.media_type or guess, "data": image.data}


def _write_document(file: File, own: dict[str, JSON]) -> Block | None:
    source = own.get("source") or _document_source(file)
    if source["type"] == "text" and not source["data"].strip():
        return None
    title = {"title": file.name} if file.name else {}
    return {"type": "document", **title, **own, "source": source}


def _document_source(file: File) -> Block:
    if file.url:
        return {"type": "url", "url": file.url}
    if file.file_id:
        return {"type": "file", "file_id": file.file_id}
    text = file.text if not file.data else _decoded_text(file)
    if text is not None:
        return {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "base64", "media_type": file.media_type or "application/pdf", "data": file.data}


def _decoded_text(file: File) -> str | None:
    """The text of a file of text: servers take only PDF as base64."""
    if not file.media_type.startswith("text/"):
        return None
    try:
        return base64.b64decode(file.data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
