"""A JSON Schema in the form that strict modes accept.

OpenAI's, Azure's and Anthropic's constrained decoding each take a part of JSON Schema;
this is what all three take. In every object, also in `$defs`, `additionalProperties` is
false and every property is required; one that may be left out may be null instead.
Kept are `type`, `properties`, `items`, `anyOf`, `enum`, `$ref` and `description`.
`const` becomes an `enum`, `oneOf` an `anyOf`, a fixed row (`prefixItems`) a list of either kind.
Every other keyword (`format`, `pattern`, `minLength`, `minimum`, `minItems`, `uniqueItems`,
`default`, …) is dropped, and told in the description, so that the model still knows it;
reading checks it all the same. `title` and `examples` are dropped without a word.

A schema that takes keys or values of the model's own choosing (`dict[str, T]`, `Any`)
has no strict form. Anthropic takes no recursive schema, OpenAI does.

Source: OpenAI guide "Structured outputs", supported schemas; Azure OpenAI, same title;
Anthropic guide "Structured outputs", JSON Schema limitations.
"""

from __future__ import annotations

import msgspec

from bigbrain.jsonvalue import JSON

_KEPT = {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "$ref", "description"}
_REWRITTEN = {"const", "oneOf", "allOf", "prefixItems", "$defs"}
_SILENT = {"title", "examples", "$schema", "$id", "discriminator", "deprecated", "readOnly", "writeOnly"}
_OPEN = {
    "patternProperties",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "unevaluatedProperties",
}


class _Open(Exception):
    """Raised when a schema has no strict form."""


def write_strict(schema: dict[str, JSON]) -> dict[str, JSON] | None:
    """The strict form of a schema, None if it has none."""
    try:
        strict = _strict(schema)
        defs = {name: _strict(inner) for name, inner in schema.get("$defs", {}).items()}
    except _Open:
        return None
    return {**strict, "$defs": defs} if defs else strict


def _strict(schema: JSON) -> dict[str, JSON]:
    if not isinstance(schema, dict) or _OPEN & schema.keys():
        raise _Open
    if "allOf" in schema:
        return _strict(_merged(schema))
    words = _words(schema)
    if "$ref" in schema:
        target = {"$ref": schema["$ref"]}
        # OpenAI refuses a `$ref` with other keywords beside it.
        return {"anyOf": [target], **words} if words else target
    if isinstance(schema.get("type"), list):
        return {"anyOf": [_strict(arm) for arm in _arms_by_type(schema)], **words}
    return {**_shape(schema), **words}


def _shape(schema: dict[str, JSON]) -> dict[str, JSON]:
    """What a schema without references and unions of types says of the value's form."""
    if "const" in schema or "enum" in schema:
        options = schema.get("enum", [schema.get("const")])
        return {"type": schema.get("type") or _type_of(options), "enum": options}
    if arms := schema.get("anyOf") or schema.get("oneOf"):
        return {"anyOf": [_strict(arm) for arm in arms]}
    match schema.get("type"):
        case "object":
            return _strict_object(schema)
        case "array":
            items = schema.get("items") or _either(schema.get("prefixItems", []))
            return {"type": "array", "items": _strict(items)}
        case None:
            raise _Open
        case plain:
            return {"type": plain}


def _strict_object(schema: dict[str, JSON]) -> dict[str, JSON]:
    if "properties" not in schema or schema.get("additionalProperties"):
        raise _Open
    required = schema.get("required", ())
    return {
        "type": "object",
        "properties": {
            name: _strict(field) if name in required else _nullable(_strict(field))
            for name, field in schema["properties"].items()
        },
        "required": list(schema["properties"]),
        "additionalProperties": False,
    }


def _nullable(schema: dict[str, JSON]) -> dict[str, JSON]:
    null = {"type": "null"}
    arms = schema.get("anyOf", ())
    if schema.get("type") == "null" or null in arms:
        return schema
    outside = {"description": schema["description"]} if "description" in schema else {}
    inside = {key: value for key, value in schema.items() if key != "description"}
    return {"anyOf": [*arms, null] if arms else [inside, null], **outside}


def _words(schema: dict[str, JSON]) -> dict[str, JSON]:
    """The description, with what the strict form cannot say."""
    dropped = schema.keys() - _KEPT - _REWRITTEN - _SILENT
    told = ", ".join(f"{key} {msgspec.json.encode(schema[key]).decode()}" for key in schema if key in dropped)
    description = " ".join(filter(None, (schema.get("description", ""), f"({told})" if told else "")))
    return {"description": description} if description else {}


def _merged(schema: dict[str, JSON]) -> dict[str, JSON]:
    if len(schema["allOf"]) > 1:
        raise _Open
    return {**schema["allOf"][0], **{key: value for key, value in schema.items() if key != "allOf"}}


def _arms_by_type(schema: dict[str, JSON]) -> list[dict[str, JSON]]:
    """One schema for each type of a list of types; the providers differ on the list."""
    arms: list[dict[str, JSON]] = []
    for name in schema["type"]:
        arm = {key: value for key, value in schema.items() if key in _KEPT | _REWRITTEN and key != "description"}
        arm["type"] = name
        if "enum" in schema:
            arm["enum"] = [option for option in schema["enum"] if _type_of([option]) == name]
        arms.append({"type": "null"} if name == "null" else arm)
    return arms


def _type_of(options: list[JSON]) -> JSON:
    names = [_TYPES.get(type(option)) for option in options]
    if None in names or not names:
        raise _Open
    return names[0] if len(set(names)) == 1 else list(dict.fromkeys(names))


def _either(arms: list[JSON]) -> dict[str, JSON]:
    different = [arm for index, arm in enumerate(arms) if arm not in arms[:index]]
    return different[0] if len(different) == 1 else {"anyOf": different} if different else {}


_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}
