"""What other libraries' schemas must not see in a model's answer.

Strict mode makes a model say `null` for every field that it leaves out. Our own kinds
take that for missing; marshmallow and pydantic would refuse it, so it is removed before
they read, wherever their own JSON Schema has an optional field without null.
"""

from __future__ import annotations

from bigbrain.jsonvalue import JSON


def tidied(value: JSON, schema: dict[str, JSON], root: dict[str, JSON], *, drop_extra: bool = False) -> JSON:
    """The value without nulls that mean "left out".

    root: the schema that holds the `$defs`. drop_extra: also without keys that a schema does not name.
    """
    schema = _resolved(schema, root)
    if isinstance(value, list) and "items" in schema:
        return [tidied(item, schema["items"], root, drop_extra=drop_extra) for item in value]
    if not isinstance(value, dict):
        return value
    schema = _object_in(schema, value, root)
    fields: dict[str, JSON] = schema.get("properties", {})
    rest = schema.get("additionalProperties")
    kept: dict[str, JSON] = {}
    for key, item in value.items():
        if key in fields:
            if item is None and key not in schema.get("required", ()) and not _takes_null(fields[key], root):
                continue
            kept[key] = tidied(item, fields[key], root, drop_extra=drop_extra)
        elif isinstance(rest, dict):
            kept[key] = tidied(item, rest, root, drop_extra=drop_extra)
        elif not drop_extra or rest or not fields:
            kept[key] = item
    return kept


def _resolved(schema: dict[str, JSON], root: dict[str, JSON]) -> dict[str, JSON]:
    """The schema behind a reference, and behind a union with null."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    arms = [arm for arm in schema.get("anyOf", ()) if arm.get("type") != "null"]
    return _resolved(arms[0], root) if len(arms) == 1 else schema


def _object_in(schema: dict[str, JSON], value: dict[str, JSON], root: dict[str, JSON]) -> dict[str, JSON]:
    """The arm of a union that a value belongs to, by the fields that are fixed; the schema itself if it is none."""
    arms = [_resolved(arm, root) for arm in _arms(schema)]
    for arm in arms:
        fixed = {key: field for key, field in arm.get("properties", {}).items() if "const" in field or "enum" in field}
        if fixed and all(value.get(key) in field.get("enum", [field.get("const")]) for key, field in fixed.items()):
            return arm
    return schema


def _arms(schema: dict[str, JSON]) -> list[dict[str, JSON]]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _takes_null(schema: dict[str, JSON], root: dict[str, JSON]) -> bool:
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if any(_takes_null(arm, root) for arm in _arms(schema)):
        return True
    kinds = schema.get("type", ())
    untyped = not {"type", "anyOf", "oneOf", "enum", "const", "allOf"} & schema.keys()
    return "null" in ([kinds] if isinstance(kinds, str) else kinds) or None in schema.get("enum", ()) or untyped
