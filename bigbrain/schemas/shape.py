"""The compiled form of an author's type: what a model is told, and how its answer is read."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Generic, TypeVar, overload

import marshmallow

from bigbrain.jsonvalue import JSON
from bigbrain.schemas.annotations import Annotations, doc_of, is_hashable
from bigbrain.schemas.kinds import Defs, Faults, Kind
from bigbrain.schemas.strict import write_strict

T = TypeVar("T")

WRAP = "value"
"""The key under which a model writes what is not an object; providers take only objects at the top."""


class Shape(Generic[T]):
    """How values of one type look in JSON. Its schemas are shared: read them, do not change them."""

    def __init__(self, kind: Kind, *, name: str, description: str = "") -> None:
        """name: any text; what OpenAI does not allow in a name is replaced (letters, digits, `_`, `-`; 64 at most)."""
        self._kind = kind
        self.name = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:64].strip("_") or "answer"
        self.description = description
        schema = _write_root(kind)
        self._wrapped = schema.get("type") != "object"
        if self._wrapped:
            schema = _wrapped(schema)
        self.schema: dict[str, JSON] = schema
        """The JSON Schema, of an object: what is not one stands under `value`."""

    @cached_property
    def strict(self) -> dict[str, JSON] | None:
        """The schema as strict modes accept it; None if the type has no strict form (`dict[str, T]`, `Any`)."""
        return write_strict(self.schema)

    @property
    def recursive(self) -> bool:
        """Whether the type contains itself, which Anthropic's strict mode does not take."""
        return "$defs" in self.schema

    def read(self, value: JSON) -> T:
        """The value that decoded JSON stands for, fully checked.

        Raises `SchemaError` with every fault, each with its path and what was expected.
        """
        if self._wrapped and isinstance(value, dict) and WRAP in value:
            value = value[WRAP]
        faults = Faults()
        try:
            read: JSON = self._kind.read(value, None, faults)
        except RecursionError:
            faults.add(None, "is nested too deep")
        if faults.count:
            raise faults.error(self.name)
        found: T = read
        return found

    def write(self, value: T) -> JSON:
        """The JSON of a value, in the form that `read` takes. The value is trusted to be of the type."""
        written = self._kind.write(value)
        return {WRAP: written} if self._wrapped else written

    def __repr__(self) -> str:
        return f"<Shape {self.name}>"


@overload
def shape(kind: type[marshmallow.Schema] | marshmallow.Schema) -> Shape[JSON]: ...
@overload
def shape(kind: type[T]) -> Shape[T]: ...
@overload
def shape(kind: object) -> Shape[JSON]: ...
def shape(kind: object) -> Shape[JSON]:
    """The shape of a type, a marshmallow Schema or a pydantic model; made once for each.

    Raises `WiringError` with every field that has no JSON Schema, and the remedy.
    """
    return _kept(kind) if is_hashable(kind) else _shape(kind)


def _shape(kind: object) -> Shape[JSON]:
    named = type(kind) if isinstance(kind, marshmallow.Schema) else kind
    name = named.__name__ if isinstance(named, type) and not hasattr(kind, "__origin__") else "answer"
    annotations = Annotations()
    compiled = annotations.kind(kind, name)
    annotations.check()
    return Shape(compiled, name=name, description=doc_of(named) if isinstance(named, type) else "")


_kept = lru_cache(maxsize=1024)(_shape)
"""Types are made at import, so a brain has a bounded number of them; a loop that makes new ones is kept in bounds."""


def _write_root(kind: Kind) -> dict[str, JSON]:
    """The schema of a kind with its `$defs`; the root itself is written out, since providers take no `$ref` there."""
    defs = Defs()
    schema = kind.schema(defs)
    if "$ref" in schema:
        schema = {**schema, **defs.schemas[schema["$ref"].removeprefix("#/$defs/")]}
        del schema["$ref"]
    return {**schema, "$defs": defs.schemas} if defs.schemas else schema


def _wrapped(schema: dict[str, JSON]) -> dict[str, JSON]:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, JSON] = {"type": "object", "properties": {WRAP: inner}, "required": [WRAP]}
    return {**outer, "$defs": schema["$defs"]} if "$defs" in schema else outer
