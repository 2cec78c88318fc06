"""Whether a function takes what a definition says: two JSON Schemas of objects, field by field.

Words (descriptions, titles, defaults) do not count, nor does the order of choices. A
field that happens to be named like a keyword of JSON Schema is a field: names are read
as names below `properties` and `$defs` only.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bigbrain.messages import JSON

_WORDS = {"description", "title", "default", "examples", "$schema", "$id", "deprecated"}
_NAMED = {"properties", "$defs"}
_LISTED = {"anyOf", "oneOf", "allOf", "prefixItems"}
_UNORDERED = {"required", "enum", "anyOf", "oneOf"}


def disagreements(defined: dict[str, JSON], taken: dict[str, JSON], function: str) -> Iterator[str]:
    """What a function that takes `taken` gets wrong about a definition, a sentence each with the field."""
    wanted, given = defined.get("properties", {}), taken.get("properties", {})
    for name in sorted(wanted.keys() - given.keys()):
        yield f"field `{name}` has no parameter in `{function}`; add one"
    needed = set(taken.get("required", ()))
    for name in sorted(needed - wanted.keys()):
        yield f"parameter `{name}` of `{function}` is no field of the schema; remove it or give it a default"
    for name in sorted(wanted.keys() & needed - set(defined.get("required", ()))):
        yield f"field `{name}` may be left out, but parameter `{name}` of `{function}` has no default; give it one"
    for name in sorted(wanted.keys() & given.keys()):
        ours, theirs = bare({**wanted[name], **_defs(defined)}), bare({**given[name], **_defs(taken)})
        if ours != theirs:
            yield f"field `{name}` is {_shown(ours)}, but parameter `{name}` of `{function}` is {_shown(theirs)}"


def _defs(schema: dict[str, JSON]) -> dict[str, JSON]:
    return {"$defs": schema["$defs"]} if "$defs" in schema else {}


def bare(schema: JSON) -> JSON:
    """A schema without its words, its unordered lists in one order: equal for schemas that take the same."""
    if not isinstance(schema, dict):
        return schema
    return {key: _value(key, value) for key, value in schema.items() if key not in _WORDS}


def _value(key: str, value: JSON) -> JSON:
    if key in _NAMED and isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items()}
    if key in _LISTED and isinstance(value, list):
        value = [bare(inner) for inner in value]
    elif key in ("enum", "const"):
        return sorted(value, key=_shown) if key == "enum" else value
    else:
        value = bare(value)
    return sorted(value, key=_shown) if key in _UNORDERED else value


def _shown(schema: JSON) -> str:
    return msgspec.json.encode(schema, order="sorted").decode()
