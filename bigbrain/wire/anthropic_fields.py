"""The fields of a JSON object, each taken by its name and type, each mistake named by its path.

Only `Fields` looks into what a stranger sent, so nothing that arrives can raise
anything but `WireError`. A field that is null counts as missing everywhere: the
official SDKs send null for what was not set. Paths are spelled as Anthropic's own
server spells them, `messages.0.content`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bigbrain.errors import WireError
from bigbrain.messages import JSON


class Fields(NamedTuple):
    """An object and the path at which it stands ("" for the whole body)."""

    data: dict[str, JSON]
    at: str = ""

    @classmethod
    def of(cls, value: JSON, at: str = "") -> Fields:
        """Raises `WireError` when the value is no object."""
        if not isinstance(value, dict):
            raise WireError(f"`{at or 'body'}` must be an object, not {_kind(value)}", param=at or "body")
        return cls(value, at)

    def path(self, name: str) -> str:
        """Where a field stands, such as `messages.0.content`."""
        return f"{self.at}.{name}" if self.at else name

    def wrong(self, name: str, must: str) -> WireError:
        """The error that says what a field must be."""
        value = self.data.get(name)
        found = "" if value is None else f", not {_kind(value)}"
        return WireError(f"`{self.path(name)}` must be {must}{found}", param=self.path(name))

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.data.get(name) is not None

    def text(self, name: str) -> str:
        """A string; "" when it is missing."""
        value = self.data.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.wrong(name, "a string")
        return value

    def needed_text(self, name: str) -> str:
        """A string that must be there and not be empty."""
        value = self.text(name)
        if not value:
            raise self.wrong(name, "a string that is not empty")
        return value

    def flag(self, name: str) -> bool | None:
        """True or false; None when it is missing."""
        value = self.data.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self.wrong(name, "true or false")

    def whole(self, name: str) -> int | None:
        """A whole number that is not negative (`true` and `5.0` are none); None when it is missing."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, "a whole number, 0 or more")
        return value

    def number(self, name: str) -> float | None:
        """A finite number; None when it is missing."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.wrong(name, "a number")
        return value

    def items(self, name: str) -> list[JSON]:
        """A list; an empty one when it is missing."""
        value = self.data.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        return value

    def objects(self, name: str) -> list[Fields]:
        """A list of objects; an empty one when it is missing."""
        at = self.path(name)
        return [Fields.of(item, f"{at}.{place}") for place, item in enumerate(self.items(name))]

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; an empty one when it is missing."""
        found = self.items(name)
        if not all(isinstance(item, str) for item in found):
            raise self.wrong(name, "a list of strings")
        return tuple(found)

    def inner(self, name: str) -> Fields:
        """An object; an empty one when it is missing."""
        return Fields.of(self.data[name] if self.has(name) else {}, self.path(name))

    def rest(self, *known: str) -> dict[str, JSON]:
        """What stands under other names than these."""
        return {name: value for name, value in self.data.items() if name not in known and value is not None}


def _kind(value: JSON) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return f"the number {value}"
        case str():
            return "a string" if value else "an empty string"
        case list():
            return "a list"
        case _:
            return "an object"
