"""From an author's type to a JSON Schema for a model, and from a model's text back to a value of that type.

    @dataclass
    class Intent:
        intent: Annotated[Literal["talk", "house"], Doc("the chosen capability")]
        reason: str = ""

    shape(Intent).schema                                # what the model is told
    extract('Sure: {"intent": "Talk"}', Intent)         # Intent(intent="talk", reason="")

What is read is checked fully: types, required fields, choices, limits, nested values. The rules:

- An integer may come as `3.0` but not as `"3"` or `true`; a float as `3`; text is never a number.
- A choice (`Literal`, `Enum`) in another case is taken when it can mean only one option.
- `null` is a value where the type has `None`, else it counts as missing. A missing field takes its
  default, or None where it may be None; any other is a fault.
- Keys that no field has are ignored.
- A list or an object that comes as a string of its JSON is unwrapped once.
- A datetime needs its offset. Decimals are text, or a JSON number; UUIDs, dates, times and durations are text.
- A union is told apart by the class of JSON, objects by a `Literal` field of their own.
- What is not an object stands under `value`, because providers take only objects at the top.

A marshmallow Schema and a pydantic model keep their own rules of what is valid. Pure: nothing here does I/O.
"""

from __future__ import annotations

from bigbrain.schemas.arguments import arguments as arguments
from bigbrain.schemas.limits import Doc as Doc
from bigbrain.schemas.shape import Shape as Shape
from bigbrain.schemas.shape import shape as shape
from bigbrain.schemas.texts import extract as extract
from bigbrain.schemas.texts import parse as parse
