"""What may be asked here: the brain's flows as a list of models, in the shape of the client's protocol.

Source: OpenAI API reference, "Models"; Anthropic API reference, "Models".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from flask import Blueprint, Response, jsonify, request

from bigbrain.errors import NotFound, WireError
from bigbrain.messages import JSON
from bigbrain.reception import Reception
from web.protocols import MESSAGES, protocol_of

PAGE = 20
LONGEST_PAGE = 1000


def routes(reception: Reception) -> Blueprint:
    """`/v1/models` and `/v1/models/{id}`; an id may hold slashes."""
    blueprint = Blueprint("models", __name__)

    @blueprint.get("/v1/models")
    def models() -> Response:
        served = reception.served()
        if protocol_of(request) is MESSAGES:
            return jsonify(_write_page(served))
        return jsonify(object="list", data=[_write_openai(name, created) for name, created in served.items()])

    @blueprint.get("/v1/models/<path:name>")
    def model(name: str) -> Response:
        served = reception.served()
        if name not in served:
            raise NotFound(f"there is no model `{name[:200]}`; `/v1/models` lists those there are", param="model")
        write = _write_anthropic if protocol_of(request) is MESSAGES else _write_openai
        return jsonify(write(name, served[name]))

    return blueprint


def _write_openai(name: str, created: int) -> dict[str, JSON]:
    return {"id": name, "object": "model", "created": created, "owned_by": "bigbrain"}


def _write_anthropic(name: str, created: int) -> dict[str, JSON]:
    """A model with all fields of the protocol; null where a brain has no such thing."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "line": None,
        "max_input_tokens": None,
        "max_tokens": None,
        "deprecated_at": None,
        "retires_at": None,
        "capabilities": None,
    }


def _write_page(served: Mapping[str, int]) -> dict[str, JSON]:
    """One page of the list. The SDKs ask for pages as long as there are more, so the cursor has to be honoured."""
    names = tuple(served)
    limit = _read_limit()
    after, before = _read_place(names, "after_id"), _read_place(names, "before_id")
    first = 0 if after is None else after + 1
    last = len(names) if before is None else before
    backwards = before is not None and after is None
    page = names[max(first, last - limit) : last] if backwards else names[first : min(last, first + limit)]
    return {
        "data": [_write_anthropic(name, served[name]) for name in page],
        "has_more": len(page) < last - first,
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }


def _read_limit() -> int:
    text = request.args.get("limit", str(PAGE))
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LONGEST_PAGE):
        raise WireError(f"`limit` must be a whole number from 1 to {LONGEST_PAGE}", param="limit")
    return int(text)


def _read_place(names: Sequence[str], param: str) -> int | None:
    name = request.args.get(param)
    if not name:
        return None
    if name not in names:
        raise WireError(f"`{param}` names no model that is served here", param=param)
    return names.index(name)
