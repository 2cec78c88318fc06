"""Calls to Anthropic and to servers that speak its messages, by the official SDK's client.

The SDK does authentication and headers; the answer's bytes are read by `wire`,
because one typed event of the SDK costs more than everything else on a token's way.
Answers are always streamed, which also keeps the SDK from refusing large `max_tokens`.
"""

from __future__ import annotations

import anthropic as sdk
import httpx2
import msgspec
from anthropic import Omit, Stream

from bigbrain.messages import JSON
from bigbrain.models.failures import broken, refusal
from bigbrain.models.transport import client, timeouts
from bigbrain.wire import Dialect, anthropic

BASE_URL = "https://api.anthropic.com"
SAMPLING = frozenset({"temperature", "top_p", "top_k"})
SAMPLING_VERSION = "2023-06-01"
"""The API version of the SDK, 2026-10-21, answers 400 to these fields; this one takes them, with the key as `x-api-key`."""


class Endpoint:
    """A server under one key, with its pool of connections."""

    dialect: Dialect = anthropic

    def __init__(self, base_url: str | None, api_key: str) -> None:
        url = base_url or BASE_URL
        self._key = api_key
        # Retries are ours (`connection.py`): the SDK sleeps between them, and nothing could wake it.
        self._client = sdk.Anthropic(base_url=url, api_key=api_key, max_retries=0, http_client=client(url))

    def post(self, body: dict[str, JSON], *, tries: int, timeout: float) -> httpx2.Response:
        """The response to a request, its body not read yet.

        tries: how often it was sent before.

        Raises `ModelError` when the server refuses it or cannot be reached.
        """
        stream: bool = True
        headers: dict[str, str | Omit] = {"x-stainless-retry-count": str(tries)}
        if SAMPLING & body.keys():
            headers |= {"anthropic-version": SAMPLING_VERSION, "x-api-key": self._key, "authorization": Omit()}
        try:
            response = self._client.post(
                "/v1/messages",
                cast_to=httpx2.Response,
                content=msgspec.json.encode(body),
                options={"timeout": timeouts(timeout), "headers": headers},
                stream=stream,
                stream_cls=Stream[object],
            )
        except sdk.APIStatusError as exc:
            # The SDK's text holds the server's words, so it does not go on with ours.
            raise refusal(self.dialect, exc.response) from None
        except sdk.AnthropicError as exc:
            raise broken(exc) from exc
        assert isinstance(response, httpx2.Response)  # noqa: S101 - what `cast_to` promises, for the type checker
        return response
