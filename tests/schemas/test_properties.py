"""Random types and random values of them: what is written is read back, and strict modes take it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bigbrain.errors import SchemaError
from bigbrain.schemas import extract, parse, shape
from tests.schemas.examples import Cat, Dog, Home, Plan, Step
from tests.schemas.strict_server import refusals, valid


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
zones = st.just(dt.UTC) | st.integers(-12, 12).map(lambda hours: dt.timezone(dt.timedelta(hours=hours)))
Pair = tuple[Any, st.SearchStrategy[Any]]
"""A type and values of it."""

LEAVES: list[Pair] = [
    (str, text),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (Color, st.sampled_from(Color)),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (dt.datetime, st.datetimes(timezones=zones)),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999))),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (UUID, st.uuids()),
    (frozenset[int], st.frozensets(st.integers(), max_size=3)),
    (int | str | None, st.integers() | text | st.none()),
    (Dog | Cat, st.builds(Dog, text) | st.builds(Cat, st.integers(0, 9), st.sampled_from(["cat", "kitten"]))),
]


def listed(pair: Pair) -> Pair:
    return list[pair[0]], st.lists(pair[1], max_size=3)  # type: ignore[name-defined]


def rowed(pair: Pair) -> Pair:
    return tuple[pair[0], ...], st.lists(pair[1], max_size=3).map(tuple)  # type: ignore[name-defined]


def optional(pair: Pair) -> Pair:
    return pair[0] | None, pair[1] | st.none()


def record(pairs: list[tuple[Pair, int]]) -> Pair:
    """A class with a field for each pair; two of three have a default that means something."""
    fields: list[Any] = []
    values: list[st.SearchStrategy[Any]] = []
    for index, ((kind, strategy), sort) in enumerate(sorted(pairs, key=lambda pair: pair[1])):
        default = dataclasses.field(default=None) if sort == 1 else dataclasses.field(default_factory=lambda: None)
        fields.append((f"f{index}", kind if sort == 0 else kind | None, *([default] if sort else [])))
        values.append(strategy if sort == 0 else strategy | st.none())
    made = dataclasses.make_dataclass("Made", fields)
    return made, st.tuples(*values).map(lambda row: made(*row))


pairs = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: (
        inner.map(listed)
        | inner.map(rowed)
        | inner.map(optional)
        | st.lists(st.tuples(inner, st.integers(0, 2)), max_size=4).map(record)
    ),
    max_leaves=6,
)
quiet = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


@given(st.data())
@quiet
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    kind, strategy = data.draw(pairs)
    of = shape(kind)
    value = data.draw(strategy)
    written = of.write(value)

    assert of.read(written) == value
    assert extract(f"Here:\n```json\n{json.dumps(written)}\n```", of) == value
    assert valid(written, of.schema)
    assert of.strict is not None
    assert refusals(of.strict) == []
    assert valid(written, of.strict)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.sampled_from(["", "dog", "High", "[]", "{}", "3"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["steps", "tool", "note", "kind", "children", "pets", "guard"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(json_values, st.sampled_from([Plan, Step, Home, Dog | Cat]))
@quiet
def test_any_json_is_read_or_refused_and_what_is_read_stays(value: Any, kind: Any) -> None:
    of = shape(kind)
    try:
        read = of.read(value)
    except SchemaError:
        return

    assert of.read(of.write(read)) == read
    assert valid(of.write(read), of.strict or {})


@given(st.data())
@quiet
def test_an_answer_cut_short_never_reads_as_an_answer(data: st.DataObject) -> None:
    kind, strategy = data.draw(pairs)
    whole = json.dumps(shape(kind).write(data.draw(strategy)))
    cut = whole[: data.draw(st.integers(1, len(whole) - 1))]

    try:
        parse(cut)
    except SchemaError:
        return
    raise AssertionError(cut)
