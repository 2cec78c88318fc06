"""The routes of OpenAI's protocols."""

from __future__ import annotations

from flask import Blueprint, Response
from werkzeug.exceptions import NotFound

from web.endpoints import Endpoints
from web.failures import UpgradeRequired
from web.protocols import CHAT


def routes(endpoints: Endpoints) -> Blueprint:
    """`/v1/chat/completions`, and `/v1/responses` as far as it has to be refused in the right way."""
    blueprint = Blueprint("openai", __name__)

    @blueprint.post("/v1/chat/completions")
    def chat_completions() -> Response:
        return endpoints.answer(CHAT)

    @blueprint.route("/v1/responses", websocket=True)
    def responses_socket() -> Response:
        # Codex asks for a WebSocket first: only this status makes it send its request by POST at once
        raise UpgradeRequired

    @blueprint.route("/v1/responses", methods=["GET", "POST"])
    def responses() -> Response:
        raise NotFound

    return blueprint
