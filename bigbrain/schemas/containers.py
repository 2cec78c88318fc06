"""Kinds that hold many values of another kind: lists, sets, tuples and maps.

A list or an object that comes as a string of its JSON is unwrapped once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from bigbrain.jsonvalue import JSON
from bigbrain.schemas.kinds import Defs, Faults, Kind, Place, unwrapped


@dataclass(frozen=True)
class Many:
    """A list, a set or a tuple of any length; `build` makes it of the items."""

    item: Kind
    cls: type
    build: Callable[[list[JSON]], object]
    unique: bool = False

    accepts: ClassVar[frozenset[type]] = frozenset({list})
    wanted: ClassVar[str] = "a list"

    @property
    def made(self) -> tuple[type, ...]:
        return (self.cls,)

    def schema(self, defs: Defs) -> dict[str, JSON]:
        unique = {"uniqueItems": True} if self.unique else {}
        return {"type": "array", "items": self.item.schema(defs), **unique}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        if not isinstance(value, list):
            return faults.expected(self.wanted, value, place)
        before = faults.count
        items = [self.item.read(item, (place, index), faults) for index, item in enumerate(value)]
        return self.build(items) if faults.count == before else None

    def write(self, value: JSON) -> JSON:
        items = [self.item.write(item) for item in value]
        # A set has no order of its own; without one the same value would be written in many ways.
        return sorted(items, key=msgspec.json.encode) if self.unique else items


@dataclass(frozen=True)
class Row:
    """A tuple of fixed length, each place with its own kind."""

    items: tuple[Kind, ...]

    accepts: ClassVar[frozenset[type]] = frozenset({list})
    made: ClassVar[tuple[type, ...]] = (tuple,)

    @property
    def wanted(self) -> str:
        return f"a list of {len(self.items)}: {', '.join(item.wanted for item in self.items)}"

    def schema(self, defs: Defs) -> dict[str, JSON]:
        count = len(self.items)
        items = [item.schema(defs) for item in self.items]
        return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        if not isinstance(value, list) or len(value) != len(self.items):
            return faults.expected(self.wanted, value, place)
        pairs: Iterable[tuple[Kind, JSON]] = zip(self.items, value, strict=True)
        return tuple(kind.read(item, (place, index), faults) for index, (kind, item) in enumerate(pairs))

    def write(self, value: JSON) -> JSON:
        return [kind.write(item) for kind, item in zip(self.items, value, strict=True)]


@dataclass(frozen=True)
class Map:
    """An object with keys of the model's own."""

    item: Kind

    accepts: ClassVar[frozenset[type]] = frozenset({dict})
    made: ClassVar[tuple[type, ...]] = (dict,)
    wanted: ClassVar[str] = "an object"

    def schema(self, defs: Defs) -> dict[str, JSON]:
        return {"type": "object", "additionalProperties": self.item.schema(defs)}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        if not isinstance(value, dict):
            return faults.expected(self.wanted, value, place)
        return {str(key): self.item.read(item, (place, str(key)), faults) for key, item in value.items()}

    def write(self, value: JSON) -> JSON:
        return {key: self.item.write(item) for key, item in value.items()}
