"""`/openapi.json`: every route of this application, made of the routes themselves, so that none can be missing."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Blueprint, Flask, Response, jsonify
from marshmallow import Schema
from werkzeug.routing import Rule

from bigbrain.cli.versions import own_version
from bigbrain.messages import JSON
from web import resources


class Shapes(NamedTuple):
    """What a route takes and gives; `streams`: gives server-sent events as well, where they are asked for."""

    gives: type[Schema]
    takes: type[Schema] | None = None
    streams: bool = False


SHAPES = {
    "/v1/chat/completions": Shapes(resources.ChatCompletionSchema, resources.ChatRequestSchema, streams=True),
    "/v1/responses": Shapes(resources.ResponseSchema, resources.ResponsesRequestSchema, streams=True),
    "/v1/responses/{response_id}": Shapes(resources.ResponseSchema, streams=True),
    "/v1/responses/{response_id}/cancel": Shapes(resources.ResponseSchema),
    "/v1/responses/{response_id}/input_items": Shapes(resources.ItemsSchema),
    "/v1/responses/input_tokens": Shapes(resources.CountSchema, resources.ResponsesRequestSchema),
    "/v1/messages": Shapes(resources.MessageAnswerSchema, resources.MessagesRequestSchema, streams=True),
    "/v1/messages/count_tokens": Shapes(resources.CountSchema, resources.CountRequestSchema),
    "/v1/models": Shapes(resources.ModelsSchema),
    "/v1/models/{name}": Shapes(resources.ModelSchema),
    "/healthz": Shapes(resources.HealthSchema),
    "/readyz": Shapes(resources.HealthSchema),
}
"""Path → shapes, for the routes whose shapes are fixed; others are told of without."""

METHODS = ("get", "post", "put", "patch", "delete")


def routes(app: Flask) -> Blueprint:
    """`/openapi.json` for an application with all its routes."""
    blueprint = Blueprint("openapi", __name__)

    @blueprint.get("/openapi.json")
    def openapi() -> Response:
        """This description."""
        return jsonify(describe(app))

    return blueprint


def describe(app: Flask) -> dict[str, JSON]:
    """An OpenAPI 3.1 description of an application."""
    spec = APISpec("bigbrain", own_version(), "3.1.0", plugins=[MarshmallowPlugin(schema_name_resolver=_name)])
    spec.components.security_scheme("bearer", {"type": "http", "scheme": "bearer"})
    spec.components.security_scheme("key", {"type": "apiKey", "in": "header", "name": "x-api-key"})
    spec.options["security"] = [{}, {"bearer": []}, {"key": []}]
    operations: dict[str, dict[str, JSON]] = {}
    for rule in app.url_map.iter_rules():
        if not rule.websocket:
            operations.setdefault(_path(rule), {}).update(_operations(app, rule))
    for path in sorted(operations):
        spec.path(path, operations=operations[path], parameters=_parameters(path))
    described: dict[str, JSON] = spec.to_dict()
    return described


def _name(schema: type[Schema] | Schema | str) -> str:
    found = schema if isinstance(schema, str) else (schema if isinstance(schema, type) else type(schema)).__name__
    return found.removesuffix("Schema")


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _parameters(path: str) -> list[JSON]:
    names = re.findall(r"{(\w+)}", path)
    return [{"in": "path", "name": name, "required": True, "schema": {"type": "string"}} for name in names]


def _operations(app: Flask, rule: Rule) -> Iterator[tuple[str, JSON]]:
    path, shapes = _path(rule), SHAPES.get(_path(rule))
    told = inspect.getdoc(app.view_functions[rule.endpoint]) or ""
    for method in METHODS:
        if method.upper() not in (rule.methods or ()):
            continue
        operation: dict[str, JSON] = {
            "operationId": f"{method}_{re.sub(r'[^a-z0-9]+', '_', path.lower()).strip('_') or 'root'}",
            "responses": {"200": _answer(shapes), "default": _error(path)},
        }
        if told:
            operation["summary"] = told.splitlines()[0]
        if shapes and shapes.takes:
            content = {"application/json": {"schema": shapes.takes}}
            operation["requestBody"] = {"required": True, "content": content}
        yield method, operation


def _answer(shapes: Shapes | None) -> dict[str, JSON]:
    if shapes is None:
        return {"description": "the answer"}
    content: dict[str, JSON] = {"application/json": {"schema": shapes.gives}}
    if shapes.streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return {"description": (shapes.gives.__doc__ or "the answer").splitlines()[0], "content": content}


def _error(path: str) -> dict[str, JSON]:
    shape = resources.AnthropicErrorSchema if path.startswith("/v1/messages") else resources.ErrorSchema
    return {"description": "an error, in the protocol's shape", "content": {"application/json": {"schema": shape}}}
