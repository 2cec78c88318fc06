"""The model that does what a request asks of its answer: calls the tool that it must, fits the schema that is given.

Real models do so, and clients that force a call or ask for a shape fail without. It calls of its own will only where one
tool is offered and nothing has answered yet.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.upstream_answers import Answer, Call, content_text, conversation, split

GREETING = "Hello from the model."


def obeying(body: dict[str, Any]) -> Answer:
    """The answer that a request in either protocol asks for."""
    tools = {tool["name"]: tool for tool in map(_tool, body.get("tools") or [])}
    name = _called(body, tools)
    if name is not None:
        return Answer(calls=(Call(name, json.dumps(example(tools[name]["schema"])), "call_1"),), stop="calls")
    if (schema := _wanted(body)) is not None:
        return Answer(split(json.dumps(example(schema))))
    return Answer(split(GREETING))


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    inner = tool.get("function") or tool.get("custom") or tool
    return {
        "name": inner.get("name") or tool["type"],
        "schema": inner.get("parameters") or inner.get("input_schema") or {},
    }


def _called(body: dict[str, Any], tools: dict[str, Any]) -> str | None:
    """The tool that is to be called, or that an obliging model calls."""
    choice = body.get("tool_choice") or "auto"
    kind = choice if isinstance(choice, str) else choice["type"]
    if not tools or kind == "none":
        return None
    if isinstance(choice, dict) and kind in ("function", "tool"):
        return str((choice.get("function") or choice)["name"])
    if kind in ("required", "any") or (len(tools) == 1 and not _has_results(body)):
        return next(iter(tools))
    return None


def _has_results(body: dict[str, Any]) -> bool:
    for message in conversation(body):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if (
            "output" in message
            or message.get("role") == "tool"
            or any(block.get("type") == "tool_result" for block in blocks)
        ):
            return True
    return False


def _wanted(body: dict[str, Any]) -> dict[str, Any] | None:
    """The schema that the answer must fit; that of any object where only JSON is asked for."""
    places = [
        body.get("response_format"),
        *((body.get(name) or {}).get("format") for name in ("output_config", "text")),
    ]
    form = next((place for place in places if place), {"type": "text"})
    match form["type"]:
        case "json_schema":
            return dict((form.get("json_schema") or form)["schema"])
        case "json_object":
            return _in_words(body) or {"type": "object"}
        case _:
            return _in_words(body)


def _in_words(body: dict[str, Any]) -> dict[str, Any] | None:
    """The first JSON Schema of an object that stands in the conversation's own words."""
    contents = [body.get("system"), *(message.get("content") for message in conversation(body))]
    text = "\n".join(content_text(content) for content in contents)
    for place in (found.start() for found in re.finditer(r"{", text)):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, place)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("properties"), dict):
            return value
    return {"type": "object"} if "one JSON object" in text else None


def example(schema: dict[str, Any], root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """A value that fits a JSON Schema of the kinds that clients send."""
    root = schema if root is None else root
    if "$ref" in schema:
        found: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return example(found, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return example(schema[several][0], root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            wanted = schema.get("required", list(properties)) if depth < 8 else schema.get("required", [])
            return {name: example(properties[name], root, depth + 1) for name in wanted}
        case "array":
            return [example(schema.get("items", {}), root, depth + 1)] * max(1, schema.get("minItems", 1))
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "x" * max(5, schema.get("minLength", 0))
