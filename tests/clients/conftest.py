"""One deployment for all clients: `bigbrain up` with transparent brains before a fake model server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anthropic
import openai
import pytest

from tests.stack.deployment import Deployment, deployed
from tests.upstream import Upstream

BRAINS = ["stub-model", "stub-claude", "stub-responses"]
"""The model behind speaks each protocol, whatever the client speaks."""


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="session")
def stack(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    data = Path(tmp_path_factory.mktemp("data"))
    with deployed("up", "tests.clients.brain", "--port", "0", data=data, UPSTREAM=upstream.url) as deployment:
        yield deployment


@pytest.fixture(params=BRAINS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def chat(stack: Deployment) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=stack.openai, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture(scope="session")
def claude(stack: Deployment) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=stack.url, api_key="k", max_retries=0) as client:
        yield client
