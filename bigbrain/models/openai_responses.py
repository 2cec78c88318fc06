"""Calls to OpenAI, and to other servers, by the Responses API.

The server, its client and its errors are those of chat completions; what differs is the path, the dialect,
and that nothing of a conversation is to stay with the server: a brain keeps its own.
"""

from __future__ import annotations

import httpx2

from bigbrain.messages import JSON
from bigbrain.models import openai
from bigbrain.wire import Dialect, openai_responses

PATH = "/responses"


class Endpoint:
    """A server under one key, with its pool of connections."""

    dialect: Dialect = openai_responses

    def __init__(self, base_url: str | None, api_key: str) -> None:
        self._server = openai.Endpoint(base_url, api_key)

    def post(self, body: dict[str, JSON], *, tries: int, timeout: float) -> httpx2.Response:
        """The response to a request, its body not read yet.

        tries: how often it was sent before.

        Raises `ModelError` when the server refuses it or cannot be reached.
        """
        return self._server.post({"store": False, **body}, tries=tries, timeout=timeout, path=PATH)
