"""The servers that this process talks to: one SDK client per provider, address and key, made when first needed.

An SDK costs seconds and about 100 MB to import, so only that of the provider that
is asked is imported; `load` does it ahead of the first call.
"""

from __future__ import annotations

import gc
import os
from importlib import import_module
from typing import NamedTuple, Protocol

import httpx2

from bigbrain.errors import WiringError
from bigbrain.messages import JSON
from bigbrain.models.spec import Api, Model, Provider
from bigbrain.settings import Settings
from bigbrain.wire import Dialect


class Endpoint(Protocol):
    """A provider's server under one key; each provider's module has a class of this name."""

    dialect: Dialect

    def post(self, body: dict[str, JSON], *, tries: int, timeout: float) -> httpx2.Response:
        """The response to a request, its body not read yet. Raises `ModelError`."""


class Address(NamedTuple):
    """What one client is for; without a `base_url`, the provider's own server."""

    provider: Provider
    base_url: str | None
    key: str
    api: Api = "chat"


KEY_VARIABLES: dict[Provider, str] = {"openai": "BIG_BRAIN_API_KEY", "anthropic": "BIG_BRAIN_ANTHROPIC_API_KEY"}
MODULES: dict[Api, dict[Provider, str]] = {
    "chat": {"openai": "openai", "anthropic": "anthropic"},
    "responses": {"openai": "openai_responses"},
}
"""Which module's endpoint speaks a protocol."""
NO_KEY = "none"
"""Sent to a server of one's own, which asks for no key; the SDKs insist on one."""

_endpoints: dict[tuple[int, Address], Endpoint] = {}


def address(model: Model, settings: Settings) -> Address:
    """Where a model is asked: its own address and key, else the environment's for its provider.

    Raises `WiringError` when the provider's own server would be asked without a key.
    """
    ours = {
        "openai": (settings.base_url, settings.api_key),
        "anthropic": (settings.anthropic_base_url, settings.anthropic_api_key),
    }
    base_url, key = ours[model.provider]
    if model.base_url:
        # The environment's key is for the environment's server: it is not sent to another one.
        base_url, key = model.base_url, key if model.base_url == base_url else ""
    key = model.api_key or key
    if not key and not base_url:
        variable = KEY_VARIABLES[model.provider]
        raise WiringError(f"model `{model.name}` has no key; set `{variable}` or the model's `api_key`")
    return Address(model.provider, base_url or None, key or NO_KEY, model.api)


def load(provider: Provider) -> None:
    """Import a provider's SDK now, and spare the garbage collector what it brought; for the start of a process.

    Both SDKs are about 190,000 objects. A full collection that walks them stops every thread
    for 50–100 ms, measured on two shared cores: every stream of a worker, every cancellation.
    What is alive when this is called is never collected, so call it before any work.
    """
    import_module(f"bigbrain.models.{provider}")
    gc.collect()
    gc.freeze()


def endpoint(at: Address) -> Endpoint:
    """The endpoint of this process, made at the first call; a forked child makes its own."""
    key = (os.getpid(), at)
    found = _endpoints.get(key)
    if found is None:
        module = MODULES[at.api][at.provider]
        made: Endpoint = import_module(f"bigbrain.models.{module}").Endpoint(at.base_url, at.key)
        # Two threads may both make one; all use the one that is stored first.
        found = _endpoints.setdefault(key, made)
    return found
