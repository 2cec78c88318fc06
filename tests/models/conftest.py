from __future__ import annotations

from collections.abc import Iterator

import pytest

from bigbrain.models import load
from tests.models.asking import Spoken
from tests.upstream import Upstream


@pytest.fixture(scope="session", autouse=True)
def loaded() -> None:
    """The SDKs as a worker has them before its first step; without it, a full garbage collection takes longer
    than a cancellation may."""
    load("openai")
    load("anthropic")


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture(params=["openai", "anthropic", "responses"])
def provider(request: pytest.FixtureRequest) -> Spoken:
    return request.param
