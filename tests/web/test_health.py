"""Whether the process lives, and whether it can answer."""

from __future__ import annotations

import pytest

from bigbrain.settings import Settings
from tests.web.site import saying, serving
from web import create_app


def test_a_process_that_answers_lives() -> None:
    with serving(saying("x")) as site:
        site.server.connected = False
        response = site.client.get("/healthz")
        site.server.connected = True

    assert (response.status_code, response.json) == (200, {"status": "ok"})


def test_without_a_worker_it_is_not_ready() -> None:
    with serving(saying("x")) as site:
        response = site.client.get("/readyz")

    assert (response.status_code, response.json) == (503, {"status": "missing", "missing": ["worker"]})


def test_a_worker_that_tells_that_it_lives_makes_it_ready() -> None:
    with serving(saying("x")) as site:
        site.house.store.client.set("bb:worker:io-1@here", "1", ex=10)
        response = site.client.get("/readyz")

    assert (response.status_code, response.json) == (200, {"status": "ok", "missing": []})


def test_without_redis_it_is_not_ready() -> None:
    with serving(saying("x")) as site:
        site.server.connected = False
        response = site.client.get("/readyz")
        site.server.connected = True

    assert (response.status_code, response.json) == (503, {"status": "missing", "missing": ["redis"]})


def test_a_process_that_is_its_own_worker_says_so() -> None:
    with serving(saying("x")) as site:
        app = create_app(site.house.reception, settings=Settings(), workers=lambda: 1)

        assert app.test_client().get("/readyz").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/hello"])
def test_whoever_only_looks_whether_anybody_is_there_is_answered(path: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.head(path)

    assert (response.status_code, response.data) == (200, b"")
