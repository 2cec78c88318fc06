"""Content parts of the Responses API ⇄ ours: what a message, an answer or the output of a call holds.

Source: OpenAI API reference, "Create a model response", `input[].content`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from bigbrain.messages import JSON, Audio, File, Image, Part, Text, Thinking, ToolCall, ToolResult
from bigbrain.wire.fields import read_as, wrong
from bigbrain.wire.openai_content import ImageUrl, InputAudio, address_of, meaningful, noted, own, read_data_uri

TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
"""The types of parts that carry plain text."""


class _Part(msgspec.Struct, frozen=True):
    """Any part; `type` says which of the other fields counts."""

    type: str
    text: str | None = None
    refusal: str | None = None
    annotations: list[JSON] | None = None
    logprobs: list[JSON] | None = None
    image_url: ImageUrl | str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    input_audio: InputAudio | None = None


def read_content(content: JSON, path: str, phase: str | None = None) -> tuple[Part, ...]:
    """The parts of content that is a string, a list of parts or null, without those that say nothing.

    phase: what a model has said about its message, which is kept with each text.

    Raises `WireError` naming the part that is none.
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content, vendor=noted(phase=phase)),) if content else ()
    if not isinstance(content, list):
        raise wrong(path, "must be a string or a list of parts")
    return meaningful([_read_part(part, f"{path}[{place}]", phase) for place, part in enumerate(content)])


def _read_part(value: JSON, path: str, phase: str | None) -> Part:
    part = read_as(value, _Part, path)
    if part.type in TEXTS and part.text is not None:
        likely = {"content": part.logprobs} if part.logprobs else None
        return Text(part.text, vendor=noted(annotations=part.annotations or None, logprobs=likely, phase=phase))
    match part.type:
        case "refusal" if part.refusal is not None:
            return Text(part.refusal, refusal=True, vendor=noted(phase=phase))
        case "input_image" | "image_url" if part.image_url is not None or part.file_id:
            return _read_image(part, path)
        case "input_file":
            return _read_file(part, path)
        case "input_audio" if part.input_audio is not None:
            return Audio(part.input_audio.data, part.input_audio.format)
        case kind if kind in TEXTS or kind in ("refusal", "input_image", "image_url", "input_audio"):
            field = {"input_image": "image_url"}.get(kind, kind if kind not in TEXTS else "text")
            raise wrong(f"{path}.{field}", "is missing; a part carries its value under this name")
        case kind:
            known = "`input_text`, `input_image`, `input_file`, `input_audio`, `output_text` or `refusal`"
            raise wrong(f"{path}.type", f"is {kind!r}; use {known}")


def _read_image(part: _Part, path: str) -> Image:
    given = part.image_url
    url, detail = (given.url, given.detail) if isinstance(given, ImageUrl) else (given, part.detail)
    note = noted(detail=detail)
    if not url:
        if not part.file_id:
            raise wrong(f"{path}.image_url", "is empty; give an address or a data URI, or `file_id`")
        return Image(file_id=part.file_id, vendor=note)
    found = read_data_uri(url)
    return Image(url=url, vendor=note) if found is None else Image(data=found[1], media_type=found[0], vendor=note)


def _read_file(part: _Part, path: str) -> File:
    name = part.filename or ""
    if part.file_data:
        media_type, data = read_data_uri(part.file_data) or ("", part.file_data)
        return File(data=data, media_type=media_type, name=name)
    if part.file_url:
        return File(url=part.file_url, name=name)
    if part.file_id:
        return File(file_id=part.file_id, name=name)
    raise wrong(f"{path}.file_data", "is missing; give it as a data URI, or `file_url`, or `file_id`")


def write_asked(parts: Iterable[Part]) -> list[dict[str, JSON]]:
    """What a user, a system or a tool says, as parts; what is no content is left out."""
    return [written for part in parts if (written := _write_part(part))]


def _write_part(part: Part) -> dict[str, JSON]:
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
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
    detail = own(image.vendor).get("detail")
    written: dict[str, JSON] = {"type": "input_image", **({} if detail is None else {"detail": detail})}
    if image.file_id:
        return {**written, "file_id": image.file_id}
    return {**written, "image_url": address_of(image)}


def _write_file(file: File) -> dict[str, JSON]:
    """A document; one that is plain text has no form of its own here and goes as text."""
    named: dict[str, JSON] = {"filename": file.name} if file.name else {}
    if file.file_id:
        return {"type": "input_file", "file_id": file.file_id, **named}
    if file.data:
        uri = f"data:{file.media_type or 'application/octet-stream'};base64,{file.data}"
        return {"type": "input_file", "filename": "file", **named, "file_data": uri}
    if file.url:
        return {"type": "input_file", "file_url": file.url, **named}
    return {"type": "input_text", "text": file.text}
