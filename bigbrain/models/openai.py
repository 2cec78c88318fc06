"""Calls to OpenAI and to every server that speaks its chat completions, by the official SDK's client.

The SDK does authentication and headers; the answer's bytes are read by `wire`,
because one typed chunk of the SDK costs more than everything else on a token's way.
"""

from __future__ import annotations

import httpx2
import msgspec
import openai
from openai import Stream

from bigbrain.messages import JSON
from bigbrain.models.failures import broken, refusal
from bigbrain.models.transport import client, timeouts
from bigbrain.wire import Dialect, openai_chat

BASE_URL = "https://api.openai.com/v1"
PATH = "/chat/completions"


class Endpoint:
    """A server under one key, with its pool of connections."""

    dialect: Dialect = openai_chat

    def __init__(self, base_url: str | None, api_key: str) -> None:
        url = base_url or BASE_URL
        # Retries are ours (`connection.py`): the SDK sleeps between them, and nothing could wake it.
        self._client = openai.OpenAI(base_url=url, api_key=api_key, max_retries=0, http_client=client(url))

    def post(self, body: dict[str, JSON], *, tries: int, timeout: float, path: str = PATH) -> httpx2.Response:
        """The response to a request, its body not read yet.

        tries: how often it was sent before. path: where it goes, below the server's address.

        Raises `ModelError` when the server refuses it or cannot be reached.
        """
        stream: bool = True
        try:
            response = self._client.post(
                path,
                cast_to=httpx2.Response,
                content=msgspec.json.encode(body),
                options={"timeout": timeouts(timeout), "headers": {"x-stainless-retry-count": str(tries)}},
                stream=stream,
                stream_cls=Stream[object],
            )
        except openai.APIStatusError as exc:
            # The SDK's text holds the server's words, so it does not go on with ours.
            raise refusal(self.dialect, exc.response) from None
        except openai.OpenAIError as exc:
            raise broken(exc) from exc
        assert isinstance(response, httpx2.Response)  # noqa: S101 - what `cast_to` promises, for the type checker
        return response
