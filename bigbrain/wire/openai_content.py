"""OpenAI's content parts and call arguments ⇄ ours.

Chat Completions has these forms; what both OpenAI dialects agree on (data URIs,
arguments that must be JSON) stands here once.
Source: OpenAI API reference, "Create chat completion", `messages[].content`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec

from bigbrain.errors import ToolError
from bigbrain.messages import JSON, Audio, File, Image, Part, Text, Thinking, ToolCall, ToolResult, Vendor
from bigbrain.wire.fields import wrong

NAME = "openai"
"""The key of both OpenAI dialects in `vendor` and `extra`."""
MARKS = ("prompt_cache_breakpoint", "cache_control")
"""Where a prompt is to be cached: OpenAI's mark on a text, and the one that servers in front of other models read."""


class ImageUrl(msgspec.Struct, frozen=True):
    """`detail` is kept for servers that know it."""

    url: str
    detail: str | None = None


class InputAudio(msgspec.Struct, frozen=True):
    """Base64 and the file's ending."""

    data: str
    format: str = ""


class InputFile(msgspec.Struct, frozen=True):
    """By its bytes in a data URI, or by the id of an upload."""

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class ContentPart(msgspec.Struct, frozen=True):
    """Any part; `type` says which of the other fields counts."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None
    input_audio: InputAudio | None = None
    file: InputFile | None = None
    prompt_cache_breakpoint: JSON = None


Content = str | list[ContentPart] | None


def own(vendor: Vendor) -> dict[str, JSON]:
    """What this dialect noted; nothing when it noted nothing or something odd."""
    noted = vendor.get(NAME)
    return noted if isinstance(noted, dict) else {}


def noted(**notes: JSON) -> Vendor:
    """Notes of this dialect, without those that say nothing."""
    kept = {name: value for name, value in notes.items() if value is not None}
    return {NAME: kept} if kept else {}


def read_data_uri(uri: str) -> tuple[str, str] | None:
    """Media type and base64 of a data URI; None when it is none or not in base64 (RFC 2397)."""
    head, comma, data = uri.partition(",")
    if not comma or head[:5].lower() != "data:" or not head.lower().endswith(";base64"):
        return None
    return head[5:].split(";", 1)[0], data


def read_content(content: Content, path: str) -> tuple[Part, ...]:
    """The parts of a message's content, without those that say nothing.

    Blank text stays only where it is all there is: servers refuse a blank text beside others.
    """
    if content is None or isinstance(content, str):
        return (Text(content),) if content else ()
    return meaningful([_read_part(part, f"{path}[{place}]") for place, part in enumerate(content)])


def meaningful(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts without blank texts, or, when there is nothing else, without empty ones."""
    full = tuple(part for part in parts if not isinstance(part, Text) or part.text.strip())
    return full or tuple(part for part in parts if isinstance(part, Text) and part.text)


def _read_part(part: ContentPart, path: str) -> Part:
    match part.type:
        case "text" | "input_text" | "output_text" if part.text is not None:
            return Text(part.text, vendor=noted(prompt_cache_breakpoint=part.prompt_cache_breakpoint))
        case "refusal" if part.refusal is not None:
            return Text(part.refusal, refusal=True)
        case "image_url" if part.image_url is not None:
            return _read_image(part.image_url, path)
        case "input_audio" if part.input_audio is not None:
            return Audio(part.input_audio.data, part.input_audio.format)
        case "file" if part.file is not None:
            return _read_file(part.file, path)
        case "text" | "refusal" | "image_url" | "input_audio" | "file":
            raise wrong(f"{path}.{part.type}", "is missing; a part carries its value under the name of its type")
        case _:
            raise wrong(
                f"{path}.type", f"is {part.type!r}; use `text`, `image_url`, `input_audio`, `file` or `refusal`"
            )


def _read_image(image: ImageUrl | str, path: str) -> Image:
    url, detail = (image, None) if isinstance(image, str) else (image.url, image.detail)
    if not url:
        raise wrong(f"{path}.image_url.url", "is empty; give an address or a data URI")
    found = read_data_uri(url)
    if found is None:
        return Image(url=url, vendor=noted(detail=detail))
    return Image(data=found[1], media_type=found[0], vendor=noted(detail=detail))


def _read_file(file: InputFile, path: str) -> File:
    name = file.filename or ""
    if file.file_data:
        media_type, data = read_data_uri(file.file_data) or ("", file.file_data)
        return File(data=data, media_type=media_type, name=name)
    if file.file_id:
        return File(file_id=file.file_id, name=name)
    raise wrong(f"{path}.file", "holds no file; give `file_data` as a data URI, or `file_id`")


def write_content(parts: Iterable[Part]) -> JSON:
    """The parts as content: one plain text as a string, else a list of parts."""
    written = [part for part in map(_write_part, parts) if part]
    if not written:
        return ""
    if len(written) == 1 and written[0].keys() == {"type", "text"}:
        return written[0]["text"]
    return written


def address_of(image: Image) -> str:
    """Where an image is; one that came along is its own address."""
    return f"data:{image.media_type or 'image/png'};base64,{image.data}" if image.data else image.url


def _write_part(part: Part) -> dict[str, JSON]:
    """One part; empty for those that are not content here."""
    match part:
        case Text():
            noted = own(part.vendor)
            return {"type": "text", "text": part.text, **{mark: noted[mark] for mark in MARKS if noted.get(mark)}}
        case Image():
            return _write_image(part)
        case File():
            return _write_file(part)
        case Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format or "wav"}}
        case Thinking() | ToolCall() | ToolResult():
            return {}
        case _:
            assert_never(part)


def _write_image(image: Image) -> dict[str, JSON]:
    if image.file_id:
        return {"type": "file", "file": {"file_id": image.file_id}}
    url = address_of(image)
    detail = own(image.vendor).get("detail")
    return {"type": "image_url", "image_url": {"url": url, **({} if detail is None else {"detail": detail})}}


def _write_file(file: File) -> dict[str, JSON]:
    """A text or an address has no form of its own here and goes as text."""
    if file.file_id:
        return {"type": "file", "file": {"file_id": file.file_id}}
    if file.data:
        uri = f"data:{file.media_type or 'application/octet-stream'};base64,{file.data}"
        return {"type": "file", "file": {"file_data": uri, "filename": file.name or "file"}}
    return {"type": "text", "text": file.text or file.url}


def read_arguments(arguments: JSON) -> str:
    """The arguments of a call as JSON text; some servers send the object itself."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def write_arguments(call: ToolCall) -> str:
    """The arguments of a call as the text of a JSON object, whatever the model wrote.

    An object is sent as it was written; nothing, blanks and `null` become `{}`; a doubly
    encoded object is unwrapped. Anything else cannot be sent raw, because servers parse the
    history again, and is kept in words under `_raw`, so that the model sees its mistake.
    """
    try:
        value = call.input
    except ToolError:
        value = {"_raw": call.arguments}
    else:
        if call.arguments.lstrip().startswith("{"):
            return call.arguments
    return msgspec.json.encode(value).decode()
