"""From an author's annotation to a kind.

All faults of a type are found at once and raised as one `WiringError`, each with the
field and the remedy; the walk goes on past a fault with a kind that takes anything.
"""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import enum
import typing
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import marshmallow
import msgspec

from bigbrain.errors import WiringError
from bigbrain.jsonvalue import JSON
from bigbrain.schemas.containers import Many, Map, Row
from bigbrain.schemas.kinds import Kind
from bigbrain.schemas.limits import Noted, noted
from bigbrain.schemas.marshmallow import MarshmallowKind
from bigbrain.schemas.pydantic import PydanticKind, is_pydantic
from bigbrain.schemas.records import Field, Record
from bigbrain.schemas.scalars import BOOLEAN, NULL, TEXT, WRITTEN, Anything, Choice, Integer, Number
from bigbrain.schemas.unions import either

DEEPEST = 50
"""How deep annotations may nest; only an alias that contains itself goes deeper."""

_ANYTHING = Anything()
_SIMPLE: dict[object, Kind] = {
    str: TEXT,
    bool: BOOLEAN,
    int: Integer(),
    float: Number(),
    None: NULL,
    NoneType: NULL,
    Any: _ANYTHING,
    object: _ANYTHING,
    **WRITTEN,
}
_LISTS: dict[object, tuple[type, Callable[[list[JSON]], object]]] = {
    list: (list, list),
    abc.Sequence: (list, list),
    abc.MutableSequence: (list, list),
    abc.Iterable: (list, list),
    abc.Collection: (list, list),
    set: (set, set),
    abc.Set: (frozenset, frozenset),
    abc.MutableSet: (set, set),
    frozenset: (frozenset, frozenset),
}
_MAPS: tuple[object, ...] = (dict, abc.Mapping, abc.MutableMapping)
_QUALIFIERS: tuple[object, ...] = (typing.Required, typing.NotRequired, typing.Final)
_REMEDIES: dict[object, str] = {
    bytes: "use `str` and say in a `Doc` that it is base64",
    bytearray: "use `str` and say in a `Doc` that it is base64",
    complex: "use a dataclass with two floats",
    abc.Callable: "a model cannot write functions; leave it out",
    type: "use a `Literal` of names",
}
_REMEDY = (
    "use str, int, float, bool, None, Any, Literal, Enum, datetime, date, time, timedelta, Decimal, UUID, "
    "list, tuple, set, dict[str, …], a dataclass, TypedDict, msgspec Struct, marshmallow Schema or pydantic model"
)


