"""Finds the JSON in a model's text: alone, in a fence, or between sentences.

Strict JSON is taken as it is. Otherwise the text is searched for objects and lists that
stand on their own. Fences need no rule: the search starts at a bracket and knows
strings, so backticks and tildes are just text between or inside. A bracket that begins
no JSON (`Use {name}`) is passed over; one whose JSON breaks is passed over with all that
it holds, because a part of a broken answer is not the answer; JSON that is cut off at
the end of the text is an error, never completed. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar, overload

import marshmallow
import msgspec

from bigbrain.errors import SchemaError
from bigbrain.jsonvalue import JSON
from bigbrain.schemas.kinds import shown
from bigbrain.schemas.reader import DEEPEST, Broken, Reader
from bigbrain.schemas.shape import Shape, shape

LONGEST = 1_000_000
"""Characters of a text that is searched; an answer that a type can hold is far shorter."""

MOST_TRIED = 20
"""How many values of one text are tried against a type."""

T = TypeVar("T")

_OPENING = re.compile(r"[{\[]")
_BALANCE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)


def parse(text: str) -> JSON:
    """The JSON value in a model's text: all of it, else the first object, else the first list.

    Empty ones and lists without objects (`[1]` is a footnote more often than an answer) come last.

    Raises `SchemaError` with the position and the text around it when there is none, when
    it is cut off, nested deeper than 100 levels or longer than a million characters.
    """
    return _values(text)[0]


@overload
def extract(text: str, kind: type[marshmallow.Schema] | marshmallow.Schema) -> JSON: ...
@overload
def extract(text: str, kind: type[T] | Shape[T]) -> T: ...
@overload
def extract(text: str, kind: object) -> JSON: ...
def extract(text: str, kind: object) -> JSON:
    """The value of a type in a model's text; of several objects the first that fits.

    Raises `SchemaError` when there is no JSON, or none fits: then with the faults of the one that `parse` gives.
    """
    wanted: Shape[JSON] = kind if isinstance(kind, Shape) else shape(kind)
    values = _values(text)
    for value in values[:MOST_TRIED]:
        try:
            return wanted.read(value)
        except SchemaError:
            continue
    return wanted.read(values[0])


def values_in(text: str) -> Iterator[JSON]:
    """The value that a text is as a whole, else every object and list in it that stands on its own, in order.

    Looked for one after the other, so that what follows the last one that is wanted may be broken. Raises `SchemaError`
    as `parse` does, where it gets to the fault.
    """
    if len(text) > LONGEST:
        raise SchemaError(f"the answer has {len(text)} characters; more than {LONGEST} are not searched for JSON")
    bare = text.strip().lstrip("\ufeff").strip()
    try:
        value = msgspec.json.decode(bare)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        yield from _found(bare)
        return
    if _is_deep(value, bare):
        raise SchemaError(f"the JSON is nested deeper than {DEEPEST} levels")
    yield value


def _values(text: str) -> list[JSON]:
    """The values in the text, the likeliest first; at least one."""
    values = list(values_in(text))
    return sorted(values, key=_unlikely) if len(values) > 1 else values


def _found(text: str) -> Iterator[JSON]:
    reader = Reader(text)
    found = False
    fault: Broken | None = None
    opening = _OPENING.search(text)
    while opening is not None:
        start = opening.start()
        try:
            value = reader.read_at(start)
        except Broken as broken:
            if broken.cut and (broken.begun or not found):
                raise _cut_off(text, start) from broken
            fault = fault if fault is not None and (fault.begun or not broken.begun) else broken
            end = _resumed(text, start, reader, broken)
        else:
            found, end = True, reader.at
            yield value
        opening = _OPENING.search(text, end)
    if not found:
        raise _no_json(text, fault)


def _resumed(text: str, start: int, reader: Reader, broken: Broken) -> int:
    """Where to search on: behind the whole of what had begun as JSON, else behind the opening brackets."""
    if broken.cut:
        return len(text)
    if not broken.begun:
        return max(start + 1, reader.first)
    depth = 0
    for token in _BALANCE.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return len(text)


def _unlikely(value: JSON) -> bool:
    if isinstance(value, dict):
        return not value
    return not any(isinstance(item, dict) for item in value)


def _is_deep(value: JSON, text: str) -> bool:
    if not isinstance(value, list | dict) or text.count("{") + text.count("[") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        inner = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
        level = [part for part in inner if isinstance(part, list | dict)]
        if not level:
            return False
    return True


def _cut_off(text: str, start: int) -> SchemaError:
    return SchemaError(
        f"the JSON that begins at character {start} is cut off at the end of the answer, after {shown(text[-40:])}"
    )


def _no_json(text: str, fault: Broken | None) -> SchemaError:
    if not text:
        return SchemaError("the answer is empty; JSON was expected")
    if fault is None or not fault.begun:
        return SchemaError(f"the answer holds no JSON object or list; it begins with {shown(text[:58])}")
    around = shown(text[max(0, fault.at - 20) : fault.at + 20])
    return SchemaError(f"the JSON is broken at character {fault.at}, near {around}: expected {fault.wanted}")
