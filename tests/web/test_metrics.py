"""`/metrics`, and how requests are measured."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import msgspec
import pytest
from flask import Flask
from flask.testing import FlaskClient

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import ModelBusy
from bigbrain.flows import Flow
from bigbrain.messages import Request, user
from bigbrain.metrics import Meters
from bigbrain.settings import Limits, Settings
from bigbrain.turns import Turn
from tests.engine.acting import until
from tests.test_metrics import read
from tests.web.site import BOTH, CHAT, MESSAGES, Pausing, Site, asking, listening, saying, serving
from web import create_app

NAMES = {CHAT: "openai_chat", MESSAGES: "anthropic"}


@contextmanager
def measured(brain: Brain, settings: Settings | None = None) -> Iterator[tuple[Site, Flask, Meters]]:
    meters = Meters()
    with serving(brain) as site:
        yield site, create_app(site.house.reception, settings=settings or Settings(), meters=meters), meters


def ask(client: FlaskClient, path: str, *, stream: bool) -> bytes:
    """An answer, read to its end."""
    with client.post(path, json=asking(stream=stream)) as response:
        return response.data


def requests(meters: Meters) -> dict[tuple[str, str, str], float]:
    """Requests by protocol, streamed or not, and status."""
    return {
        (sample.labels["protocol"], sample.labels["stream"], sample.labels["status"]): sample.value
        for family in meters.registry.collect()
        for sample in family.samples
        if sample.name == "bigbrain_requests_total"
    }


@agent
def refused(turn: Turn, chat: Chat) -> None:
    raise ModelBusy


@pytest.mark.parametrize("path", BOTH)
def test_requests_are_counted_and_timed_by_protocol_and_way(path: str) -> None:
    with measured(saying("hello")) as (_, app, meters):
        for stream in (True, True, False):
            ask(app.test_client(), path, stream=stream)

    name = NAMES[path]
    assert requests(meters) == {(name, "true", "200"): 2, (name, "false", "200"): 1}
    get = meters.registry.get_sample_value
    assert get("bigbrain_request_seconds_count", {"protocol": name, "stream": "true"}) == 2
    assert get("bigbrain_request_seconds_count", {"protocol": name, "stream": "false"}) == 1
    assert get("bigbrain_open_streams") == 0


def test_only_a_streamed_answer_has_a_first_token() -> None:
    with measured(saying("hello")) as (_, app, meters):
        get = meters.registry.get_sample_value
        ask(app.test_client(), CHAT, stream=False)
        before = get("bigbrain_request_first_token_seconds_sum", {"protocol": "openai_chat"})
        ask(app.test_client(), CHAT, stream=True)

    first = get("bigbrain_request_first_token_seconds_sum", {"protocol": "openai_chat"})
    whole = get("bigbrain_request_seconds_sum", {"protocol": "openai_chat", "stream": "true"})
    assert before is None
    assert first is not None
    assert whole is not None
    assert 0 < first <= whole < 10


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_fails_is_counted_by_its_status(stream: bool) -> None:
    with measured(Brain("b", Flow(refused))) as (_, app, meters):
        ask(app.test_client(), CHAT, stream=stream)

    assert requests(meters) == {("openai_chat", str(stream).lower(), str(ModelBusy.status)): 1}


def test_a_stream_that_breaks_has_the_status_of_its_error() -> None:
    model = Pausing(error=ModelBusy())
    model.may_go_on.set()
    with measured(Brain("b", Flow(model=model))) as (_, app, meters):
        ask(app.test_client(), CHAT, stream=True)

    assert requests(meters) == {("openai_chat", "true", str(ModelBusy.status)): 1}


def test_what_is_refused_before_a_run_starts_is_counted_too() -> None:
    with measured(saying("x"), Settings(limits=Limits(max_messages=1))) as (_, app, meters):
        client = app.test_client()
        client.post(CHAT, data=b"{")
        client.post(CHAT, json={"messages": [{"role": "user", "content": "a"}] * 2})
        client.post(CHAT, json={"messages": "no"})

    assert requests(meters) == {("openai_chat", "false", "400"): 2, ("openai_chat", "false", "413"): 1}


def test_without_redis_a_request_is_counted_as_unavailable() -> None:
    with measured(saying("x")) as (site, app, meters):
        site.server.connected = False
        ask(app.test_client(), CHAT, stream=False)
        site.server.connected = True

    assert requests(meters) == {("openai_chat", "false", "503"): 1}


def test_a_client_that_leaves_is_counted_as_gone_and_open_until_then() -> None:
    model = Pausing()
    with measured(Brain("b", Flow(model=model))) as (_, app, meters), listening(app) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.request("POST", CHAT, msgspec.json.encode(asking(stream=True)), {"content-type": "application/json"})
        response = connection.getresponse()
        assert model.reached.wait(10)
        during = meters.registry.get_sample_value("bigbrain_open_streams")
        response.close()
        connection.close()
        # a counter is there, at 0, a moment before it counts
        until(lambda: any(requests(meters).values()))
        model.may_go_on.set()

        assert during == 1
        assert requests(meters) == {("openai_chat", "true", "499"): 1}
        assert meters.registry.get_sample_value("bigbrain_open_streams") == 0


def test_the_page_shows_what_was_counted_and_what_redis_holds() -> None:
    model = Pausing()
    with (
        measured(Brain("b", Flow(model=model))) as (site, app, _),
        site.house.reception.receive(Request(messages=(user("hi"),)), "r1", 5.0),
    ):
        assert model.reached.wait(10)
        response = app.test_client().get("/metrics")
        model.may_go_on.set()

    assert response.mimetype == "text/plain"
    samples = read(response.data)
    assert samples["bigbrain_redis_up", ()] == 1
    assert (samples["bigbrain_runs_open", ()], samples["bigbrain_runs_due", ()]) == (1, 0)
    assert samples["bigbrain_retries_total", ()] == 0


def test_without_redis_the_page_says_so_and_shows_the_rest() -> None:
    with measured(saying("x")) as (site, app, _):
        ask(app.test_client(), CHAT, stream=False)
        site.server.connected = False
        response = app.test_client().get("/metrics")
        site.server.connected = True

    samples = read(response.data)
    assert response.status_code == 200
    assert samples["bigbrain_redis_up", ()] == 0
    labels = (("protocol", "openai_chat"), ("status", "200"), ("stream", "false"))
    assert samples["bigbrain_requests_total", labels] == 1


def test_the_page_asks_for_a_key_like_every_other() -> None:
    with measured(saying("x"), Settings(keys=("k",))) as (_, app, _meters):
        refused_status = app.test_client().get("/metrics").status_code
        status = app.test_client().get("/metrics", headers={"Authorization": "Bearer k"}).status_code

    assert (refused_status, status) == (401, 200)
