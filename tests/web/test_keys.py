"""Who is let in."""

from __future__ import annotations

import pytest

from bigbrain.settings import Settings
from tests.web.site import BOTH, CHAT, MESSAGES, asking, saying, serving

KEYED = Settings(keys=("first", "second-ü"))


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer first"},
        {"Authorization": "bearer  first "},
        {"x-api-key": "first"},
        {"Authorization": "Bearer wrong", "x-api-key": "first"},
        {"Authorization": "Bearer first", "x-api-key": "wrong"},
        {"Authorization": "Basic x", "x-api-key": "first"},
        {"x-api-key": "second-ü".encode().decode("latin-1")},
    ],
)
def test_a_key_in_either_header_opens(path: str, headers: dict[str, str]) -> None:
    with serving(saying("x"), KEYED) as site:
        assert site.client.post(path, json=asking(), headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "first"},
        {"Authorization": "Basic first"},
        {"Authorization": "Bearer firs"},
        {"x-api-key": "DUMMY_KEY"},
        {"x-api-key": ""},
    ],
)
def test_another_key_or_none_does_not_open(headers: dict[str, str]) -> None:
    with serving(saying("x"), KEYED) as site:
        chat = site.client.post(CHAT, json=asking(), headers=headers)
        messages = site.client.post(MESSAGES, json=asking(), headers=headers)

        assert (chat.status_code, chat.json["error"]["code"]) == (401, "invalid_api_key")
        assert (messages.status_code, messages.json["error"]["type"]) == (401, "authentication_error")
        assert chat.headers["x-should-retry"] == messages.headers["x-should-retry"] == "false"
        assert chat.headers["X-Run-Id"] != ""
        assert site.house.store.client.keys("bb:run:*") == []


def test_a_key_is_asked_for_before_the_body_is_looked_at() -> None:
    with serving(saying("x"), KEYED) as site:
        response = site.client.post(CHAT, headers={"Content-Length": str(10**12)}, content_type="application/json")

    assert response.status_code == 401


@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/models/b", "/readyz", "/", "/nowhere", "/v1/messages/count_tokens"]
)
def test_every_route_asks_for_a_key(path: str) -> None:
    with serving(saying("x"), KEYED) as site:
        assert site.client.get(path).status_code == 401


def test_whoever_asks_whether_the_process_lives_needs_no_key() -> None:
    with serving(saying("x"), KEYED) as site:
        assert site.client.get("/healthz").status_code == 200


def test_without_keys_everything_is_open() -> None:
    with serving(saying("x")) as site:
        assert site.client.post(CHAT, json=asking(), headers={"x-api-key": "anything"}).status_code == 200
