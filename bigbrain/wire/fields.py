"""Decoded JSON as typed values, or an error that names the field at fault.

The shape of a request is a msgspec Struct; whatever it does not name is passed over.
"""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from bigbrain.errors import Unsupported, WireError
from bigbrain.messages import JSON

T = TypeVar("T")

_PLACE = re.compile(r" - at `?(?:key` in `)?\$\.?(?P<path>.*?)`?$")
_MISSING = re.compile(r"^Object missing required field `(?P<name>[^`]+)`")


def wrong(path: str, what: str) -> WireError:
    """The error that names a field; `what` says what is wrong with it and what would be right."""
    return WireError(f"`{path}` {what}" if path else what, param=path or None)


def unsupported(path: str, what: str) -> Unsupported:
    """The error for a field whose value its protocol allows and a brain does not give."""
    return Unsupported(f"`{path}` {what}", param=path)


def read_as(body: JSON, kind: type[T], at: str = "") -> T:
    """The value as `kind`; `at` is the path at which it stands.

    Raises `WireError` with the dotted path, such as `messages[2].content`, when a field is missing or ill-typed.
    """
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as exc:
        raise _named(str(exc), at) from exc


def _named(sentence: str, at: str) -> WireError:
    """The error of msgspec's sentence, which ends with the place."""
    place = _PLACE.search(sentence)
    path = ".".join(part for part in (at, place["path"] if place else "") if part).replace(".[", "[")
    missing = _MISSING.match(sentence)
    if missing:
        return wrong(f"{path}.{missing['name']}".lstrip("."), "is missing; send it")
    what = sentence[: place.start()] if place else sentence
    what = what[:1].lower() + what[1:]
    if not path:
        return wrong("", f"the body has the wrong shape: {what}; send a JSON object")
    return wrong(path, f"has the wrong type or value: {what}; correct it or leave it out")
