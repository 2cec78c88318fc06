"""What a model is told of an author's type, and what of its answer is taken."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, TypeVar
from uuid import UUID

import pytest

from bigbrain.schemas import shape
from tests.schemas.examples import Level, Plan, Point, Settings, Step, faults_of

T = TypeVar("T")


def one(kind: object, value: Any) -> Any:
    """The value read as the only thing that a model was asked for."""
    return shape(kind).read({"value": value})


class Size(enum.IntEnum):
    S = 1
    L = 3


UserId = NewType("UserId", str)


def test_the_schema_writes_out_only_what_contains_itself() -> None:
    step = {
        "type": "object",
        "properties": {
            "tool": {"type": "string"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "kind": {"anyOf": [{"type": "string", "enum": ["low", "high"]}, {"type": "null"}]},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
        },
        "required": ["tool"],
    }

    assert shape(Plan).schema == {
        "type": "object",
        "description": "What is to be done.",
        "properties": {"steps": {"type": "array", "items": {"$ref": "#/$defs/Step"}, "description": "in order"}},
        "required": ["steps"],
        "$defs": {"Step": step},
    }
    assert shape(Step).schema == {**step, "$defs": {"Step": step}}
    assert shape(Plan).recursive


def test_a_type_used_twice_stands_where_it_is_used() -> None:
    @dataclass
    class Line:
        start: Point
        end: Point

    globals()["Line"] = Line

    assert "$defs" not in shape(Line).schema
    assert shape(Line).read({"start": {"x": 1}, "end": {"x": 2, "y": 3}}) == Line(Point(1), Point(2, 3))


def test_a_shape_has_the_name_and_the_description_of_its_type() -> None:
    assert (shape(Plan).name, shape(Plan).description) == ("Plan", "What is to be done.")
    assert (shape(list[Plan]).name, shape(Point).description) == ("answer", "")


def test_a_shape_is_made_once_for_each_type() -> None:
    assert shape(Plan) is shape(Plan)
    assert shape(list[Plan]) is shape(list[Plan])
    assert shape(Annotated[int, [1]]).read({"value": 1}) == 1


@pytest.mark.parametrize(
    ("answer", "plan"),
    [
        (
            {"steps": [{"tool": "t", "note": None, "kind": None, "children": []}]},
            Plan([Step("t", None)]),
        ),
        ({"steps": [{"tool": "t", "kind": "High"}]}, Plan([Step("t", None, "high")])),
        ({"steps": [{"tool": "t", "children": None, "why": "because"}]}, Plan([Step("t", None)])),
        (
            {"steps": [{"tool": "a", "children": [{"tool": "b", "children": [{"tool": "c"}]}]}]},
            Plan([Step("a", None, None, [Step("b", None, None, [Step("c", None)])])]),
        ),
        ({"steps": "[]"}, Plan([])),
        ('{"steps": []}', Plan([])),
    ],
)
def test_what_models_answer_for_optional_fields_is_taken(answer: Any, plan: Plan) -> None:
    assert shape(Plan).read(answer) == plan


def test_every_fault_is_told_with_its_path_and_what_was_expected() -> None:
    answer = {
        "steps": [
            {"Tool": "t", "note": 3, "kind": "Hgh", "children": "[3]"},
            {"tool": None},
            "no step",
            {"tool": "t" * 100, "kind": ["low"], "children": {"a": 1}},
        ]
    }

    assert faults_of(shape(Plan), answer) == [
        'steps[0].tool: missing, expected text; is "Tool" meant? The key is "tool"',
        "steps[0].note: expected text, got 3",
        'steps[0].kind: "Hgh" is none of "low", "high"',
        "steps[0].children[0]: expected an object, got 3",
        "steps[1].tool: expected text, got null",
        'steps[2]: expected an object, got "no step"',
        'steps[3].kind: ["low"] is none of "low", "high"',
        'steps[3].children: expected a list, got {"a":1}',
    ]


def test_faults_are_bounded_and_long_values_cut() -> None:
    found = faults_of(shape(list[int]), {"value": ["x" * 100] * 30})

    assert len(found) == 21
    assert found[0] == f'[0]: expected an integer, got "{"x" * 58}…'
    assert found[-1] == "and 10 more"


def test_what_is_nested_without_end_is_a_fault() -> None:
    value: Any = {"tool": "t"}
    for _ in range(2000):
        value = {"tool": "t", "children": [value]}

    assert faults_of(shape(Step), value) == ["is nested too deep"]


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (int, 3, 3),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (str, "3", "3"),
        (bool, True, True),
        (Level, "HIGH", Level.HIGH),
        (Size, 3, Size.L),
        (Size, 3.0, Size.L),
        (Literal[1, "one", True, None], True, True),
        (Literal[1, "one", True, None], 1, 1),
        (Literal[1, "one", True, None], None, None),
        (Literal["a", "A"], "A", "A"),
        (Literal[Level.LOW], "low", Level.LOW),
        (UserId, "u", "u"),
        (Any, {"a": [1]}, {"a": [1]}),
        (object, 1, 1),
        (None, None, None),
        (list, [1, "a"], [1, "a"]),
        (list[int], "[1]", [1]),
        (Sequence[int], [1], [1]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 1], {1}),
        (frozenset[str], ["a"], frozenset("a")),
        (int | float, 3.5, 3.5),
        (int | float, 3, 3),
        (int | str, "3", "3"),
        (list[int] | str, "[3]", "[3]"),
        (list[int] | int, "[3]", [3]),
        (bool | int, True, True),
        (Decimal | None, 1.5, Decimal("1.5")),
        (dt.datetime, "2026-05-01T12:00:00Z", dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)),
        (dt.date, "2026-05-01", dt.date(2026, 5, 1)),
        (dt.time, "12:30", dt.time(12, 30)),
        (dt.timedelta, "PT1H30M", dt.timedelta(minutes=90)),
        (Decimal, "12.50", Decimal("12.50")),
        (Decimal, 12.5, Decimal("12.5")),
        (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
    ],
)
def test_values_are_read_by_the_rules(kind: object, value: Any, read: Any) -> None:
    assert one(kind, value) == read
    assert type(one(kind, value)) is type(read)


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        (int, "3", 'expected an integer, got "3"'),
        (int, True, "expected an integer, got true"),
        (int, 3.5, "expected an integer, got 3.5"),
        (int, None, "expected an integer, got null"),
        (float, "3", 'expected a number, got "3"'),
        (float, False, "expected a number, got false"),
        (float, float("nan"), "expected a number, got null"),
        (float, 10**400, f"expected a number, got 1{'0' * 58}…"),
        (str, 3, "expected text, got 3"),
        (bool, 1, "expected true or false, got 1"),
        (bool, "true", 'expected true or false, got "true"'),
        (Literal["a", "A"], "á", '"á" is none of "a", "A"'),
        (Literal["x"], "y", '"y" is not "x"'),
        (Literal["ab", "aB"], "AB", '"AB" is none of "ab", "aB"'),
        (Size, "3", '"3" is none of 1, 3'),
        (Size, True, "true is none of 1, 3"),
        (list[int], {}, "expected a list, got {}"),
        (list[int], "1, 2", 'expected a list, got "1, 2"'),
        (list[int], '"[1]"', 'expected a list, got "[1]"'),
        (tuple[int, str], [1], "expected a list of 2: an integer, text, got [1]"),
        (set[int], 3, "expected a list, got 3"),
        (int | str, [1], "expected an integer or text, got [1]"),
        (str | None, 3, "expected text, got 3"),
        (None, 0, "expected null, got 0"),
        (
            dt.datetime,
            "2026-05-01T12:00:00",
            "expected a date and time with its offset, such as `2026-05-01T12:00:00Z`",
        ),
        (dt.date, "May 1st", 'expected a date such as `2026-05-01`, got "May 1st"'),
        (dt.time, 12, "expected a time such as `12:00:00`, got 12"),
        (dt.timedelta, "one hour", "expected a duration such as `PT1H30M`"),
        (Decimal, "1_0", 'expected a decimal number as text, such as "12.50", got "1_0"'),
        (Decimal, "NaN", "expected a decimal number as text"),
        (Decimal, True, "expected a decimal number as text"),
        (UUID, "x", 'expected a UUID, got "x"'),
    ],
)
def test_values_against_the_rules_are_faults(kind: object, value: Any, fault: str) -> None:
    found = faults_of(shape(kind), {"value": value})

    assert len(found) == 1
    assert found[0].startswith(fault)


def test_a_map_reads_its_values() -> None:
    assert shape(dict[str, int]).read({"a": 1, "b": 2.0}) == {"a": 1, "b": 2}
    assert shape(Mapping[str, Point]).read({"a": {"x": 1}}) == {"a": Point(1)}
    assert faults_of(shape(dict[str, int]), {"a": 1, "b c": "x"}) == ['["b c"]: expected an integer, got "x"']
    assert shape(dict).read({"a": [1]}) == {"a": [1]}


def test_what_is_not_an_object_is_wrapped_and_unwrapped() -> None:
    of = shape(list[int])

    assert of.schema == {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
    }
    assert of.write([1, 2]) == {"value": [1, 2]}
    assert of.read({"value": [1, 2], "remark": "sorted"}) == of.read([1, 2]) == [1, 2]


def test_null_counts_as_missing_where_the_type_has_no_none() -> None:
    assert shape(Settings).read({"retries": None, "level": None, "tags": None, "note": None}) == Settings(note=None)
    assert shape(Settings).read({}) == Settings()


def test_defaults_and_descriptions_are_told() -> None:
    assert shape(Settings).schema["properties"] == {
        "retries": {"type": "integer", "default": 3},
        "level": {"type": "string", "enum": ["low", "high"], "default": "low"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "none"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "doc": {"type": "string", "description": "told as well", "default": ""},
    }
    assert shape(Settings).schema["required"] == []


def test_a_class_in_a_function_may_contain_itself() -> None:
    @dataclass
    class Node:
        left: Node | None = None

    assert shape(Node).read({"left": {"left": None}}) == Node(Node())
