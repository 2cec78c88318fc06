"""The shape of a function's arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from bigbrain.errors import SchemaError, WiringError
from bigbrain.schemas import Doc, arguments
from tests.schemas.strict_server import refusals


@dataclass
class Area:
    room: str
    floor: int = 0


def read_sensor(
    sensor: Literal["temperature", "humidity"],
    area: Area,
    unit: Annotated[str, Doc("from the annotation")] = "C",
    tries: int = 3,
    note: str | None = None,
    limit: int | None = 5,
) -> str:
    """Read one of
    the house sensors.

    More for people.

    Args:
        sensor: which sensor,
            on two lines
        area (Area): where it hangs
        unit: not this one

    Returns:
        note: nothing
    """
    return f"{sensor}{area}{unit}{tries}{note}{limit}"


def test_the_schema_of_the_parameters_tells_what_the_docstring_says() -> None:
    of = arguments(read_sensor)

    assert (of.name, of.description) == ("read_sensor", "Read one of the house sensors.")
    assert of.schema == {
        "type": "object",
        "properties": {
            "sensor": {
                "type": "string",
                "enum": ["temperature", "humidity"],
                "description": "which sensor, on two lines",
            },
            "area": {
                "type": "object",
                "properties": {"room": {"type": "string"}, "floor": {"type": "integer", "default": 0}},
                "required": ["room"],
                "description": "where it hangs",
            },
            "unit": {"type": "string", "description": "from the annotation", "default": "C"},
            "tries": {"type": "integer", "default": 3},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
        },
        "required": ["sensor", "area"],
    }
    assert refusals(of.strict or {}) == []


def test_what_is_read_calls_the_function() -> None:
    read = arguments(read_sensor).read(
        {"sensor": "Humidity", "area": '{"room": "hall"}', "tries": None, "limit": None, "remark": 1}
    )

    assert read == {"sensor": "humidity", "area": Area("hall"), "limit": None}
    assert read_sensor(**read) == "humidityArea(room='hall', floor=0)C3NoneNone"


def test_rest_docstrings_are_read_too() -> None:
    def add(a: int, b: int) -> int:
        """Adds.

        :param a: the first
            number
        :param int b: the second
        :returns: the sum
        """
        return a + b

    fields = arguments(add).schema["properties"]
    assert [field["description"] for field in fields.values()] == ["the first number", "the second"]


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def now() -> str:
        return ""

    assert arguments(now).read({}) == {}
    assert arguments(now).strict == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_missing_arguments_are_named() -> None:
    with pytest.raises(SchemaError, match="the JSON does not fit `read_sensor`:\n- sensor: missing, expected one of"):
        arguments(read_sensor).read({"area": {"room": "hall"}})


def test_methods_are_given_without_self() -> None:
    class House:
        def light(self, on: bool) -> None: ...

    assert list(arguments(House().light).schema["properties"]) == ["on"]


def test_every_parameter_that_cannot_be_told_is_named() -> None:
    def odd(a, /, b, *rest: int, c: bytes, **more: Any) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(WiringError) as caught:
        arguments(odd)
    assert [fault.partition(";")[0] for fault in caught.value.faults] == [
        "`odd.a`: is given by position only",
        "`odd.b`: has no annotation",
        "`odd.rest`: a model cannot know what else it takes",
        "`odd.more`: a model cannot know what else it takes",
        "`odd.c`: `bytes` has no JSON Schema",
    ]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(WiringError, match="`Area` is not a function"):
        arguments(Area)
