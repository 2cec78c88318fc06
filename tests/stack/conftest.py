"""Deployments for the tests of the whole stack: one for each file that asks, ended after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.deployment import Deployment, deployed
from tests.upstream import Upstream


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def stack(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Two web processes and two workers with the brains of `tests.brains`, before a fake model server."""
    data = Path(tmp_path_factory.mktemp("data"))
    arguments = ("up", "tests.brains", "--port", "0", "--web", "2", "--workers", "2")
    with deployed(*arguments, data=data, UPSTREAM=upstream.url, UPSTREAM_TIMEOUT="2") as deployment:
        yield deployment