class Annotations:
    """Reads annotations into kinds; `faults` collects what cannot be."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._classes: dict[object, Kind] = {}
        self._depth = 0

    def check(self) -> None:
        """Raises `WiringError` with every fault that was found."""
        if self.faults:
            raise WiringError(*self.faults)

    def kind(self, hint: object, where: str) -> Kind:
        """The kind of an annotation; `where` names it in faults."""
        if self._depth == DEEPEST:
            return self._fault(where, "contains itself through an alias; put a dataclass in between")
        self._depth += 1
        try:
            return self._kind(hint, where)
        finally:
            self._depth -= 1

    def _kind(self, hint: object, where: str) -> Kind:
        origin = get_origin(hint)
        if origin is None:
            return self._bare(hint, where)
        args = get_args(hint)
        if origin is Annotated:
            return self._annotated(args, where)
        if origin is Literal:
            return self._literal(args, where)
        if origin is Union or origin is UnionType:
            return self._union(args, where)
        if origin in _QUALIFIERS:
            return self.kind(args[0], where)
        if origin is tuple:
            return self._tuple(args, where)
        if origin in _LISTS:
            return self._many(origin, args[0], where)
        if origin in _MAPS:
            return self._map(args, where)
        if isinstance(origin, type) and dataclasses.is_dataclass(origin):
            return self._fault(where, f"`{hint}` is generic; write a class for just this type")
        return self._unknown(hint, where)

    def _bare(self, hint: object, where: str) -> Kind:
        if isinstance(hint, marshmallow.Schema):
            return self._foreign(hint)
        if not is_hashable(hint):
            return self._fault(where, f"`{hint}` is not a type; {_REMEDY}")
        if hint in _SIMPLE:
            return _SIMPLE[hint]
        for inner in ("__supertype__", "__value__"):  # a NewType, a `type` statement
            if not isinstance(hint, type) and hasattr(hint, inner):
                return self.kind(getattr(hint, inner), where)
        if hint is tuple or hint in _LISTS:
            return self._many(hint, Any, where)
        if hint in _MAPS:
            return Map(_ANYTHING)
        return self._class(hint, where) if isinstance(hint, type) else self._unknown(hint, where)

    def _class(self, cls: type, where: str) -> Kind:
        if issubclass(cls, marshmallow.Schema) or is_pydantic(cls):
            return self._foreign(cls)
        if issubclass(cls, enum.Enum) and not issubclass(cls, enum.Flag):
            return self._choice([(member.value, member) for member in cls], where)
        if cls not in self._classes:
            fields = _fields_of(cls)
            if fields is None:
                return self._unknown(cls, where)
            made = dict if typing.is_typeddict(cls) else cls
            record = Record(cls.__name__, made, dict if made is dict else cls, doc_of(cls))
            self._classes[cls] = record
            self._fill(record, cls, fields)
        return self._classes[cls]

    def _foreign(self, hint: object) -> Kind:
        if hint not in self._classes:
            try:
                made = PydanticKind(hint) if is_pydantic(hint) else MarshmallowKind(hint)
            except WiringError as exc:
                self.faults += exc.faults
                return _ANYTHING
            self._classes[hint] = made
        return self._classes[hint]

    def _fill(self, record: Record, cls: type, fields: tuple[Declared, ...]) -> None:
        try:
            # A class in a function is unknown to its module, but may still name itself.
            hints = get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
        except (NameError, TypeError) as exc:
            self._fault(cls.__name__, f"an annotation cannot be read ({exc}); define what it names at module level")
            return
        for name, hint in hints.items():
            if isinstance(hint, dataclasses.InitVar):
                self._fault(f"{cls.__name__}.{name}", "`InitVar` is not a field; make it one")
        # A union inside the class may hold the class itself, and needs to see by which field it is told apart.
        fixed = {
            declared.name: self.field(declared, hints[declared.name], cls.__name__)
            for declared in fields
            if _is_literal(hints[declared.name])
        }
        record.fields = tuple(fixed.values())
        record.fields = tuple(
            fixed.get(declared.name) or self.field(declared, hints[declared.name], cls.__name__) for declared in fields
        )

    def field(self, declared: Declared, hint: object, owner: str) -> Field:
        """The field of a class or the parameter of a function; a `Doc` goes before what else describes it."""
        kind = self.kind(hint, f"{owner}.{declared.name}")
        # A TypedDict whose annotations are text does not know of these itself.
        has_default = declared.has_default
        if get_origin(hint) in (typing.Required, typing.NotRequired):
            has_default = get_origin(hint) is typing.NotRequired
        default: JSON = None
        if isinstance(declared.default, str | int | float | enum.Enum):
            try:
                default = kind.write(declared.default)
            except (TypeError, ValueError, AttributeError):
                self._fault(f"{owner}.{declared.name}", f"the default {declared.default!r} is not {kind.wanted}")
        return Field(
            declared.key,
            declared.name,
            kind,
            has_default,
            default,
            "" if isinstance(kind, Noted) and kind.doc else declared.doc,
        )

    def _annotated(self, args: tuple[object, ...], where: str) -> Kind:
        kind, refused = noted(self.kind(args[0], where), args[1:])
        return self._fault(where, f"`{refused}` cannot limit {kind.wanted}; leave it out") if refused else kind

    def _literal(self, args: tuple[object, ...], where: str) -> Kind:
        return self._choice([(arg.value if isinstance(arg, enum.Enum) else arg, arg) for arg in args], where)

    def _choice(self, options: list[tuple[JSON, object]], where: str) -> Kind:
        for option, meaning in options:
            if not isinstance(option, str | int | float | NoneType):
                return self._fault(
                    where, f"the value of `{meaning!r}` is not text, a number, a bool or None; make it one"
                )
        return Choice(options) if options else self._fault(where, "has no values; give it some")

    def _union(self, args: tuple[object, ...], where: str) -> Kind:
        arms = tuple(self.kind(arg, where) for arg in args)
        if _ANYTHING in arms:
            return _ANYTHING
        remedy = (
            "cannot be told apart in JSON; let one be text, one a number, one a list or one an object, "
            "and give classes a `Literal` field of the same name with a value of their own"
        )
        return either(arms) or self._fault(where, f"{' and '.join(arm.wanted for arm in arms)} {remedy}")

    def _tuple(self, args: tuple[object, ...], where: str) -> Kind:
        if len(args) == 2 and args[1] is Ellipsis:
            return self._many(tuple, args[0], where)
        return Row(tuple(self.kind(arg, where) for arg in args))

    def _many(self, origin: object, item: object, where: str) -> Kind:
        cls, build = (tuple, tuple) if origin is tuple else _LISTS[origin]
        kind = self.kind(item, where)
        unique = cls in (set, frozenset)
        if unique and not all(made.__hash__ for made in kind.made):
            return self._fault(where, "a set cannot hold values that change; use a list or a frozen dataclass")
        return Many(kind, cls, build, unique)

    def _map(self, args: tuple[object, ...], where: str) -> Kind:
        if args[0] is not str:
            return self._fault(where, "the keys of a JSON object are text; use dict[str, …] or a list of a dataclass")
        return Map(self.kind(args[1], where))

    def _unknown(self, hint: object, where: str) -> Kind:
        remedy = _REMEDIES.get(get_origin(hint) or hint, _REMEDY)
        name = hint.__qualname__ if isinstance(hint, type) else str(hint)
        return self._fault(where, f"`{name}` has no JSON Schema; {remedy}")

    def _fault(self, where: str, what: str) -> Kind:
        self.faults.append(f"`{where}`: {what}")
        return _ANYTHING


@dataclasses.dataclass(frozen=True)
class Declared:
    """What a class or a function says of a field besides its type; `default` is for the schema."""

    name: str
    key: str
    has_default: bool = False
    default: object = None
    doc: str = ""


def _is_literal(hint: object) -> bool:
    return get_origin(get_args(hint)[0] if get_origin(hint) is Annotated else hint) is Literal


def is_hashable(hint: object) -> bool:
    """Whether an annotation can be a key; `Annotated` says so even when its metadata cannot."""
    try:
        hash(hint)
    except TypeError:
        return False
    return True


def doc_of(thing: object) -> str:
    """The first paragraph of the docstring, empty if it has none of its own."""
    doc = (getattr(thing, "__doc__", None) or "").strip()
    # A dataclass without a docstring is given its signature as one.
    if isinstance(thing, type) and doc.startswith(f"{thing.__name__}("):
        return ""
    return " ".join(doc.partition("\n\n")[0].split())


def _fields_of(cls: type) -> tuple[Declared, ...] | None:
    """The fields in their order, None if the class is not one of those that have fields."""
    if dataclasses.is_dataclass(cls):
        return tuple(_of_dataclass(field) for field in dataclasses.fields(cls) if field.init)
    if issubclass(cls, msgspec.Struct):
        return tuple(
            Declared(field.name, field.encode_name, not field.required, field.default)
            for field in msgspec.structs.fields(cls)
        )
    if typing.is_typeddict(cls):
        optional: frozenset[str] = getattr(cls, "__optional_keys__", frozenset())
        return tuple(Declared(name, name, name in optional) for name in cls.__annotations__)
    return None


def _of_dataclass(field: dataclasses.Field[JSON]) -> Declared:
    has_default = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    doc = field.metadata.get("description", "")
    return Declared(field.name, field.name, has_default, field.default, doc)
