"""Types of authors, and the faults of answers to them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from bigbrain.errors import SchemaError
from bigbrain.schemas import Doc, Shape


@dataclass
class Step:
    tool: str
    note: str | None
    kind: Literal["low", "high"] | None = None
    children: list[Step] = field(default_factory=list)


@dataclass
class Plan:
    """What is to be done.

    Only the first paragraph is told.
    """

    steps: Annotated[list[Step], Doc("in order")]


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclass
class Settings:
    retries: int = 3
    level: Level = Level.LOW
    note: str | None = "none"
    tags: list[str] = field(default_factory=lambda: ["new"])
    secret: int = field(default=7, init=False)
    doc: str = field(default="", metadata={"description": "told as well"})


@dataclass
class Dog:
    name: str
    kind: Literal["dog"] = "dog"


@dataclass
class Cat:
    lives: int
    kind: Literal["cat", "kitten"]


@dataclass
class Home:
    pets: list[Dog | Cat]
    guard: Dog | Cat | str | None = None


def faults_of(of: Shape[Any], value: Any) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        of.read(value)
    return [line.removeprefix("- ") for line in str(caught.value).splitlines()[1:]]
