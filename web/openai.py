"""The routes of OpenAI's protocols."""

from __future__ import annotations

from flask import Blueprint, Response

from web.endpoints import Endpoints
from web.protocols import CHAT


def routes(endpoints: Endpoints) -> Blueprint:
    """`/v1/chat/completions`; those of responses, which are many, are in `responses.py`."""
    blueprint = Blueprint("openai", __name__)

    @blueprint.post("/v1/chat/completions")
    def chat_completions() -> Response:
        return endpoints.answer(CHAT)

    return blueprint
