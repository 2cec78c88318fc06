"""`/v1/diagnostics/trace`: what happened lately."""

from __future__ import annotations

import time

import pytest

from bigbrain.identity import Identity
from bigbrain.ring import SIZE, RedisRing
from bigbrain.settings import Settings
from bigbrain.trace import TraceEvent
from tests.test_trace import Broken, Recorder
from tests.web.site import CHAT, Site, asking, saying, serving
from web import create_app

TRACE = "/v1/diagnostics/trace"


def told(site: Site, *events: tuple[str, str]) -> None:
    ring = RedisRing(site.house.store.client)
    for number, (kind, run) in enumerate(events):
        ring.trace(TraceEvent(kind, run, float(number), detail={"n": number}))
    ring.close()


def test_where_nothing_happened_yet_the_trace_is_empty() -> None:
    with serving(saying("x")) as site:
        response = site.client.get(TRACE)

    assert (response.status_code, response.mimetype, response.json) == (200, "application/json", [])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [0, 1, 2, 3]),
        ("?run=r2", [1, 3]),
        ("?kind=flow", [0, 3]),
        ("?kind=flow.end&run=r2", [3]),
        ("?limit=2", [2, 3]),
        ("?run=unknown", []),
    ],
)
def test_the_trace_is_told_oldest_first_as_the_query_chooses(query: str, expected: list[int]) -> None:
    with serving(saying("x")) as site:
        told(site, ("flow.start", "r1"), ("select", "r2"), ("respond", "r1"), ("flow.end", "r2"))
        events = site.client.get(TRACE + query).json

    assert events is not None
    assert [event["detail"]["n"] for event in events] == expected


def test_an_event_is_told_with_its_place_its_time_and_its_process() -> None:
    with serving(saying("x")) as site:
        told(site, ("respond", "r1"))
        [event] = site.client.get(TRACE).json or []

    assert event.pop("process")
    assert event == {"kind": "respond", "run": "r1", "at": 0.0, "detail": {"n": 0}}


@pytest.mark.parametrize("limit", ["0", "-1", "x", "", str(SIZE + 1), "1" * 50, "١"])
def test_a_limit_that_cannot_be_meant_is_refused(limit: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.get(TRACE, query_string={"limit": limit})

    assert response.status_code == 400
    assert response.json is not None
    assert response.json["error"]["param"] == "limit"


def test_the_trace_asks_for_a_key_like_every_other_route() -> None:
    with serving(saying("x"), Settings(keys=("k",))) as site:
        assert site.client.get(TRACE).status_code == 401
        assert site.client.get(TRACE, headers={"x-api-key": "k"}).status_code == 200


def test_without_redis_the_trace_is_unavailable() -> None:
    with serving(saying("x")) as site:
        site.server.connected = False
        response = site.client.get(TRACE)
        site.server.connected = True

    assert response.status_code == 503


def test_a_request_that_starts_a_run_is_told_under_the_runs_id() -> None:
    recorder, before = Recorder(), time.time()
    with serving(saying("x")) as site:
        app = create_app(site.house.reception, settings=Settings(), tracers=(Broken(), recorder))
        response = app.test_client().post(CHAT, json=asking(model="b" * 1000))

    event = recorder.only("run.start")
    assert response.status_code == 200
    assert (event.run, event.flow) == (Identity(response.headers["X-Run-Id"]).key, "b")
    assert event.detail == {"model": "b" * 200, "stream": False}
    assert before <= event.at <= time.time()


def test_a_request_that_starts_no_run_is_not_told() -> None:
    recorder = Recorder()
    with serving(saying("x")) as site:
        app = create_app(site.house.reception, settings=Settings(), tracers=(recorder,))
        app.test_client().post(CHAT, data=b"{")

    assert recorder.events == []
