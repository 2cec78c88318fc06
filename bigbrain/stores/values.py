"""What may be kept: keys, lifetimes and values, checked before they reach a store.

A value is JSON, or an Enum, a dataclass, a msgspec Struct or a pydantic model, alone or
inside lists and objects; these are written by their `shape`, and read back by `get(key, T)`.
What JSON would change silently (`nan`, numbers as keys, sets) is refused, not bent. A
value is never None, because None says that there is none.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator

import msgspec

from bigbrain.errors import SchemaError, StoreError, WiringError
from bigbrain.messages import JSON
from bigbrain.schemas import shape

LONGEST_KEY = 512
"""Bytes of a key in UTF-8."""
LONGEST_TTL = 100 * 365 * 86400.0
"""Seconds; what is to be kept longer has no lifetime."""
DEEPEST = 100
"""Levels of lists and objects inside each other."""


def check_key(key: str) -> None:
    """Lets a key pass. Raises `StoreError` when it is no text, empty, or longer than `LONGEST_KEY`."""
    if not isinstance(key, str):
        raise StoreError(f"the key {key!r} is no text; give a string")
    if not 0 < len(_bytes(key, "key")) <= LONGEST_KEY:
        raise StoreError(f"the key {key[:40]!r} has {len(key.encode())} bytes; give 1 to {LONGEST_KEY}")


def check_prefix(prefix: str) -> None:
    """Lets the beginning of keys pass. Raises `StoreError` when it is no text."""
    if not isinstance(prefix, str):
        raise StoreError(f"the prefix {prefix!r} is no text; give a string")
    _bytes(prefix, "prefix")


def check_ttl(ttl: float | None) -> None:
    """Lets a lifetime pass. Raises `StoreError` when it is not above zero, or longer than a century."""
    if ttl is not None and not 0 < ttl <= LONGEST_TTL:
        raise StoreError(f"`ttl` is {ttl!r}; give seconds above 0, or None to keep the value")


def check_kind(key: str, kind: object) -> None:
    """Lets a type pass. Raises `StoreError` for a value, which somebody meant as the default."""
    if isinstance(kind, str | int | float | list | tuple | dict | set):
        raise StoreError(f"`get` of `{key}`: {kind!r} is no type; write `default={kind!r}`")


def write_value(key: str, value: object) -> bytes:
    """A value as it is kept.

    Raises `StoreError` with the place inside the value that is no JSON, and the remedy.
    """
    if value is None:
        raise StoreError(f"`{key}` cannot be kept: None says that there is no value; use `delete`")
    return msgspec.json.encode(_plain(value, _Place(key)))


def read_value(key: str, kept: bytes, kind: object = None) -> JSON:
    """What was kept, as a value of `kind` if that is a type.

    Raises `StoreError` when it is damaged, or does not fit the type.
    """
    try:
        value = msgspec.json.decode(kept)
    except msgspec.DecodeError as exc:
        raise StoreError(f"what is kept under `{key}` is damaged: {exc}; delete it, or put it anew") from exc
    if kind is None:
        return value
    try:
        return shape(kind).read(value)
    except SchemaError as exc:
        raise StoreError(f"what is kept under `{key}` is of another type: {exc}; read it without one") from exc


def same(key: str, kept: bytes, other: bytes) -> bool:
    """Whether both are the same JSON, in whatever order its objects have their keys; `1` and `1.0` are two.

    Raises `StoreError` when what is kept is damaged.
    """
    return kept == other or _sorted(key, kept) == _sorted(key, other)


def _sorted(key: str, kept: bytes) -> bytes:
    return msgspec.json.encode(read_value(key, kept), order="sorted")


def _bytes(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise StoreError(f"the {what} {text!r} holds half a character (a lone surrogate); give whole text") from exc


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where in a value we are."""

    key: str
    path: str = "value"
    depth: int = 0

    def inside(self, step: str) -> _Place:
        if self.depth >= DEEPEST:
            # the path itself would be as long as it is useless
            raise StoreError(f"`{self.key}` cannot be kept: it is nested deeper than {DEEPEST} levels, or holds itself")
        return _Place(self.key, self.path + step, self.depth + 1)

    def fault(self, words: str) -> StoreError:
        return StoreError(f"`{self.key}` cannot be kept: `{self.path}` {words}")


def _plain(value: object, place: _Place) -> JSON:
    match value:
        case None | bool():
            return value
        case enum.Enum():
            return _plain(value.value, place)
        # subclasses of the plain types (numpy's float, Markup) become plain themselves
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise place.fault(f"is {value!r}, which JSON does not know; give a finite number, or None")
            return float(value)
        case str():
            return _bytes(value, f"text at `{place.path}` of `{place.key}`").decode()
        case list() | tuple():
            return [_plain(item, place.inside(f"[{index}]")) for index, item in enumerate(value)]
        case dict():
            return dict(_items(value, place))
        case _:
            return _shaped(value, place)


def _items(value: dict[object, object], place: _Place) -> Iterator[tuple[str, JSON]]:
    for name, item in value.items():
        if not isinstance(name, str):
            raise place.fault(f"has the key {name!r}; keys of objects are text in JSON")
        _bytes(name, f"key of `{place.path}` of `{place.key}`")
        yield name, _plain(item, place.inside(f".{name}"))


def _shaped(value: object, place: _Place) -> JSON:
    """What is no JSON itself, but has a shape."""
    kind = type(value)
    if not (dataclasses.is_dataclass(kind) or isinstance(value, msgspec.Struct) or hasattr(kind, "model_fields")):
        raise place.fault(f"is a `{kind.__name__}`, which is no JSON; {_remedy(value)}")
    try:
        written: JSON = shape(kind).write(value)
    except WiringError as exc:
        raise place.fault(f"is a `{kind.__name__}` that has no JSON: {exc}") from exc
    except (AttributeError, TypeError, ValueError) as exc:
        raise place.fault(f"is a `{kind.__name__}` with a field of another type than it declares: {exc}") from exc
    return _plain(written, place)


def _remedy(value: object) -> str:
    if hasattr(value, "isoformat"):
        return "write `.isoformat()`, or put it into a dataclass"
    if isinstance(value, set | frozenset):
        return "write `sorted(…)`"
    return "give JSON or a dataclass"
