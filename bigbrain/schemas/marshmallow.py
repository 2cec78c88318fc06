"""Marshmallow schemas as kinds.

What is valid is marshmallow's own rule (`schema.load`), with two exceptions that a model
needs: keys that no field has are removed unless the schema includes them, and `null` for
a field that may be left out counts as left out.
"""

from __future__ import annotations

import marshmallow
from marshmallow import Schema, fields, validate

from bigbrain.errors import WiringError
from bigbrain.jsonvalue import JSON
from bigbrain.schemas.foreign import tidied
from bigbrain.schemas.kinds import Defs, Faults, Place, unwrapped


class MarshmallowKind:
    """A marshmallow Schema; its values are what `load` gives."""

    def __init__(self, schema: JSON) -> None:
        """schema: a Schema, or its class.

        Raises `WiringError` when a field has no JSON Schema.
        """
        self._schema: Schema = schema() if isinstance(schema, type) else schema
        self.accepts: frozenset[type] = frozenset({list if self._schema.many else dict})
        self.made: tuple[type, ...] = (object,)
        self.wanted = "a list" if self._schema.many else "an object"
        defs = Defs()
        self._own = self.schema(defs)
        self._root: dict[str, JSON] = {"$defs": defs.schemas}

    def schema(self, defs: Defs) -> dict[str, JSON]:
        return _write_schema(self._schema, defs, many=self._schema.many)

    def read(self, value: JSON, place: Place, faults: Faults) -> JSON:
        if isinstance(value, str):
            value = unwrapped(value)
        try:
            return self._schema.load(tidied(value, self._own, self._root, drop_extra=True))
        except marshmallow.ValidationError as exc:
            _note(exc.messages, place, faults)
        return None

    def write(self, value: JSON) -> JSON:
        return self._schema.dump(value)


def _note(messages: JSON, place: Place, faults: Faults) -> None:
    """Notes marshmallow's tree of messages; `_schema` is what is wrong with the whole object."""
    if isinstance(messages, dict):
        for key, inner in messages.items():
            _note(inner, place if key == "_schema" else (place, key), faults)
        return
    for message in messages if isinstance(messages, list) else [messages]:
        if isinstance(message, dict):
            _note(message, place, faults)
        else:
            text = str(message)
            faults.add(place, f"{text[:1].lower()}{text[1:]}")


def _write_schema(schema: Schema, defs: Defs, *, many: bool) -> dict[str, JSON]:
    only = frozenset(schema.only) if schema.only is not None else None
    key = (type(schema), only, frozenset(schema.exclude))
    name = type(schema).__name__.removesuffix("Schema") or "Schema"
    written = defs.place(key, name, lambda: _write_object(schema, defs))
    return {"type": "array", "items": written} if many else written


def _write_object(schema: Schema, defs: Defs) -> dict[str, JSON]:
    loaded = {field.data_key or name: field for name, field in schema.load_fields.items()}
    owner = type(schema).__name__
    written: dict[str, JSON] = {
        "type": "object",
        "properties": {key: _write_field(field, defs, f"{owner}.{key}") for key, field in loaded.items()},
        "required": [key for key, field in loaded.items() if field.required],
    }
    if schema.unknown == marshmallow.INCLUDE:
        written["additionalProperties"] = True
    return written


def _write_field(field: fields.Field[JSON], defs: Defs, where: str) -> dict[str, JSON]:
    written = {**_write_kind(field, defs, where), **_write_checks(field)}
    if field.allow_none:
        written = {"anyOf": [written, {"type": "null"}]}
    if description := field.metadata.get("description"):
        written["description"] = description
    if isinstance(field.load_default, str | int | float):
        written["default"] = field.load_default
    return written


def _write_kind(field: fields.Field[JSON], defs: Defs, where: str) -> dict[str, JSON]:
    match field:
        case fields.Nested():
            return _write_nested(field, defs)
        case fields.List():
            return {"type": "array", "items": _write_field(field.inner, defs, where)}
        case fields.Tuple():
            items = [_write_field(inner, defs, where) for inner in field.tuple_fields]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        case fields.Mapping():
            inner = _write_field(field.value_field, defs, where) if field.value_field else {}
            return {"type": "object", "additionalProperties": inner}
        case fields.Enum():
            return _write_enum(field)
        case fields.Constant():
            return {"enum": [field.constant]}
        case fields.DateTime() if field.format not in (None, "iso", "iso8601"):
            return {"type": "number" if str(field.format).startswith("timestamp") else "string"}
    for cls, written in _KINDS:
        if isinstance(field, cls):
            return dict(written)
    raise WiringError(
        f"`{where}`: a `{type(field).__name__}` has no JSON Schema; make it one of marshmallow's own fields"
    )


def _write_nested(field: fields.Nested, defs: Defs) -> dict[str, JSON]:
    if isinstance(field, fields.Pluck):
        plucked = field.schema.load_fields[field.field_name]
        inner = _write_field(plucked, defs, f"{type(field.schema).__name__}.{field.field_name}")
        return {"type": "array", "items": inner} if field.many else inner
    return _write_schema(field.schema, defs, many=field.many or field.schema.many)


def _write_enum(field: fields.Enum[JSON]) -> dict[str, JSON]:
    # By name where `by_value` is false; the field that reads the values may give them another form, as text.
    options = [member.value if field.by_value else member.name for member in field.enum]
    return (
        {"enum": options, "type": "string"} if all(isinstance(option, str) for option in options) else {"enum": options}
    )


def _write_checks(field: fields.Field[JSON]) -> dict[str, JSON]:
    written: dict[str, JSON] = {}
    for check in field.validators:
        match check:
            case validate.OneOf():
                written["enum"] = list(check.choices)
            case validate.Equal():
                written["enum"] = [check.comparable]
            case validate.Regexp():
                written["pattern"] = check.regex.pattern
            case validate.Range():
                low, high = (("exclusiveM", "m")[is_in] for is_in in (check.min_inclusive, check.max_inclusive))
                written |= _given({f"{low}inimum": check.min, f"{high}aximum": check.max})
            case validate.Length():
                things = "Items" if isinstance(field, fields.List) else "Length"
                low_bound, high_bound = (check.min, check.max) if check.equal is None else (check.equal, check.equal)
                written |= _given({f"min{things}": low_bound, f"max{things}": high_bound})
    return written


def _given(keywords: dict[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in keywords.items() if isinstance(value, int | float)}


_KINDS: tuple[tuple[type, dict[str, JSON]], ...] = (
    (fields.UUID, {"type": "string", "format": "uuid"}),
    (fields.Email, {"type": "string", "format": "email"}),
    (fields.Url, {"type": "string", "format": "uri"}),
    (fields.String, {"type": "string"}),
    (fields.IP, {"type": "string"}),
    (fields.IPInterface, {"type": "string"}),
    (fields.Boolean, {"type": "boolean"}),
    (fields.Integer, {"type": "integer"}),
    (fields.Decimal, {"type": "string"}),
    (fields.Float, {"type": "number"}),
    (fields.TimeDelta, {"type": "number"}),
    (fields.Date, {"type": "string", "format": "date"}),
    (fields.Time, {"type": "string", "format": "time"}),
    (fields.DateTime, {"type": "string", "format": "date-time"}),
    (fields.Raw, {}),
)
"""Marshmallow's fields, the narrower class before the wider."""
