"""Tools as an author makes them: from a signature, from a type, bound to a function that must agree."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

import marshmallow
import msgspec
import pydantic
import pytest

from bigbrain.errors import SchemaError, ToolError, WiringError
from bigbrain.messages import Image, Text, ToolCall
from bigbrain.rounds import write_result
from bigbrain.schemas import Doc
from bigbrain.tools import Tool, tool


@dataclass
class SensorArgs:
    sensor: Annotated[Literal["temperature", "humidity"], Doc("which sensor")]
    room: str = "hall"


READ = Tool("read_sensor", "read one of the house sensors", schema=SensorArgs)


def test_a_function_becomes_a_tool_and_stays_callable() -> None:
    @tool
    def add(a: int, b: Annotated[int, Doc("what is added")] = 1) -> int:
        """Adds two numbers.

        Not for the model.
        """
        return a + b

    assert add(1, b=2) == 3
    assert (add.name, add.description, add.timeout, add.longest) == ("add", "Adds two numbers.", 60, 100_000)
    assert add.spec.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "integer", "description": "what is added", "default": 1},
        },
        "required": ["a"],
    }


def test_a_tool_may_say_more_than_its_function() -> None:
    @tool(name="plus", description="adds", timeout=1, longest=10)
    def add(a: int) -> int:
        return a

    assert (add.name, add.description, add.timeout, add.longest) == ("plus", "adds", 1, 10)


def test_a_bare_tool_is_a_definition_and_cannot_be_called() -> None:
    assert READ.spec.schema["required"] == ["sensor"]
    with pytest.raises(WiringError, match=r"`read_sensor` has no function.*`bind`"):
        READ()


def test_a_tool_without_a_schema_takes_nothing() -> None:
    assert Tool("now").spec.schema == {"type": "object", "properties": {}, "required": []}


def test_binding_gives_a_copy_that_takes_the_fields_by_name() -> None:
    def read(sensor: Literal["humidity", "temperature"], room: str = "attic") -> str:
        return f"{sensor} in {room}"

    bound = READ.bind(read)

    assert READ.handler is None
    assert bound.spec == READ.spec
    assert bound.run(ToolCall("1", "read_sensor", '{"sensor":"humidity"}')) == "humidity in attic"


def test_binding_gives_a_copy_that_takes_the_whole_value() -> None:
    def read(args: SensorArgs) -> SensorArgs:
        return args

    assert READ.bind(read).run(ToolCall("1", "read_sensor", '{"sensor":"humidity"}')) == SensorArgs("humidity")


class ByMarshmallow(marshmallow.Schema):
    sensor = marshmallow.fields.String(required=True)


class ByPydantic(pydantic.BaseModel):
    sensor: str


@pytest.mark.parametrize("kind", [ByMarshmallow, ByPydantic])
def test_the_schema_may_be_another_librarys(kind: type) -> None:
    def read(sensor: str) -> str:
        return sensor

    bound = Tool("read", schema=kind).bind(read)

    assert bound.run(ToolCall("1", "read", '{"sensor":"x"}')) == "x"


def test_every_disagreement_is_named_with_its_tool_and_field_when_it_is_bound() -> None:
    def read(sensor: int, floor: int) -> None: ...

    with pytest.raises(WiringError) as caught:
        READ.bind(read)
    sensor = '{"enum":["humidity","temperature"],"type":"string"}'
    assert caught.value.faults == (
        "tool `read_sensor`: field `room` has no parameter in `read`; add one",
        "tool `read_sensor`: parameter `floor` of `read` is no field of the schema; remove it or give it a default",
        f'tool `read_sensor`: field `sensor` is {sensor}, but parameter `sensor` of `read` is {{"type":"integer"}}',
    )


def test_a_field_that_may_be_left_out_needs_a_default() -> None:
    def read(sensor: Literal["humidity", "temperature"], room: str) -> None: ...

    with pytest.raises(WiringError, match="`room` may be left out"):
        READ.bind(read)


@dataclass
class Other:
    sensor: str


def test_a_value_of_another_type_disagrees() -> None:
    def read(args: Other) -> None: ...

    with pytest.raises(WiringError, match="`read_sensor`: field `room`"):
        READ.bind(read)


def test_a_parameter_without_a_type_is_named_with_its_tool() -> None:
    with pytest.raises(WiringError, match=r"tool `read_sensor`: .*`<lambda>.sensor`"):
        READ.bind(lambda sensor: None)


@dataclass
class Keywords:
    """Fields that are named like words of JSON Schema."""

    description: str
    required: int
    title: list[str] = field(default_factory=list)


def test_fields_that_are_named_like_keywords_are_fields() -> None:
    bare = Tool("keep", schema=Keywords)

    def good(description: str, required: int, title: Sequence[str] = ()) -> str:
        return description

    def bad(description: int, required: int, title: Sequence[str] = ()) -> None: ...

    assert bare.bind(good).run(ToolCall("1", "keep", '{"description":"d","required":1}')) == "d"
    with pytest.raises(WiringError, match="field `description`"):
        bare.bind(bad)


@dataclass
class Node:
    name: str
    children: list[Node]


@dataclass
class Tree:
    root: Node


def test_types_that_contain_themselves_agree_with_themselves() -> None:
    def plant(root: Node) -> str:
        return root.children[0].name

    bound = Tool("plant", schema=Tree).bind(plant)
    leaf = '{"name":"b","children":[]}'

    assert bound.run(ToolCall("1", "plant", f'{{"root":{{"name":"a","children":[{leaf}]}}}}')) == "b"


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "naïve"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(WiringError, match="1 to 64"):
        Tool(name)


def test_no_time_is_no_timeout() -> None:
    with pytest.raises(WiringError, match="above 0"):
        Tool("x", timeout=0)


def test_the_arguments_of_a_call_are_a_value() -> None:
    assert ToolCall("1", "x", '{"sensor":"Humidity"}').extract(SensorArgs) == SensorArgs("humidity")
    with pytest.raises(SchemaError, match="sensor"):
        ToolCall("1", "x", "").extract(SensorArgs)
    with pytest.raises(ToolError, match="not JSON"):
        ToolCall("1", "x", "{").extract(SensorArgs)


class Colour(enum.Enum):
    RED = "red"


class Struct(msgspec.Struct):
    a: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, "null"),
        (True, "true"),
        ({"a": [1, 2.5]}, '{"a":[1,2.5]}'),
        ([], "[]"),
        (SensorArgs("humidity"), '{"sensor":"humidity","room":"hall"}'),
        (Struct(1), '{"a":1}'),
        (ByPydantic(sensor="x"), '{"sensor":"x"}'),
        ([ByPydantic(sensor="x")], '[{"sensor":"x"}]'),
        (Colour.RED, '"red"'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00Z"'),
        ("half \ud83e", "half ?"),
    ],
)
def test_whatever_a_function_gives_is_told_as_text(value: object, text: str) -> None:
    assert write_result(value) == (Text(text),)


def test_parts_are_given_as_they_are_and_nothing_is_no_part() -> None:
    picture = Image(data="eA==", media_type="image/png")

    assert write_result(picture) == (picture,)
    assert write_result([Text("see"), picture]) == (Text("see"), picture)
    assert write_result("") == ()


def test_a_long_result_is_cut_with_a_mark() -> None:
    assert write_result("abcdef", 4) == (Text("abcd… [cut: 2 characters more]"),)
    assert write_result(["abcdef"], 4) == (Text('["ab… [cut: 6 characters more]'),)
    assert write_result("abcd", 4) == (Text("abcd"),)


@pytest.mark.parametrize("value", [object(), {"a": object()}, [float], {(1, 2): 3}])
def test_what_has_no_json_is_refused(value: object) -> None:
    with pytest.raises(ToolError, match="give text or data"):
        write_result(value)
