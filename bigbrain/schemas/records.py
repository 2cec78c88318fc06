"""Objects with named fields, and unions of them.

What is missing: a field with a default takes it, a field that may be null is null,
any other is a fault. `null` is a value where the field's type has `None`; elsewhere it
counts as missing, because strict mode makes a model say something for every field.
Keys that no field has are ignored (models add remarks), but named in the fault when a
required field is missing and a key looks like it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import NoneType
from typing import ClassVar

from bigbrain.jsonvalue import JSON
from bigbrain.schemas.kinds import Defs, Faults, Kind, Place, shown, unwrapped
from bigbrain.schemas.scalars import Anything, Choice


@dataclass(frozen=True)
class Field:
    """One field: its key in JSON, its name in Python, its kind.

    has_default: Python itself knows what to take when it is missing. default: the JSON of that, if it is simple.
    A kind that takes anything takes null too, but is not optional for that.
    """

    key: str
    name: str
    kind: Kind
    has_default: bool = False
    default: JSON = None
    doc: str = ""

    @cached_property
    def nullable(self) -> bool:
        """Whether `null` is a value of the field."""
        return NoneType in self.kind.accepts

    @cached_property
    def required(self) -> bool:
        """Whether an answer without the field is at fault."""
        return not self.has_default and not (self.nullable and not isinstance(self.kind, Anything))

    def schema(self, defs: Defs) -> dict[str, JSON]:
        """The field's JSON Schema with its description and its default."""
        schema = self.kind.schema(defs)
        if self.doc:
            schema = {**schema, "description": self.doc}
        return schema if self.default is None else {**schema, "default": self.default}


class Record:
    """An object with named fields.

    The fields are set after it is made, because a field may hold the record itself.
    """

    accepts: ClassVar[frozenset[type]] = frozenset({dict})
    wanted: ClassVar[str] = "an object"

    def __init__(self, name: str, cls: type, build: Callable[..., object], doc: str = "") -> None:
        """cls: the class of the values. build: makes one of the fields by name; without it, they stay a dict."""
        self.name = name
        self.made: tuple[type, ...] = (cls,)
        self.doc = doc
        self.fields: tuple[Field, ...] = ()
        self.tags: set[str] = set()
        self._cls = cls
        self._build = build

    def schema(self, defs: Defs) -> dict[str, JSON]:
        return defs.place(id(self), self.name, lambda: self._body(defs))

    def _body(self, defs: Defs) -> dict[str, JSON]:
        # OpenAI refuses a union whose objects begin with the same key unless that key tells them apart.
        fields = sorted(self.fields, key=lambda field: field.key not in self.tags)
        schema: dict[str, JSON] = {
            "type": "object",
            "properties": {field.key: field.schema(defs) for field in fields},
            "required": [field.key for field in fields if field.required or field.key in self.tags],
        }
        return {**schema, "description": self.doc} if self.doc else schema

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        if not isinstance(value, dict):
            return faults.expected(self.wanted, value, place)
        before = faults.count
        found: dict[str, JSON] = {}
        for field in self.fields:
            item = value.get(field.key, _MISSING)
            if item is _MISSING or (item is None and field.has_default and not field.nullable):
                if field.required:
                    self._missing(field, value, place, faults)
                elif not field.has_default:
                    found[field.name] = None
            else:
                found[field.name] = field.kind.read(item, (place, field.key), faults)
        return self._made_of(found, place, faults) if faults.count == before else None

    def _made_of(self, found: dict[str, JSON], place: Place, faults: Faults) -> JSON:
        try:
            return self._build(**found)
        except ValueError as exc:  # what the author's own `__post_init__` refuses
            return faults.add(place, str(exc) or type(exc).__name__)

    def _missing(self, field: Field, value: dict[str, JSON], place: Place, faults: Faults) -> None:
        known = {field.key for field in self.fields}
        extra = {_folded(key): key for key in value if key not in known}
        close = difflib.get_close_matches(_folded(field.key), extra, n=1)
        hint = f"; is {shown(extra[close[0]])} meant? The key is {shown(field.key)}" if close else ""
        faults.add((place, field.key), f"missing, expected {field.kind.wanted}{hint}")

    def write(self, value: JSON) -> JSON:
        if isinstance(value, dict):
            return {field.key: field.kind.write(value[field.name]) for field in self.fields if field.name in value}
        return {field.key: field.kind.write(getattr(value, field.name)) for field in self.fields}


class Tagged:
    """One of several records, told apart by a field whose value is fixed in each."""

    accepts: ClassVar[frozenset[type]] = frozenset({dict})

    def __init__(self, key: str, records: tuple[Record, ...], choices: tuple[Choice, ...]) -> None:
        """key: the field that tells them apart. choices: what it may be in each of the records."""
        self.records = records
        self.made = tuple({cls: None for record in records for cls in record.made})
        self._key = key
        options = {option: index for index, choice in enumerate(choices) for option in choice.options}
        self._which = Choice(list(options.items()))
        self._names = tuple(_name_of(record, key) for record in records)
        self._indexes = options
        self.wanted = f"an object whose {shown(key)} is {self._which.wanted}"
        for record in records:
            record.tags.add(key)

    def schema(self, defs: Defs) -> dict[str, JSON]:
        return {"anyOf": [record.schema(defs) for record in self.records]}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        if not isinstance(value, dict):
            return faults.expected(self.wanted, value, place)
        if self._key not in value:
            return faults.add((place, self._key), f"missing, expected {self._which.wanted}")
        before = faults.count
        index = self._which.read(value[self._key], (place, self._key), faults)
        return self.records[index].read(value, place, faults) if faults.count == before else None

    def write(self, value: JSON) -> JSON:
        for record, name in zip(self.records, self._names, strict=True):
            if isinstance(value, record.made):
                tag = value.get(name) if isinstance(value, dict) else getattr(value, name)
                if self.records[self._indexes[self._which.write(tag)]] is record:
                    return record.write(value)
        raise TypeError(f"{type(value).__name__} is none of {', '.join(record.name for record in self.records)}")


_MISSING = object()


def _folded(key: str) -> str:
    return key.casefold().replace("_", "").replace("-", "").replace(" ", "")


def _name_of(record: Record, key: str) -> str:
    return next(field.name for field in record.fields if field.key == key)
