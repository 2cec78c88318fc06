"""The routes of Anthropic's protocol."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from bigbrain.wire import anthropic
from web.bodies import read_body
from web.endpoints import Endpoints
from web.protocols import MESSAGES

COUNTED_BY = "X-Brain-Tokens-By"
"""Header: whether a number of tokens is the `model`'s own count or an `estimate`."""


def routes(endpoints: Endpoints) -> Blueprint:
    """`/v1/messages` and `/v1/messages/count_tokens`."""
    blueprint = Blueprint("anthropic", __name__)

    @blueprint.post("/v1/messages")
    def messages() -> Response:
        return endpoints.answer(MESSAGES)

    @blueprint.post("/v1/messages/count_tokens")
    def count_tokens() -> Response:
        counted = endpoints.count(anthropic.read_request(read_body(request, endpoints.limits)))
        response = jsonify(input_tokens=counted.tokens)
        response.headers[COUNTED_BY] = "model" if counted.exact else "estimate"
        return response

    return blueprint
