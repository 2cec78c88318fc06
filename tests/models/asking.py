"""How the tests of this folder ask a model over the wire."""

from __future__ import annotations

from typing import Literal

import pytest

from bigbrain.errors import BrainError
from bigbrain.events import Delta, Event, collect
from bigbrain.messages import Request, Response
from bigbrain.models import Asks, Model, connect
from bigbrain.models.spec import Api, Provider
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.contracts.model import QUESTION
from tests.upstream import Upstream

KEY = "canary-key-0123456789"


Spoken = Provider | Literal["responses"]
"""A provider by what is spoken with it; `responses` is OpenAI's other protocol."""


def spec(up: Upstream, provider: Spoken, name: str = "echo") -> Model:
    api: Api = "responses" if provider == "responses" else "chat"
    by: Provider = "anthropic" if provider == "anthropic" else "openai"
    base_url = up.anthropic if provider == "anthropic" else up.openai
    return Model(name, provider=by, api=api, base_url=base_url, api_key=KEY, timeout=5, retries=0, pause=0.01)


def asks(up: Upstream, provider: Spoken, name: str, *, retries: int = 0, timeout: float = 5) -> Asks:
    return connect(spec(up, provider, name).having(retries=retries, timeout=timeout), Settings())


def answer(asked: Asks, request: Request = QUESTION) -> Response:
    return collect(asked.ask(request, Scope()))


def partly(asked: Asks) -> tuple[list[Event], BrainError]:
    """What came of an answer that broke off, and why it did."""
    events: list[Event] = []
    with pytest.raises(BrainError) as caught:
        for event in asked.ask(QUESTION, Scope()):
            events.append(event)
    return events, caught.value


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))
