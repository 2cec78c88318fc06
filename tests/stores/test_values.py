from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest

from bigbrain.stores import MemStore, StoreError
from bigbrain.stores.values import read_value, write_value


class Mood(enum.Enum):
    GOOD = "good"


class Word(str):
    __slots__ = ()


@dataclass
class Seen:
    at: datetime
    mood: Mood = Mood.GOOD


class Point(msgspec.Struct):
    x: int


class Guest(pydantic.BaseModel):
    name: str


def endless() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (float("nan"), "`value` is nan, which JSON does not know; give a finite number, or None"),
        ({"a": [1, {"b": float("inf")}]}, r"`value.a\[1\].b` is inf, which JSON does not know"),
        ({"a": {1: 2}}, "`value.a` has the key 1; keys of objects are text in JSON"),
        ([object()], r"`value\[0\]` is a `object`, which is no JSON; give JSON or a dataclass"),
        ({"s": {1, 2}}, r"`value.s` is a `set`, which is no JSON; write `sorted\(…\)`"),
        ([b"x"], r"`value\[0\]` is a `bytes`, which is no JSON"),
        ([date(2026, 1, 1)], r"`value\[0\]` is a `date`, which is no JSON; write `.isoformat\(\)`"),
        ({"m": Decimal("1.5")}, "`value.m` is a `Decimal`"),
        (Seen, "`value` is a `type`, which is no JSON"),
        (Seen("now"), "`value` is a `Seen` with a field of another type than it declares"),
        (endless(), "it is nested deeper than 100 levels, or holds itself"),
    ],
)
def test_what_is_no_json_is_refused_with_its_key_and_its_place(value: object, fault: str) -> None:
    store = MemStore()

    with pytest.raises(StoreError, match=f"`fact` cannot be kept: {fault}"):
        store.put("fact", value)
    assert store.list() == []


def test_none_is_no_value() -> None:
    with pytest.raises(StoreError, match="`a` cannot be kept: None says that there is no value; use `delete`"):
        MemStore().put("a", None)


@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], {"\ud800": 1}])
def test_half_a_character_is_refused(value: object) -> None:
    with pytest.raises(StoreError, match=r"of `a` .* holds half a character"):
        MemStore().put("a", value)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ((1, 2), [1, 2]),
        (Mood.GOOD, "good"),
        (Word("hi"), "hi"),
        ({Word("k"): Mood.GOOD}, {"k": "good"}),
        ([Point(1)], [{"x": 1}]),
        (Guest(name="Ada"), {"name": "Ada"}),
        (Seen(datetime(2026, 1, 2, tzinfo=UTC)), {"at": "2026-01-02T00:00:00+00:00", "mood": "good"}),
    ],
)
def test_what_has_a_json_form_is_kept_in_it(value: object, kept: object) -> None:
    assert read_value("a", write_value("a", value)) == kept


@pytest.mark.parametrize("value", [Seen(datetime(2026, 1, 2, 3, 4, tzinfo=UTC)), Point(7), Guest(name="Ada")])
def test_types_of_all_kinds_come_back_as_themselves(value: object) -> None:
    store = MemStore()
    store.put("a", value)

    assert store.get("a", type(value)) == value


def test_a_value_of_another_type_is_refused_with_what_does_not_fit() -> None:
    store = MemStore()
    store.put("a", {"x": "seven"})

    with pytest.raises(StoreError, match=r"what is kept under `a` is of another type: (.|\n)*x(.|\n)*without one"):
        store.get("a", Point)


@pytest.mark.parametrize("meant", [[], 0, "", {}])
def test_a_default_in_the_place_of_a_type_is_told(meant: Any) -> None:
    with pytest.raises(StoreError, match="is no type; write `default="):
        MemStore().get("a", meant)


def test_what_is_damaged_is_told_by_its_key() -> None:
    with pytest.raises(StoreError, match=r"what is kept under `a` is damaged: .*; delete it, or put it anew"):
        read_value("a", b"{")


def test_a_clients_sentence_tells_nothing_of_what_is_kept() -> None:
    with pytest.raises(StoreError) as caught:
        MemStore().put("secret", {1})

    assert caught.value.public == "The memory of this brain failed."
