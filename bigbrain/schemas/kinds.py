"""What every kind of value can do: say its JSON Schema, read JSON, write JSON.

A kind is the compiled form of one annotation (`list[Step]`, `str | None`). Reading
never stops at the first fault: it notes the fault with its place and goes on, so
one answer to the model names all of them. What is read after a fault is thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeAlias

import msgspec

from bigbrain.errors import SchemaError
from bigbrain.jsonvalue import JSON

MOST_FAULTS = 20
"""A model repairs a handful of faults at a time; more would only fill its context."""

PREVIEW = 60
"""How many characters of a wrong value are shown."""

Place: TypeAlias = "tuple[Place, str | int] | None"
"""Where a value stands: the place around it and its key or index; None at the top."""


class Kind(Protocol):
    """One kind of value.

    The values that it reads are typed as `JSON` because only `Shape` knows the author's type.
    """

    @property
    def accepts(self) -> frozenset[type]:
        """The Python classes of the decoded JSON that it is told apart by: `str`, `int`, `float`, `bool`,
        `NoneType`, `list`, `dict`."""

    @property
    def made(self) -> tuple[type, ...]:
        """The classes of the values that it reads."""

    @property
    def wanted(self) -> str:
        """What it expects, in words that a model understands: `a list`."""

    def schema(self, defs: Defs, /) -> dict[str, JSON]:
        """Its JSON Schema; what recurs goes to `defs`."""

    def read(self, value: JSON, place: Place, faults: Faults, /) -> JSON:
        """The value that the JSON stands for; None after a fault was noted."""

    def write(self, value: JSON, /) -> JSON:
        """The JSON of a value, which is trusted to be of this kind."""


class Faults:
    """What is wrong with one answer, in the order in which it was found."""

    __slots__ = ("count", "lines")

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[str] = []

    def add(self, place: Place, what: str) -> None:
        """Notes one fault; past the first `MOST_FAULTS` they are only counted."""
        self.count += 1
        if self.count <= MOST_FAULTS:
            path = write_place(place)
            self.lines.append(f"{path}: {what}" if path else what)

    def expected(self, wanted: str, value: JSON, place: Place) -> None:
        """Notes that a value is not what was wanted."""
        self.add(place, f"expected {wanted}, got {shown(value)}")

    def error(self, name: str) -> SchemaError:
        """The error that lists the faults."""
        rest = self.count - len(self.lines)
        more = [f"and {rest} more"] if rest else []
        return SchemaError("\n- ".join([f"the JSON does not fit `{name}`:", *self.lines, *more]))


class Defs:
    """The `$defs` of one schema: only what contains itself is written there, the rest stands where it is used."""

    def __init__(self) -> None:
        self.schemas: dict[str, JSON] = {}
        self._names: dict[Hashable, str] = {}
        self._open: set[Hashable] = set()

    def place(self, key: Hashable, name: str, write: Callable[[], dict[str, JSON]]) -> dict[str, JSON]:
        """The schema of what `key` stands for, or a reference to it when it is met inside itself.

        name: what it is called in `$defs`, made unique here.
        """
        if key in self._open or key in self._names:
            return {"$ref": f"#/$defs/{self._name(key, name)}"}
        self._open.add(key)
        schema = write()
        self._open.discard(key)
        if key not in self._names:
            return schema
        self.schemas[self._names[key]] = schema
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def adopt(self, schema: dict[str, JSON]) -> dict[str, JSON]:
        """A schema that brings `$defs` of its own: each stands where it is used, unless it contains itself."""
        own = schema.get("$defs", {})

        def moved(node: dict[str, JSON]) -> dict[str, JSON]:
            rest = {key: _each(key, value, moved) for key, value in node.items() if key not in _NOT_MOVED}
            if "$ref" not in node:
                return rest
            name = node["$ref"].removeprefix("#/$defs/")
            return {**self.place((id(own), name), name, lambda: moved(own[name])), **rest}

        return moved(schema)

    def _name(self, key: Hashable, name: str) -> str:
        taken = set(self._names.values())
        if key not in self._names:
            number = 1
            while (unique := name if number == 1 else f"{name}_{number}") in taken:
                number += 1
            self._names[key] = unique
        return self._names[key]


def write_place(place: Place) -> str:
    """The path of a place: `steps[2].kind`; empty at the top."""
    keys: list[str] = []
    while place is not None:
        place, key = place
        if isinstance(key, int):
            keys.append(f"[{key}]")
        else:
            keys.append(f".{key}" if key.isidentifier() else f"[{shown(key)}]")
    return "".join(reversed(keys)).removeprefix(".")


def shown(value: JSON) -> str:
    """A value in a message: its JSON text, cut where it is long."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= PREVIEW else f"{text[: PREVIEW - 1]}…"


def unwrapped(value: str) -> JSON:
    """What a string holds as JSON text, the string itself if it holds none.

    Models at times write a list or an object as a string of its JSON; it is unwrapped once.
    """
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError):
        return value


_NOT_MOVED = {"$defs", "$ref", "discriminator"}
"""Keywords that `adopt` resolves, and OpenAPI's hint at a union, which JSON Schema does not know."""

_NAMED = {"properties", "patternProperties", "dependentSchemas"}
_LISTED = {"anyOf", "oneOf", "allOf", "prefixItems"}
_SINGLE = {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}


def _each(keyword: str, value: JSON, change: Callable[[dict[str, JSON]], dict[str, JSON]]) -> JSON:
    """A keyword's value with `change` made to every schema in it."""
    if keyword in _NAMED:
        return {name: change(inner) if isinstance(inner, dict) else inner for name, inner in value.items()}
    if keyword in _LISTED:
        return [change(inner) if isinstance(inner, dict) else inner for inner in value]
    return change(value) if keyword in _SINGLE and isinstance(value, dict) else value
