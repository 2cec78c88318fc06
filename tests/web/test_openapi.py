"""`/openapi.json`, and pages of other origins."""

from __future__ import annotations

import pytest
from openapi_spec_validator import validate

from bigbrain.settings import Settings
from tests.web.site import BOTH, asking, saying, serving

ORIGIN = "https://chat.example"


def test_the_description_is_valid_and_has_every_route() -> None:
    with serving(saying("x")) as site:
        described = site.client.get("/openapi.json").json
        rules = [rule for rule in site.app.url_map.iter_rules() if not rule.websocket]

    validate(described)
    assert len(described["paths"]) == len({rule.rule for rule in rules})
    assert {"get", "post"} >= described["paths"]["/v1/chat/completions"].keys() == {"post"}
    assert described["components"]["schemas"]["MessagesRequest"]["required"] == ["max_tokens", "messages", "model"]


def test_the_description_asks_for_a_key_like_every_other() -> None:
    with serving(saying("x"), Settings(keys=("k",))) as site:
        assert site.client.get("/openapi.json").status_code == 401


def preflight(origin: str) -> dict[str, str]:
    wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key,content-type"}
    return {"Origin": origin, **wanted}


@pytest.mark.parametrize("path", BOTH)
def test_a_page_of_an_origin_that_is_named_may_ask_and_read_the_runs_id(path: str) -> None:
    with serving(saying("x"), Settings(cors=(ORIGIN,), keys=("k",))) as site:
        before = site.client.options(path, headers=preflight(ORIGIN))
        after = site.client.post(path, json=asking(stream=True), headers={"Origin": ORIGIN, "x-api-key": "k"})
        after.get_data()

    assert before.status_code == 200
    assert before.headers["Access-Control-Allow-Origin"] == after.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "x-api-key" in before.headers["Access-Control-Allow-Headers"]
    assert "X-Run-Id" in after.headers["Access-Control-Expose-Headers"]
    assert after.status_code == 200


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("cors", [(), (ORIGIN,)])
def test_a_page_of_any_other_origin_is_told_nothing(path: str, cors: tuple[str, ...]) -> None:
    with serving(saying("x"), Settings(cors=cors)) as site:
        headers = site.client.post(path, json=asking(), headers={"Origin": "https://evil.example"}).headers

    assert not [name for name, _ in headers if name.startswith("Access-Control-Allow")]


@pytest.mark.parametrize("path", BOTH)
def test_without_such_pages_nobody_asks_for_options(path: str) -> None:
    with serving(saying("x")) as site:
        assert site.client.options(path).status_code == 405
