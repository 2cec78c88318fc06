"""Whole answers that take longer than a connection may be silent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import anthropic
import openai
import pytest

from bigbrain import Brain, Flow
from bigbrain.errors import ModelRefused
from tests.web.site import BOTH, CHAT, Pausing, asking, listening, serving
from tests.web.sockets import send

BEAT = 0.05
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture
def model() -> Iterator[Pausing]:
    model = Pausing("at last")
    yield model
    model.may_go_on.set()


@pytest.mark.parametrize("path", BOTH)
def test_blanks_come_before_a_document_that_takes_long(path: str, model: Pausing) -> None:
    with serving(Brain("b", Flow(model=model)), heartbeat=BEAT) as site:
        response = site.client.post(path, json=asking())
        model.may_go_on.set()
        body = response.get_data()

    assert response.status_code == 200
    assert response.mimetype == "application/json"
    assert body[:1] == b" "
    assert "at last" in json.dumps(json.loads(body))
    assert "Content-Length" not in response.headers
    assert response.headers["X-Accel-Buffering"] == "no"


@pytest.mark.parametrize("path", BOTH)
def test_a_document_that_comes_in_time_has_no_blanks(path: str, model: Pausing) -> None:
    model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        body = site.client.post(path, json=asking()).get_data()

    assert body[:1] == b"{"


def test_sdks_read_over_the_blanks(model: Pausing) -> None:
    with (
        serving(Brain("b", Flow(model=model)), heartbeat=BEAT) as site,
        listening(site.app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=2) as chat,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=2) as claude,
    ):
        threading.Timer(0.6, model.may_go_on.set).start()
        answers = [
            chat.chat.completions.create(model="b", messages=HI).choices[0].message.content,
            claude.messages.create(model="b", max_tokens=9, messages=HI).content[0].text,
        ]

    assert answers == ["at last", "at last"]


@pytest.mark.parametrize("path", BOTH)
def test_what_fails_after_the_blanks_breaks_the_connection_and_the_retry_is_told_why(path: str) -> None:
    model = Pausing("", error=ModelRefused())
    with serving(Brain("b", Flow(model=model)), heartbeat=BEAT) as site, listening(site.app) as url:
        raw = json.dumps(asking()).encode()
        with send(url, path, f"Content-Length: {len(raw)}", raw) as connection:
            told = connection.recv(65536)
            model.may_go_on.set()
            while piece := connection.recv(65536):
                told += piece
        again = site.client.post(path, json=asking(), headers={"x-stainless-retry-count": "1"})

    assert told.startswith(b"HTTP/1.1 200")
    assert not told.endswith(b"0\r\n\r\n")
    assert again.status_code == 502
    assert again.headers["x-should-retry"] == "false"


def test_a_client_that_leaves_among_the_blanks_leaves_its_place(model: Pausing) -> None:
    with serving(Brain("b", Flow(model=model)), heartbeat=BEAT) as site, listening(site.app) as url:
        raw = json.dumps(asking()).encode()
        with send(url, CHAT, f"Content-Length: {len(raw)}", raw) as connection:
            connection.recv(65536)
        tick = threading.Event()
        for _ in range(500):
            if any(site.house.store.client.scan_iter("bb:lost:*")):
                break
            tick.wait(0.01)

        assert list(site.house.store.client.scan_iter("bb:lost:*"))
