"""Errors that no dialect sees: unknown routes, wrong methods, our own faults, Redis away."""

from __future__ import annotations

import logging

import pytest

from bigbrain.brain import Brain
from bigbrain.errors import ServerEnding
from bigbrain.flows import Flow
from bigbrain.identity import Identity
from bigbrain.models import FixedModel
from bigbrain.settings import Settings
from tests.web.site import BOTH, CHAT, MESSAGES, Pausing, asking, saying, serving
from web import create_app

ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize(
    ("path", "headers", "anthropic"),
    [
        ("/nowhere", {}, False),
        ("/nowhere", ANTHROPIC, True),
        ("/v1/messages/batches", {}, True),
        ("/v1/chat/completions/x", ANTHROPIC, False),
        ("//v1/models", {}, False),
        ("/v1/models/", {}, False),
        ("/static/x", {}, False),
    ],
)
def test_an_unknown_path_is_not_found_in_the_protocols_shape(
    path: str, headers: dict[str, str], anthropic: bool
) -> None:
    with serving(saying("x")) as site:
        response = site.client.get(path, headers=headers, base_url="http://x")

    assert response.status_code == 404
    assert response.json["error"]["type"] == ("not_found_error" if anthropic else "invalid_request_error")
    assert ("request_id" in response.json) is anthropic
    assert response.headers["X-Run-Id"] != ""


@pytest.mark.parametrize("path", BOTH)
def test_a_wrong_method_says_which_ones_are_right(path: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.get(path)

    assert response.status_code == 405
    assert set(response.headers["Allow"].split(", ")) == {"POST"}
    assert response.json["error"]["type"] == "invalid_request_error"


def test_a_websocket_is_refused_so_that_codex_goes_on_by_post() -> None:
    with serving(saying("x")) as site:
        asked = site.client.get("/v1/responses", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
        posted = site.client.post("/v1/responses", json={"model": "b", "input": "x"})
        got = site.client.get("/v1/responses")

    assert (asked.status_code, asked.json["error"]["code"]) == (426, "upgrade_required")
    assert (posted.status_code, got.status_code) == (200, 405)


@pytest.mark.parametrize("path", BOTH)
def test_a_fault_of_our_own_is_logged_and_not_shown(path: str, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Brain):
        def route(self, model: str) -> str:
            raise ZeroDivisionError("internal text")

    with serving(Broken("b", Flow(model=FixedModel("x")))) as site, caplog.at_level(logging.ERROR):
        response = site.client.post(path, json=asking())

    assert response.status_code == 500
    assert response.json["error"]["message"] == "The brain failed to answer."
    assert response.headers["X-Run-Id"] in caplog.text
    assert "internal text" in caplog.text


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_a_request_while_redis_is_away_may_be_sent_again(path: str, stream: bool) -> None:
    with serving(saying("x")) as site:
        site.server.connected = False
        response = site.client.post(path, json=asking(stream=stream))
        site.server.connected = True
        again = site.client.post(path, json=asking())

    assert response.status_code == 503
    assert response.headers["x-should-retry"] == "true"
    assert response.headers["Retry-After"] == "1"
    assert response.json["error"]["type"] in ("server_error", "api_error")
    assert again.status_code == 200


def test_an_open_stream_survives_while_redis_is_away() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        response = site.client.post(CHAT, json=asking(stream=True))
        chunks = iter(response.response)
        first = next(chunks)
        site.server.connected = False
        refused = site.client.post(MESSAGES, json=asking())
        site.server.connected = True
        model.may_go_on.set()
        rest = b"".join(chunks)

    assert refused.status_code == 503
    assert b"begun" in first
    assert rest.endswith(b"data: [DONE]\n\n")


def test_a_stream_that_ends_with_an_error_while_redis_is_away_says_which() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        chunks = iter(site.client.post(CHAT, json=asking(stream=True)).response)
        next(chunks)
        site.server.connected = False
        site.house.hub.dismiss(ServerEnding())
        rest = b"".join(chunks)
        site.server.connected = True
        model.may_go_on.set()

    assert b"server_ending" in rest


def test_a_log_that_has_expired_ends_the_stream_with_an_error() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        site.house.store.kept = 0.0
        response = site.client.post(MESSAGES, json=asking(stream=True))
        chunks = iter(response.response)
        next(chunks)
        run_id = Identity(response.headers["X-Run-Id"]).key
        site.house.store.client.delete(f"bb:run:{run_id}")
        for follower in site.house.hub._followers[run_id]:
            follower.post("again")
        rest = b"".join(chunks)
        model.may_go_on.set()

    assert rest.startswith(b"event: error\n")
    assert b"The run is gone" in rest


def test_an_application_needs_nothing_but_a_reception() -> None:
    with serving(saying("x")) as site:
        app = create_app(site.house.reception, settings=Settings())

        assert app.test_client().post(CHAT, json=asking()).status_code == 200
