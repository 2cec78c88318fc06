"""Unions: one of several kinds, told apart by what JSON itself shows.

No arm is ever tried and dropped: two arms that JSON cannot tell apart (two lists, text
and a date) are refused when the brain is built, but for records with a tag field.
"""

from __future__ import annotations

from types import NoneType

from bigbrain.jsonvalue import JSON
from bigbrain.schemas.kinds import Defs, Faults, Kind, Place, unwrapped
from bigbrain.schemas.limits import Noted
from bigbrain.schemas.records import Record, Tagged
from bigbrain.schemas.scalars import Choice


class Either:
    """One of several kinds; each class of JSON belongs to one of them."""

    def __init__(self, arms: tuple[Kind, ...]) -> None:
        """arms: in the author's order, no two of them accepting the same class of JSON."""
        self.arms = arms
        self.accepts = frozenset[type]().union(*(arm.accepts for arm in arms))
        self.made = tuple(cls for arm in arms for cls in arm.made)
        self.wanted = " or ".join(arm.wanted for arm in arms)
        self._read = {cls: arm for arm in arms for cls in arm.accepts}
        self._written = {cls: arm for arm in arms for cls in arm.made}
        for table in (self._read, self._written):
            _share_numbers(table)
        # With one arm beside null, its own fault says more than "this or null", and its own tolerance applies.
        others = [arm for arm in arms if NoneType not in arm.accepts]
        self._only = others[0] if len(others) == 1 else None

    def schema(self, defs: Defs) -> dict[str, JSON]:
        options: list[dict[str, JSON]] = []
        for arm in self.arms:
            schema = arm.schema(defs)
            options += schema["anyOf"] if list(schema) == ["anyOf"] else [schema]
        return {"anyOf": options}

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        arm = self._read.get(type(value)) or self._only
        if arm is None and isinstance(value, str):
            value = unwrapped(value)
            arm = self._read.get(type(value)) if isinstance(value, list | dict) else None
        if arm is None:
            return faults.expected(self.wanted, value, place)
        return arm.read(value, place, faults)

    def write(self, value: JSON) -> JSON:
        arm = self._written.get(type(value))
        if arm is None:
            arm = next((arm for arm in self.arms if isinstance(value, arm.made)), None)
        if arm is None:
            raise TypeError(f"a {type(value).__name__} is not {self.wanted}")
        return arm.write(value)


def either(arms: tuple[Kind, ...]) -> Kind | None:
    """The union of the arms, None if JSON cannot tell them apart."""
    records = tuple(arm for arm in arms if dict in arm.accepts)
    if len(records) > 1:
        tagged = _tagged(records)
        if tagged is None:
            return None
        arms = (tagged, *(arm for arm in arms if dict not in arm.accepts))
    accepted = [cls for arm in arms for cls in arm.accepts]
    if len(arms) == 1:
        return arms[0]
    return Either(arms) if len(accepted) == len(set(accepted)) else None


def _tagged(arms: tuple[Kind, ...]) -> Tagged | None:
    bare = tuple(arm.kind if isinstance(arm, Noted) else arm for arm in arms)
    records = tuple(arm for arm in bare if isinstance(arm, Record))
    if len(records) < len(arms):
        return None
    for field in records[0].fields:
        choices = tuple(_choice(record, field.key) for record in records)
        fixed = tuple(choice for choice in choices if choice is not None)
        options = [option for choice in fixed for option in choice.options]
        if len(fixed) == len(records) and len(options) == len(set(options)):
            return Tagged(field.key, records, fixed)
    return None


def _choice(record: Record, key: str) -> Choice | None:
    kinds = [field.kind for field in record.fields if field.key == key]
    bare = [kind.kind if isinstance(kind, Noted) else kind for kind in kinds]
    return bare[0] if bare and isinstance(bare[0], Choice) else None


def _share_numbers(table: dict[type, Kind]) -> None:
    """JSON does not tell `3` from `3.0`: a number goes to the other numeric arm where its own is not there."""
    if float in table:
        table.setdefault(int, table[float])
    elif int in table:
        table.setdefault(float, table[int])
