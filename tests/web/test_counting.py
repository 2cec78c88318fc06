"""Counting tokens before they are spent: the model's own number where there is one, else an honest estimate."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bigbrain import Brain, Flow, Model, agent
from bigbrain.messages import JSON
from tests.upstream import Upstream
from tests.web.site import asking, saying, serving

COUNT = "/v1/messages/count_tokens"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


def model(upstream: Upstream, name: str = "count:1234") -> Model:
    return Model(name, provider="anthropic", base_url=upstream.anthropic, api_key="sk-canary-1")


def test_a_transparent_brain_has_the_count_of_its_model(upstream: Upstream) -> None:
    brain = Brain("b", Flow(model=model(upstream), role="Be brief."))
    tool = {"name": "w", "input_schema": {"type": "object"}}
    with serving(brain) as site:
        response = site.client.post(COUNT, json=asking(tools=[tool], temperature=0.5))

    (asked,) = upstream.requests
    assert response.json == {"input_tokens": 1234}
    assert response.headers["X-Brain-Tokens-By"] == "model"
    assert asked.path == COUNT
    assert asked.key == "sk-canary-1"
    assert asked.body["system"] == "Be brief."
    assert asked.body["tools"] == [tool]
    assert asked.body.keys() == {"model", "messages", "system", "tools"}


def test_a_server_that_does_not_count_costs_an_estimate_and_no_error(
    upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(Brain("b", Flow(model=model(upstream, "status:401")))) as site:
        response = site.client.post(COUNT, json=asking())

    assert response.status_code == 200
    assert response.json["input_tokens"] > 0
    assert response.headers["X-Brain-Tokens-By"] == "estimate"
    assert "sk-canary-1" not in caplog.text


def test_what_a_brain_of_its_own_will_ask_is_not_known(upstream: Upstream) -> None:
    @agent(model=model(upstream))
    def own(turn: object, chat: object) -> None:
        pass

    for brain in (Brain("b", Flow(own)), Brain("b", Flow(model=model(upstream)) >> Flow(model=model(upstream)))):
        with serving(brain) as site:
            assert site.client.post(COUNT, json=asking()).headers["X-Brain-Tokens-By"] == "estimate"
    assert upstream.requests == []


@pytest.mark.parametrize(
    "fields",
    [{}, {"tools": []}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"thinking": {"type": "adaptive"}}],
)
@pytest.mark.parametrize("query", ["", "?beta=true"])
def test_no_limit_is_needed_to_count(fields: dict[str, JSON], query: str) -> None:
    body = {name: value for name, value in asking(**fields).items() if name != "max_tokens"}
    with serving(saying("x")) as site:
        response = site.client.post(COUNT + query, json=body)

    assert response.status_code == 200
    assert response.json["input_tokens"] > 0


def test_two_dozen_are_counted_at_once() -> None:
    with serving(saying("x")) as site, ThreadPoolExecutor(24) as pool:
        counts = list(
            pool.map(lambda n: site.client.post(COUNT, json=asking("word " * n)).json["input_tokens"], range(24))
        )

    assert counts == sorted(counts)
    assert counts[0] > 0


def test_longer_questions_count_more() -> None:
    with serving(saying("x")) as site:
        short, long = (site.client.post(COUNT, json=asking("word " * n)).json["input_tokens"] for n in (1, 400))

    assert 300 < long - short < 900
