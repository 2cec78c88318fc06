"""Pydantic models: their own rules, our places, and no import of pydantic for anybody else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic
import pytest

from bigbrain.errors import SchemaError
from bigbrain.schemas import extract, shape
from tests.schemas.strict_server import refusals


class Item(pydantic.BaseModel):
    name: str
    count: int = pydantic.Field(1, ge=1, description="how many")
    note: str | None = None
    tags: list[str] = []


class Node(pydantic.BaseModel):
    item: Item = pydantic.Field(description="what it is")
    children: list[Node] = []


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str = "rex"


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Home(pydantic.BaseModel):
    pet: Annotated[Dog | Cat, pydantic.Field(discriminator="kind")]
    properties: dict[str, int] = {}


@dataclass
class Order:
    items: list[Item]
    home: Home | None = None


def test_an_answer_is_validated() -> None:
    assert extract('{"name": "nut", "count": 2, "remark": 1}', Item) == Item(name="nut", count=2)


def test_null_counts_as_left_out_where_null_is_not_allowed() -> None:
    answer = {
        "item": {"name": "nut", "count": None, "note": None, "tags": None},
        "children": [{"item": {"name": "a", "tags": None}}],
    }

    assert shape(Node).read(answer) == Node(item=Item(name="nut"), children=[Node(item=Item(name="a"))])
    assert shape(Home).read({"pet": {"kind": "dog", "name": None}}) == Home(pet=Dog(kind="dog"))


def test_faults_are_told_with_their_path() -> None:
    with pytest.raises(SchemaError) as caught:
        shape(Order).read({"items": [{"name": "a"}, {"count": 0, "tags": [3]}], "home": {"pet": {"kind": "cow"}}})

    assert str(caught.value).splitlines()[1:] == [
        "- items[1].name: field required",
        "- items[1].count: input should be greater than or equal to 1, got 0",
        "- items[1].tags[0]: input should be a valid string, got 3",
        "- home.pet: input tag 'cow' found using 'kind' does not match any of the expected tags: 'dog', 'cat', "
        'got {"kind":"cow"}',
    ]


def test_only_what_contains_itself_is_in_defs() -> None:
    assert list(shape(Node).schema["$defs"]) == ["Node"]
    assert shape(Node).schema["type"] == "object"
    assert shape(Node).schema["properties"]["item"]["description"] == "what it is"
    assert "$defs" not in shape(Order).schema


@pytest.mark.parametrize("kind", [Item, Node, Dog])
def test_a_strict_server_takes_the_strict_form(kind: type) -> None:
    assert refusals(shape(kind).strict or {}) == []


def test_a_union_of_models_is_taken_by_a_strict_server() -> None:
    class House(pydantic.BaseModel):
        pet: Annotated[Dog | Cat, pydantic.Field(discriminator="kind")]

    assert refusals(shape(House).strict or {}) == []
    assert shape(Home).strict is None


def test_models_are_written_and_read_back() -> None:
    node = Node(item=Item(name="a", tags=["t"]), children=[Node(item=Item(name="b"))])
    order = Order([Item(name="x")], Home(pet=Cat(kind="cat", lives=9)))

    assert shape(Node).read(shape(Node).write(node)) == node
    assert shape(Order).read(shape(Order).write(order)) == order


def test_a_pydantic_dataclass_is_pydantics() -> None:
    @pydantic.dataclasses.dataclass
    class Pair:
        a: int
        b: int = 2

    assert shape(Pair).read({"a": "1"}) == Pair(1)


def test_pydantic_is_not_imported_for_other_types() -> None:
    code = (
        "import sys\n"
        "from dataclasses import dataclass\n"
        "from bigbrain.schemas import shape\n"
        "@dataclass\n"
        "class A:\n"
        "    a: int\n"
        "assert shape(A).read({'a': 1}) == A(1)\n"
        "print('pydantic' in sys.modules)\n"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
