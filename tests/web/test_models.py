"""The list of models, in both shapes."""

from __future__ import annotations

import time

import pytest

from bigbrain.brain import Brain
from bigbrain.flows import Flow
from bigbrain.messages import JSON
from bigbrain.models import FixedModel
from tests.web.site import serving

ANTHROPIC = {"anthropic-version": "2026-10-21"}


def brain_of(*names: str) -> Brain:
    brain = Brain("b", Flow(model=FixedModel("x")))
    for name in names:
        brain.add_flow(Flow(model=FixedModel("x")), name=name)
    return brain


def test_openais_clients_see_the_flows_in_order() -> None:
    before = int(time.time())
    with serving(brain_of("acme/coder", "zeta", "alpha")) as site:
        body = site.client.get("/v1/models").json
        again = site.client.get("/v1/models").json

    assert body["object"] == "list"
    created = body["data"][1].pop("created")
    assert before <= created <= time.time()
    assert again["data"][1].pop("created") == created
    assert body["data"][1] == {"id": "acme/coder", "object": "model", "owned_by": "bigbrain"}
    assert [model["id"] for model in body["data"]] == ["b", "acme/coder", "zeta", "alpha"]


def test_anthropics_clients_see_the_same_in_their_shape() -> None:
    with serving(brain_of("claude-coder")) as site:
        body = site.client.get("/v1/models?limit=1000", headers=ANTHROPIC).json

    assert (body["has_more"], body["first_id"], body["last_id"]) == (False, "b", "claude-coder")
    assert [(model["type"], model["id"], model["display_name"]) for model in body["data"]] == [
        ("model", "b", "b"),
        ("model", "claude-coder", "claude-coder"),
    ]
    assert body["data"][0]["created_at"].endswith("Z")


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [
        ("limit=2", ["b", "m1"], True),
        ("limit=2&after_id=m1", ["m2", "m3"], True),
        ("limit=2&after_id=m3", ["m4"], False),
        ("after_id=m4", [], False),
        ("limit=2&before_id=m3", ["m1", "m2"], True),
        ("before_id=m1", ["b"], False),
        ("before_id=b", [], False),
        ("after_id=b&before_id=m3", ["m1", "m2"], False),
        ("limit=5", ["b", "m1", "m2", "m3", "m4"], False),
        ("lifecycle[]=active", ["b", "m1", "m2", "m3", "m4"], False),
    ],
)
def test_pages_are_what_was_asked_for(query: str, ids: list[str], more: bool) -> None:
    with serving(brain_of("m1", "m2", "m3", "m4")) as site:
        body = site.client.get(f"/v1/models?{query}", headers=ANTHROPIC).json

    assert ([model["id"] for model in body["data"]], body["has_more"]) == (ids, more)
    assert (body["first_id"], body["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "after_id=nobody", "before_id=nobody"]
)
def test_a_page_that_cannot_be_is_refused(query: str) -> None:
    with serving(brain_of()) as site:
        response = site.client.get(f"/v1/models?{query}", headers=ANTHROPIC)

    assert response.status_code == 400
    assert response.json["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("name", ["b", "acme/coder", "a//b", "stub:x"])
@pytest.mark.parametrize("headers", [{}, ANTHROPIC])
def test_one_model_is_told_of_whatever_its_name(name: str, headers: dict[str, str]) -> None:
    with serving(brain_of("acme/coder", "a//b", "stub:x")) as site:
        body: JSON = site.client.get(f"/v1/models/{name}", headers=headers).json

    assert body["id"] == name
    assert body.get("type" if headers else "object") == "model"


def test_an_unknown_model_is_not_found_in_the_right_shape() -> None:
    with serving(brain_of()) as site:
        openai = site.client.get("/v1/models/gpt/9")
        anthropic = site.client.get("/v1/models/gpt/9", headers=ANTHROPIC)

    assert (openai.status_code, openai.json["error"]["code"]) == (404, "not_found")
    assert (anthropic.status_code, anthropic.json["error"]["type"]) == (404, "not_found_error")
    assert "`gpt/9`" in openai.json["error"]["message"]
