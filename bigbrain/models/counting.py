"""How many tokens a prompt has, asked of the one who knows: Anthropic, which counts without answering.

Counting is done by the web process, which has no SDK loaded: importing one stops all its
streams for a second. So this is one plain request over the transport that the SDKs use, too.
"""

from __future__ import annotations

import os

import httpx2
import msgspec

from bigbrain.errors import ModelBroke
from bigbrain.messages import JSON, Request
from bigbrain.models.connection import Connection
from bigbrain.models.endpoints import Address
from bigbrain.models.failures import broken, refusal, without_key
from bigbrain.models.spec import compose
from bigbrain.models.transport import client, timeouts
from bigbrain.wire import anthropic

BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
"""The version of the API that takes the key as `x-api-key`, as every compatible server does."""
TIMEOUT = 10.0
"""Seconds: whoever counts is about to ask, and a guess now is worth more than a number later."""
COUNTED = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"}
)
"""The fields of a request that its count depends on; the server refuses all others."""


class _Count(msgspec.Struct):
    input_tokens: int


_clients: dict[tuple[int, Address], httpx2.Client] = {}


def can_count(model: Connection) -> bool:
    """Whether the model's server tells how many tokens a prompt has."""
    return model.model.provider == "anthropic"


def count_tokens(model: Connection, request: Request) -> int:
    """How many input tokens the request has for this model. Raises `ModelError` when its server does not say."""
    url = (model.at.base_url or BASE_URL).rstrip("/")
    written = {**anthropic.write_request(compose(model.model, request)), **model.model.extra}
    body: dict[str, JSON] = {name: value for name, value in written.items() if name in COUNTED}
    try:
        response = _client(model.at, url).post(
            f"{url}/v1/messages/count_tokens",
            content=msgspec.json.encode(body),
            headers={"content-type": "application/json", "anthropic-version": VERSION, "x-api-key": model.at.key},
            timeout=timeouts(TIMEOUT),
        )
        if response.status_code != 200:
            raise without_key(refusal(anthropic, response), model.at.key)
        return msgspec.json.decode(response.content, type=_Count).input_tokens
    except httpx2.HTTPError as exc:
        raise without_key(broken(exc), model.at.key) from exc
    except msgspec.MsgspecError as exc:
        raise ModelBroke(f"the model's server counted nonsense: {exc}") from exc


def _client(at: Address, url: str) -> httpx2.Client:
    """The client of this process for an address; a forked child makes its own."""
    key = (os.getpid(), at)
    found = _clients.get(key)
    return found if found is not None else _clients.setdefault(key, client(url))
