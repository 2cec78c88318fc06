"""Kinds of single values: text, numbers, true or false, dates and the like, and choices.

Text is never taken for a number nor a number for text, and `true` is no integer. Two
spellings of JSON are the same number: an integer may come as `3.0`, a float as `3`.
"""

from __future__ import annotations

import datetime
import enum
import math
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import ClassVar

import msgspec

from bigbrain.jsonvalue import JSON
from bigbrain.schemas.kinds import Defs, Faults, Place, shown

MOST_OPTIONS = 20
"""How many options of a choice a message lists."""

_DECIMAL = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Anything:
    """Any JSON value, left as it is."""

    accepts: ClassVar[frozenset[type]] = frozenset({str, int, float, bool, NoneType, list, dict})
    made: ClassVar[tuple[type, ...]] = (object,)
    wanted: ClassVar[str] = "any JSON value"

    def schema(self, _defs: Defs) -> dict[str, JSON]:
        return {}

    def read(self, value: JSON, _place: Place, _faults: Faults) -> JSON:
        return value

    def write(self, value: JSON) -> JSON:
        return value


@dataclass(frozen=True)
class Plain:
    """A value that is the same in JSON and in Python."""

    cls: type
    name: str
    wanted: str

    @property
    def accepts(self) -> frozenset[type]:
        return frozenset({self.cls})

    @property
    def made(self) -> tuple[type, ...]:
        return (self.cls,)

    def schema(self, _defs: Defs) -> dict[str, JSON]:
        return {"type": self.name}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        return value if isinstance(value, self.cls) else faults.expected(self.wanted, value, place)

    def write(self, value: JSON) -> JSON:
        return value


TEXT = Plain(str, "string", "text")
BOOLEAN = Plain(bool, "boolean", "true or false")
NULL = Plain(NoneType, "null", "null")


@dataclass(frozen=True)
class Integer:
    """A whole number."""

    accepts: ClassVar[frozenset[type]] = frozenset({int})
    made: ClassVar[tuple[type, ...]] = (int,)
    wanted: ClassVar[str] = "an integer"

    def schema(self, _defs: Defs) -> dict[str, JSON]:
        return {"type": "integer"}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return faults.expected(self.wanted, value, place)

    def write(self, value: JSON) -> JSON:
        return value


@dataclass(frozen=True)
class Number:
    """A finite number."""

    accepts: ClassVar[frozenset[type]] = frozenset({float})
    made: ClassVar[tuple[type, ...]] = (float,)
    wanted: ClassVar[str] = "a number"

    def schema(self, _defs: Defs) -> dict[str, JSON]:
        return {"type": "number"}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        return faults.expected(self.wanted, value, place)

    def write(self, value: JSON) -> JSON:
        return float(value)


@dataclass(frozen=True)
class Written:
    """A value that JSON carries as text of a known form."""

    cls: type
    wanted: str
    form: str
    parse: Callable[[str], object]
    print: Callable[[JSON], str]

    accepts: ClassVar[frozenset[type]] = frozenset({str})

    @property
    def made(self) -> tuple[type, ...]:
        return (self.cls,)

    def schema(self, _defs: Defs) -> dict[str, JSON]:
        return {"type": "string", "format": self.form} if self.form else {"type": "string"}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            try:
                return self.parse(value)
            except (ValueError, ArithmeticError, msgspec.ValidationError):
                pass
        return faults.expected(self.wanted, value, place)

    def write(self, value: JSON) -> JSON:
        return self.print(value)


@dataclass(frozen=True)
class Exact(Written):
    """A decimal number: text keeps its digits, and a bare JSON number is taken as well."""

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = repr(value)
        return super().read(value, place, faults)


def _read_decimal(text: str) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise ValueError(text)
    return Decimal(text)


def _read_moment(text: str) -> datetime.datetime:
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("without an offset nobody can say which moment is meant")
    return moment


WRITTEN: dict[object, Written] = {
    datetime.datetime: Written(
        datetime.datetime,
        "a date and time with its offset, such as `2026-05-01T12:00:00Z`",
        "date-time",
        _read_moment,
        lambda value: str(value.isoformat()),
    ),
    datetime.date: Written(
        datetime.date,
        "a date such as `2026-05-01`",
        "date",
        datetime.date.fromisoformat,
        lambda value: str(value.isoformat()),
    ),
    datetime.time: Written(
        datetime.time,
        "a time such as `12:00:00`",
        "time",
        datetime.time.fromisoformat,
        lambda value: str(value.isoformat()),
    ),
    datetime.timedelta: Written(
        datetime.timedelta,
        "a duration such as `PT1H30M`",
        "duration",
        lambda text: msgspec.convert(text, datetime.timedelta),
        lambda value: str(msgspec.to_builtins(value)),
    ),
    uuid.UUID: Written(uuid.UUID, "a UUID", "uuid", uuid.UUID, str),
    Decimal: Exact(Decimal, 'a decimal number as text, such as "12.50"', "", _read_decimal, str),
}
"""Python's types that JSON carries as text."""


class Choice:
    """One of a fixed set of values: a `Literal` or an `Enum`, by its values.

    A text in another case is taken when it can mean only one of them.
    """

    def __init__(self, options: Sequence[tuple[JSON, object]]) -> None:
        """options: what JSON says and what it means, in the author's order."""
        self.options = [option for option, _ in options]
        self.accepts = frozenset(type(option) for option in self.options)
        self.made = tuple({type(meaning): None for _, meaning in options})
        listed = ", ".join(shown(option) for option in self.options[:MOST_OPTIONS])
        self._listed = listed if len(options) <= MOST_OPTIONS else f"{listed}, …"
        self.wanted = f"one of {self._listed}" if len(options) > 1 else listed
        self._meanings = {(type(option), option): meaning for option, meaning in options}
        self._folded: dict[str, list[object]] = {}
        for option, meaning in options:
            if isinstance(option, str):
                self._folded.setdefault(option.strip().casefold(), []).append(meaning)

    def schema(self, _defs: Defs) -> dict[str, JSON]:
        names = list(dict.fromkeys(_NAMES[type(option)] for option in self.options))
        return {"type": names[0] if len(names) == 1 else names, "enum": self.options}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, float) and value.is_integer() and float not in self.accepts:
            value = int(value)
        if not isinstance(value, list | dict):
            meaning = self._meanings.get((type(value), value), _NOTHING)
            if meaning is not _NOTHING:
                return meaning
        if isinstance(value, str):
            close = self._folded.get(value.strip().casefold(), [])
            if len(close) == 1:
                return close[0]
        return faults.add(place, f"{shown(value)} is {'not' if len(self.options) == 1 else 'none of'} {self._listed}")

    def write(self, value: JSON) -> JSON:
        return value.value if isinstance(value, enum.Enum) else value


_NOTHING = object()
_NAMES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
