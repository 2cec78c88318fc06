"""What `Annotated` adds to a kind: a description for the model, and limits that are checked.

Limits are the attributes `ge`, `gt`, `le`, `lt`, `multiple_of`, `min_length`, `max_length`
and `pattern`, as `msgspec.Meta` and the `annotated_types` have them; a description is
`Doc("…")`, or `msgspec.Meta(description="…")`. Other annotations are not ours and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import NoneType

from bigbrain.jsonvalue import JSON
from bigbrain.schemas.kinds import Defs, Faults, Kind, Place, shown


@dataclass(frozen=True)
class Doc:
    """What a field means, told to the model: `Annotated[str, Doc("the chosen capability")]`."""

    text: str


@dataclass(frozen=True)
class Noted:
    """A kind with a description and limits."""

    kind: Kind
    doc: str = ""
    limits: dict[str, JSON] = field(default_factory=dict)

    @property
    def accepts(self) -> frozenset[type]:
        return self.kind.accepts

    @property
    def made(self) -> tuple[type, ...]:
        return self.kind.made

    @property
    def wanted(self) -> str:
        return self.kind.wanted

    def schema(self, defs: Defs) -> dict[str, JSON]:
        schema = {**self.kind.schema(defs), **self.limits}
        return {**schema, "description": self.doc} if self.doc else schema

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        before = faults.count
        read = self.kind.read(value, place, faults)
        if faults.count > before or read is None:
            return read
        for keyword, bound in self.limits.items():
            kept, words = _CHECKS[keyword]
            if not kept(read, bound):
                faults.add(place, f"{shown(value)} is not {words} {shown(bound)}")
        return read

    def write(self, value: JSON) -> JSON:
        return self.kind.write(value)


def noted(kind: Kind, metadata: tuple[object, ...]) -> tuple[Kind, str]:
    """The kind with what the metadata add, and the limit that it cannot have, empty if there is none."""
    doc = ""
    limits: dict[str, JSON] = {}
    for meta in metadata:
        doc = _doc(meta) or doc
        for name in (*_NUMERIC, "min_length", "max_length", "pattern"):
            bound = getattr(meta, name, None)
            # `min_length=0` is the default of `annotated_types.Len` and says nothing.
            if bound is None or (name == "min_length" and bound == 0):
                continue
            keyword = _keyword(name, kind.accepts - {NoneType})
            if not keyword:
                return kind, name
            limits[keyword] = bound
    return (Noted(kind, doc, limits) if doc or limits else kind), ""


def _doc(meta: object) -> str:
    if isinstance(meta, Doc):
        return meta.text
    description = getattr(meta, "description", None)
    return description if isinstance(description, str) else ""


def _keyword(name: str, accepts: frozenset[type]) -> str:
    if name in _NUMERIC:
        return _NUMERIC[name] if accepts and accepts <= {int, float} else ""
    if name == "pattern":
        return name if accepts == {str} else ""
    for cls, things in ((str, "Length"), (list, "Items"), (dict, "Properties")):
        if accepts == {cls}:
            return f"{name[:3]}{things}"
    return ""


_NUMERIC = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}


def _at_least(value: JSON, bound: JSON) -> bool:
    return len(value) >= int(bound)


def _at_most(value: JSON, bound: JSON) -> bool:
    return len(value) <= int(bound)


_CHECKS: dict[str, tuple[Callable[[JSON, JSON], bool], str]] = {
    "minimum": (lambda value, bound: bool(value >= bound), "at least"),
    "exclusiveMinimum": (lambda value, bound: bool(value > bound), "more than"),
    "maximum": (lambda value, bound: bool(value <= bound), "at most"),
    "exclusiveMaximum": (lambda value, bound: bool(value < bound), "less than"),
    "multipleOf": (lambda value, bound: value % bound == 0, "a multiple of"),
    "pattern": (lambda value, bound: re.search(bound, value) is not None, "text that matches"),
    "minLength": (_at_least, "of a length of at least"),
    "maxLength": (_at_most, "of a length of at most"),
    "minItems": (_at_least, "of a length of at least"),
    "maxItems": (_at_most, "of a length of at most"),
    "minProperties": (_at_least, "of a size of at least"),
    "maxProperties": (_at_most, "of a size of at most"),
}
