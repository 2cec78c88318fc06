"""What a run can keep: a value is looked at where it is made, so that nothing that cannot be read again is kept.

Whatever a run keeps becomes JSON and is read back by another process. A value that does not survive that fails the
step that made it, with its place named, and not the step that would have to go on from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from bigbrain.errors import Unstorable
from bigbrain.messages import Message, Part

T = TypeVar("T")

DEEPEST = 50
"""Levels of a value that are looked through for the place of a fault."""

_message = msgspec.json.Decoder(Message)
_part: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)


def kept_message(message: Message, maker: str) -> Message:
    """The message, known to be one that can be kept; maker: what made it. Raises `Unstorable` with the place in it."""
    _look(message, _message, maker)
    return message


def kept_part(part: T, maker: str) -> T:
    """The part of a message, known to be one that can be kept; else as `kept_message`."""
    _look(part, _part, maker)
    return part


def kept_text(text: object, maker: str) -> str:
    """A text, known to be one that can be kept. Raises `Unstorable`."""
    if not isinstance(text, str):
        raise Unstorable(f"{maker}: `{text!r:.80}` is a `{type(text).__name__}`; give text")
    # a member of an enum of texts and the like become plain
    plain = str.__str__(text)
    try:
        plain.encode()
    except UnicodeEncodeError as exc:
        raise Unstorable(f"{maker}: {plain!r:.80} holds half a character (a lone surrogate); give whole text") from exc
    return plain


def written(value: object, maker: str) -> bytes:
    """The JSON of a value. Raises `Unstorable` with the place in it that has none."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise Unstorable(f"{maker}: {_place(value)} has no JSON ({exc}); give JSON values") from exc


def _look(value: object, decoder: msgspec.json.Decoder[T], maker: str) -> None:
    line = written(value, maker)
    try:
        decoder.decode(line)
    except msgspec.ValidationError as exc:
        raise Unstorable(f"{maker}: it could not be read again: {exc}") from exc


def _place(value: object, path: str = "", depth: int = 0) -> str:
    """Where in a value that is which has no JSON, such as `parts[0].vendor.x`, and what is there."""
    for step, inner in _inside(value):
        try:
            msgspec.json.encode(inner)
        except (TypeError, ValueError, RecursionError):
            if depth < DEEPEST:
                return _place(inner, f"{path}{step}", depth + 1)
    return f"`{path.lstrip('.') or 'the value'}`, a `{type(value).__name__}`,"


def _inside(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case msgspec.Struct():
            yield from ((f".{name}", getattr(value, name)) for name in value.__struct_fields__)
        case dict():
            yield from ((f".{key}", inner) for key, inner in value.items())
        case list() | tuple():
            yield from ((f"[{index}]", inner) for index, inner in enumerate(value))
