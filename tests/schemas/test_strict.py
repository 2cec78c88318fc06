"""The strict form of a schema: taken by a server that refuses what strict modes refuse."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest

from bigbrain.schemas import Doc, shape
from bigbrain.schemas.strict import write_strict
from tests.schemas.examples import Cat, Dog, Home, Level, Plan, Point, Settings, Step
from tests.schemas.strict_server import refusals, valid


@dataclass
class Everything:
    """All kinds at once."""

    count: Annotated[int, msgspec.Meta(ge=1)]
    when: Annotated[dt.datetime, Doc("the moment")]
    price: Decimal
    pair: tuple[int, str]
    tags: set[str]
    mixed: Literal[1, "one", None]
    pet: Dog | Cat | None
    self: Annotated[Everything | None, Doc("another one")] = None
    again: list[Annotated[Everything, Doc("more")]] = field(default_factory=list)
    retries: Annotated[int, Doc("how often")] = 3


@pytest.mark.parametrize(
    "kind", [Plan, Step, Home, Settings, Everything, Level, Point, list[Plan], int | None, Dog | Cat, tuple[int, str]]
)
def test_a_strict_server_takes_the_strict_form(kind: Any) -> None:
    strict = shape(kind).strict

    assert strict is not None
    assert refusals(strict) == []


def test_a_strict_server_refuses_the_plain_form() -> None:
    assert "root: 'additionalProperties' is required to be supplied and to be false" in refusals(shape(Plan).schema)


def test_what_may_be_left_out_may_be_null_instead() -> None:
    strict = shape(Settings).strict or {}

    assert strict["required"] == ["retries", "level", "note", "tags", "doc"]
    assert strict["properties"]["retries"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "description": "(default 3)",
    }
    assert strict["properties"]["note"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": '(default "none")',
    }


def test_what_strict_modes_do_not_take_is_told_in_words() -> None:
    strict = shape(Everything).strict or {}

    assert strict["properties"]["count"] == {"type": "integer", "description": "(minimum 1)"}
    assert strict["properties"]["when"] == {"type": "string", "description": 'the moment (format "date-time")'}
    assert strict["properties"]["pair"] == {
        "type": "array",
        "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "description": "(minItems 2, maxItems 2)",
    }
    assert strict["properties"]["mixed"] == {
        "anyOf": [{"type": "integer", "enum": [1]}, {"type": "string", "enum": ["one"]}, {"type": "null"}],
    }
    assert strict["properties"]["again"]["anyOf"][0]["items"] == {
        "anyOf": [{"$ref": "#/$defs/Everything"}],
        "description": "more",
    }
    assert strict["properties"]["retries"]["description"] == "how often (default 3)"


def test_the_answer_that_strict_mode_forces_is_read() -> None:
    answer = {"retries": None, "level": None, "note": None, "tags": None, "doc": None}

    assert valid(answer, shape(Settings).strict or {})
    assert shape(Settings).read(answer) == Settings(note=None)


@pytest.mark.parametrize("kind", [dict[str, int], Any, list[dict[str, str]], tuple[int, Any], dict])
def test_what_leaves_keys_or_values_open_has_no_strict_form(kind: Any) -> None:
    assert shape(kind).strict is None


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"const": "a", "title": "A"}, {"enum": ["a"], "type": "string"}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"type": ["string", "null"], "description": "d"},
            {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"},
        ),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, None),
        ({"type": "object"}, None),
        ({"type": "object", "properties": {}, "additionalProperties": True}, None),
        ({"type": "object", "properties": {}, "patternProperties": {}}, None),
        ({"type": "array"}, None),
        ({"type": "array", "items": True}, None),
        ({"not": {"type": "string"}}, None),
    ],
)
def test_other_libraries_keywords_are_rewritten_or_refused(schema: dict[str, Any], strict: Any) -> None:
    assert write_strict(schema) == strict
