"""A server that refuses schemas as strict modes do, and a small JSON Schema checker of its own.

Both are written apart from the code under test, from the providers' rules.
"""

from __future__ import annotations

from typing import Any

ALLOWED = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "$ref",
    "$defs",
    "description",
}
TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def refusals(schema: dict[str, Any]) -> list[str]:
    """Why a strict server answers 400; empty if it takes the schema."""
    found: list[str] = []
    if schema.get("type") != "object":
        found.append("the root is not an object")
    _look(schema, "root", schema, found)
    return found


def _look(node: Any, path: str, root: dict[str, Any], found: list[str]) -> None:
    if not isinstance(node, dict):
        found.append(f"{path}: {node!r} is not a schema")
        return
    found += [f"{path}: '{key}' is not permitted" for key in node.keys() - ALLOWED]
    if "$defs" in node and node is not root:
        found.append(f"{path}: $defs below the root")
    if "$ref" in node:
        if node.keys() != {"$ref"}:
            found.append(f"{path}: $ref cannot have keywords beside it")
        if node["$ref"].removeprefix("#/$defs/") not in root.get("$defs", {}):
            found.append(f"{path}: unknown {node['$ref']}")
        return
    if "type" not in node and "anyOf" not in node:
        found.append(f"{path}: must have a type")
    if isinstance(node.get("type"), list):
        found.append(f"{path}: a list of types")
    if node.get("type") == "object":
        if node.get("additionalProperties") is not False:
            found.append(f"{path}: 'additionalProperties' is required to be supplied and to be false")
        if set(node.get("required", ())) != set(node.get("properties", {})):
            found.append(f"{path}: 'required' is required to include every key in properties")
    if node.get("type") == "array" and "items" not in node:
        found.append(f"{path}: array schema missing items")
    for name, inner in node.get("properties", {}).items():
        _look(inner, f"{path}.{name}", root, found)
    for name, inner in node.get("$defs", {}).items():
        _look(inner, f"{path}/$defs/{name}", root, found)
    for inner in node.get("anyOf", ()):
        _look(inner, f"{path}/anyOf", root, found)
    if "items" in node:
        _look(node["items"], f"{path}[]", root, found)
    _first_keys(node, path, root, found)


def _first_keys(node: dict[str, Any], path: str, root: dict[str, Any], found: list[str]) -> None:
    """The objects of a union may begin with the same key only if its fixed values differ."""
    seen: list[tuple[str, str]] = []
    for arm in node.get("anyOf", ()):
        arm = root["$defs"][arm["$ref"].removeprefix("#/$defs/")] if "$ref" in arm else arm
        for key, inner in list(arm.get("properties", {}).items())[:1]:
            seen.append((key, str(inner.get("enum"))))
    if len(seen) != len(set(seen)):
        found.append(f"{path}: objects provided via 'anyOf' must not share identical first keys")


def valid(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None) -> bool:
    """Whether a value is valid under a schema, by the keywords that strict modes take."""
    root = root or schema
    if "$ref" in schema:
        return valid(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root)
    if "anyOf" in schema and not any(valid(value, arm, root) for arm in schema["anyOf"]):
        return False
    if "enum" in schema and not any(type(value) is type(option) and value == option for option in schema["enum"]):
        return False
    if "type" in schema and not _is(value, schema["type"]):
        return False
    if isinstance(value, list):
        return all(valid(item, schema.get("items", {}), root) for item in value)
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        if schema.get("additionalProperties") is False and value.keys() - fields.keys():
            return False
        inside = all(valid(item, fields[key], root) for key, item in value.items() if key in fields)
        return inside and set(schema.get("required", ())) <= value.keys()
    return True


def _is(value: Any, name: str | list[str]) -> bool:
    if isinstance(name, list):
        return any(_is(value, one) for one in name)
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])
