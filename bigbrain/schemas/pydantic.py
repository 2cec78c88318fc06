"""Pydantic models as kinds.

Pydantic is not imported here: a class of the author's that is pydantic's brings it along.
What is valid is pydantic's own rule; its faults are told with our places.
"""

from __future__ import annotations

import importlib
from typing import ClassVar

from bigbrain.errors import WiringError
from bigbrain.jsonvalue import JSON
from bigbrain.schemas.foreign import tidied
from bigbrain.schemas.kinds import Defs, Faults, Place, shown, unwrapped


def is_pydantic(hint: object) -> bool:
    """Whether a class is a pydantic model or a pydantic dataclass."""
    return isinstance(hint, type) and hasattr(hint, "__pydantic_core_schema__")


class PydanticKind:
    """A pydantic model."""

    wanted: ClassVar[str] = "an object"
    accepts: ClassVar[frozenset[type]] = frozenset({dict})

    def __init__(self, model: JSON) -> None:
        """Raises `WiringError` when pydantic has no JSON Schema for the model."""
        library = importlib.import_module("pydantic")
        self.made: tuple[type, ...] = (model,)
        self._adapter = library.TypeAdapter(model)
        self._refusal: type[Exception] = library.ValidationError
        try:
            self._own: dict[str, JSON] = self._adapter.json_schema()
        except library.errors.PydanticUserError as exc:
            raise WiringError(f"`{model.__name__}`: pydantic has no JSON Schema for it: {exc.message}") from exc

    def schema(self, defs: Defs) -> dict[str, JSON]:
        return defs.adopt(self._own)

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        try:
            return self._adapter.validate_python(tidied(value, self._own, self._own))
        except self._refusal as exc:
            refusal: JSON = exc
            for fault in refusal.errors(include_url=False, include_context=False):
                at = place
                for key in fault["loc"]:
                    at = (at, key)
                faults.add(at, _sentence(fault))
        return None

    def write(self, value: JSON) -> JSON:
        return self._adapter.dump_python(value, mode="json", by_alias=True)


def _sentence(fault: dict[str, JSON]) -> str:
    message = f"{fault['msg'][:1].lower()}{fault['msg'][1:]}"
    return message if fault["type"] == "missing" else f"{message}, got {shown(fault['input'])}"
