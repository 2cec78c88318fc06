"""Classes of authors: unions of them, limits, and what cannot be told to a model."""

from __future__ import annotations

import datetime as dt
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Generic, Literal, NotRequired, TypedDict, TypeVar

import msgspec
import pytest

from bigbrain.errors import WiringError
from bigbrain.schemas import Doc, shape
from tests.schemas.examples import Cat, Dog, Home, Point, faults_of
from tests.schemas.strict_server import refusals

T = TypeVar("T")


@dataclass
class Var:
    name: str
    kind: Literal["var"] = "var"


@dataclass
class Not:
    of: Not | Var
    kind: Annotated[Literal["not"], Doc("which")] = "not"


def test_a_union_may_hold_the_class_that_it_is_in() -> None:
    assert shape(Not).read({"kind": "not", "of": {"kind": "not", "of": {"kind": "var", "name": "a"}}}) == Not(
        Not(Var("a"))
    )
    assert refusals(shape(Not).strict or {}) == []


@dataclass
class Mistaken:
    when: dt.date = "today"  # type: ignore[assignment]


def test_a_default_of_another_type_is_named() -> None:
    with pytest.raises(WiringError, match=r"`Mistaken.when`: the default 'today' is not a date such as"):
        shape(Mistaken)


def test_a_union_of_classes_is_told_apart_by_its_literal_field() -> None:
    home = Home([Dog("rex"), Cat(9, "kitten")], Cat(7, "cat"))

    assert shape(Home).read(shape(Home).write(home)) == home
    assert shape(Home).read({"pets": [{"kind": "DOG", "name": "a"}], "guard": "none"}) == Home([Dog("a")], "none")
    assert shape(Dog | Cat).read({"value": {"kind": "cat", "lives": 3}}) == Cat(3, "cat")
    assert faults_of(shape(Home), {"pets": [{"name": "a"}, {"kind": "cow"}, {"kind": "cat"}, 3]}) == [
        'pets[0].kind: missing, expected one of "dog", "cat", "kitten"',
        'pets[1].kind: "cow" is none of "dog", "cat", "kitten"',
        "pets[2].lives: missing, expected an integer",
        'pets[3]: expected an object whose "kind" is one of "dog", "cat", "kitten", got 3',
    ]


def test_the_field_that_tells_apart_comes_first_and_is_required() -> None:
    arms = shape(Home).schema["properties"]["pets"]["items"]["anyOf"]

    assert [next(iter(arm["properties"])) for arm in arms] == ["kind", "kind"]
    assert [arm["required"] for arm in arms] == [["kind", "name"], ["kind", "lives"]]
    assert refusals(shape(Home).strict or {}) == []


class Options(TypedDict):
    depth: int
    name: NotRequired[str]


class Packet(msgspec.Struct, rename="camel"):
    packet_id: int
    sub_items: list[int] = []


def test_typed_dicts_and_structs_are_records() -> None:
    assert shape(Options).read({"depth": 1, "other": 2}) == {"depth": 1}
    assert shape(Options).read({"depth": 1, "name": None}) == {"depth": 1}
    assert shape(Options).write({"depth": 1, "name": "n"}) == {"depth": 1, "name": "n"}
    assert shape(Packet).read({"packetId": 1}) == Packet(1)
    assert shape(Packet).write(Packet(1, [2])) == {"packetId": 1, "subItems": [2]}


@dataclass
class Limited:
    count: Annotated[int, msgspec.Meta(ge=1, lt=10, description="how many")]
    code: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=3)] | None = None
    items: Annotated[list[int], msgspec.Meta(min_length=1)] = field(default_factory=list)


def test_limits_are_told_and_checked() -> None:
    assert shape(Limited).read({"count": 9, "code": "abc", "items": [1]}) == Limited(9, "abc", [1])
    assert shape(Limited).schema["properties"]["count"] == {
        "type": "integer",
        "minimum": 1,
        "exclusiveMaximum": 10,
        "description": "how many",
    }
    assert faults_of(shape(Limited), {"count": 10, "code": "ABCD", "items": []}) == [
        "count: 10 is not less than 10",
        'code: "ABCD" is not of a length of at most 3',
        'code: "ABCD" is not text that matches "^[a-z]+$"',
        "items: [] is not of a length of at least 1",
    ]


@dataclass
class Range:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("`low` is above `high`")


def test_what_the_class_itself_refuses_is_a_fault_at_its_place() -> None:
    assert faults_of(shape(list[Range]), [{"low": 1, "high": 2}, {"low": 2, "high": 1}]) == [
        "[1]: `low` is above `high`"
    ]


@dataclass
class Wrong:
    blob: bytes
    keys: dict[int, str]
    either: str | dt.date
    lists: list[int] | tuple[int, ...]
    places: Point | Range
    maybe: list[complex]
    seed: InitVar[int]
    hashed: set[list[int]]
    bounded: Annotated[str, msgspec.Meta(ge=1)]
    generic: T  # type: ignore[valid-type]


def test_all_types_without_a_schema_are_named_at_once_with_the_remedy() -> None:
    with pytest.raises(WiringError) as caught:
        shape(Wrong)

    assert [fault.partition(";")[0] for fault in caught.value.faults] == [
        "`Wrong.seed`: `InitVar` is not a field",
        "`Wrong.blob`: `bytes` has no JSON Schema",
        "`Wrong.keys`: the keys of a JSON object are text",
        "`Wrong.either`: text and a date such as `2026-05-01` cannot be told apart in JSON",
        "`Wrong.lists`: a list and a list cannot be told apart in JSON",
        "`Wrong.places`: an object and an object cannot be told apart in JSON",
        "`Wrong.maybe`: `complex` has no JSON Schema",
        "`Wrong.hashed`: a set cannot hold values that change",
        "`Wrong.bounded`: `ge` cannot limit text",
        "`Wrong.generic`: `~T` has no JSON Schema",
    ]
    assert caught.value.faults[1].endswith("; use `str` and say in a `Doc` that it is base64")


@dataclass
class Page(Generic[T]):
    items: list[T]


def test_generic_classes_unknown_names_and_endless_aliases_are_refused() -> None:
    @dataclass
    class Lost:
        other: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(WiringError, match="generic; write a class"):
        shape(Page[int])
    with pytest.raises(WiringError, match=r"`Lost`: an annotation cannot be read .*module level"):
        shape(Lost)
    with pytest.raises(WiringError, match="is not a type"):
        shape([int])
