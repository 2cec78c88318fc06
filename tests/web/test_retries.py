"""Requests that real clients send again attach to their run, and nothing else does."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import anthropic
import openai
import pytest

from bigbrain import Brain, Flow
from bigbrain.errors import BrainError, ModelBusy, ModelRefused
from bigbrain.events import Event, replay
from bigbrain.messages import JSON, Request, Response, Text
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.web.site import BOTH, MESSAGES, RESPONSES, Pausing, Site, asking, listening, saying, serving
from tests.web.sockets import send
from web.abandoned import GRACE

AGAIN = {"x-stainless-retry-count": "1"}
SESSION = {"X-Claude-Code-Session-Id": "s1"}


class Failing:
    """A model that fails so many times, then answers; counts how often it was asked."""

    def __init__(self, times: int, error: BrainError) -> None:
        self.asked = 0
        self._times = times
        self._error = error

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        self.asked += 1
        if self.asked <= self._times:
            raise self._error
        yield from replay(Response(parts=(Text(f"answer {self.asked}"),), stop="end"))


def runs(site: Site) -> int:
    return sum(key.count(b":") == 3 for key in site.house.store.client.scan_iter("bb:run:*"))


@contextmanager
def left(path: str, **headers: str) -> Iterator[tuple[Site, Pausing]]:
    """A site whose only client has left in the middle of a stream, while the run is still under way."""
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        raw = json.dumps(asking(stream=True)).encode()
        head = "\r\n".join([*(f"{name}: {value}" for name, value in headers.items()), f"Content-Length: {len(raw)}"])
        with send(url, path, head, raw) as connection:
            connection.recv(65536)
            assert model.reached.wait(5)
        until_lost(site)
        yield site, model


def until_lost(site: Site) -> None:
    tick = threading.Event()
    for _ in range(500):
        if any(site.house.store.client.scan_iter("bb:lost:*")):
            return
        tick.wait(0.01)
    pytest.fail("nobody noticed that the client had left")


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_an_sdks_second_try_is_the_first_ones_run(path: str, stream: bool) -> None:
    with serving(saying("hello")) as site:
        first = site.client.post(path, json=asking(stream=stream))
        first.get_data()
        again = site.client.post(path, json=asking(stream=stream), headers=AGAIN)
        again.get_data()

        assert again.headers["X-Run-Id"] == first.headers["X-Run-Id"]
        assert b"hello" in again.data
        assert runs(site) == 1


@pytest.mark.parametrize("path", BOTH)
def test_the_same_words_said_again_are_a_new_question(path: str) -> None:
    with serving(saying("hello")) as site:
        ids = {site.client.post(path, json=asking()).headers["X-Run-Id"] for _ in range(3)}

        assert len(ids) == runs(site) == 3


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_an_identical_request_right_after_a_disconnect_attaches_to_the_run(path: str, stream: bool) -> None:
    with left(path) as (site, model):
        threading.Timer(0.1, model.may_go_on.set).start()
        again = site.client.post(path, json=asking(stream=stream))

        assert b"begun" in again.get_data()
        assert runs(site) == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize(("headers", "asked"), [({"x-stainless-timeout": "1"}, 1), ({"x-stainless-timeout": "60"}, 2)])
def test_an_sdk_whose_patience_is_over_is_waited_for(path: str, headers: dict[str, str], asked: int) -> None:
    with left(path, **headers) as (site, model):
        # longer than a run is left alone whose client has just gone
        threading.Event().wait(2 * GRACE)
        model.may_go_on.set()
        again = site.client.post(path, json=asking(), headers=AGAIN)

        assert b"begun" in again.data
        assert runs(site) == 1
        assert model.asked == asked


def test_claude_codes_repeat_without_a_stream_attaches_to_the_run() -> None:
    with left(MESSAGES, **SESSION) as (site, model):
        threading.Timer(0.1, model.may_go_on.set).start()
        again = site.client.post(MESSAGES, json=asking(stream=False), headers=SESSION)

        assert again.json["content"][0]["text"] == "begun"
        assert runs(site) == 1


def test_another_session_of_claude_codes_asks_for_itself() -> None:
    with left(MESSAGES, **SESSION) as (site, model):
        model.may_go_on.set()
        site.client.post(MESSAGES, json=asking(), headers={**SESSION, "X-Claude-Code-Session-Id": "s2"})

        assert runs(site) == 2


def test_claude_code_that_got_its_answer_and_asks_again_gets_another() -> None:
    with serving(saying("hello")) as site:
        ids = {site.client.post(MESSAGES, json=asking(), headers=SESSION).headers["X-Run-Id"] for _ in range(2)}

        assert len(ids) == 2


@pytest.mark.parametrize("path", BOTH)
def test_the_retry_of_a_busy_answer_has_the_same_run_go_on(path: str) -> None:
    model = Failing(1, ModelBusy())
    with serving(Brain("b", Flow(model=model))) as site:
        first = site.client.post(path, json=asking())
        again = site.client.post(path, json=asking(), headers=AGAIN)

        assert (first.status_code, again.status_code) == (429, 200)
        assert b"answer 2" in again.data
        assert runs(site) == 1


@pytest.mark.parametrize("path", BOTH)
def test_the_retry_of_a_failure_that_trying_cannot_help_is_told_it_and_asks_nobody(path: str) -> None:
    model = Failing(9, ModelRefused())
    with serving(Brain("b", Flow(model=model))) as site:
        first = site.client.post(path, json=asking())
        again = site.client.post(path, json=asking(), headers=AGAIN)

        assert again.status_code == first.status_code
        assert again.json["error"] == first.json["error"]
        assert again.headers["x-should-retry"] == "false"
        assert (runs(site), model.asked) == (1, 1)


@pytest.mark.parametrize("path", BOTH)
def test_the_retry_of_another_keys_request_is_none(path: str) -> None:
    with serving(saying("hello"), Settings(keys=("one", "two"))) as site:
        site.client.post(path, json=asking(), headers={"x-api-key": "one"})
        site.client.post(path, json=asking(), headers={"x-api-key": "two", **AGAIN})

        assert runs(site) == 2


@pytest.mark.parametrize("fields", [{"temperature": 0.5}, {"messages": [{"role": "user", "content": "ho"}]}])
@pytest.mark.parametrize("path", BOTH)
def test_a_second_try_of_another_body_is_another_run(path: str, fields: dict[str, JSON]) -> None:
    with serving(saying("hello")) as site:
        site.client.post(path, json=asking())
        site.client.post(path, json={**asking(), **fields}, headers=AGAIN)

        assert runs(site) == 2


def test_the_openai_sdk_has_one_run_however_often_it_tries() -> None:
    model = Failing(2, ModelBusy(retry_after=0.01))
    with (
        serving(Brain("b", Flow(model=model))) as site,
        listening(site.app) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=2) as client,
    ):
        answer = client.chat.completions.create(model="b", messages=[{"role": "user", "content": "hi"}])

        assert answer.choices[0].message.content == "answer 3"
        assert runs(site) == 1


def test_the_anthropic_sdk_has_one_run_however_often_it_tries() -> None:
    model = Failing(2, ModelBusy(retry_after=0.01))
    with (
        serving(Brain("b", Flow(model=model))) as site,
        listening(site.app) as url,
        anthropic.Anthropic(base_url=url, api_key="k", max_retries=2) as client,
        client.messages.stream(model="b", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        assert "".join(stream.text_stream) == "answer 3"
        assert runs(site) == 1


def test_codexs_grown_body_of_the_same_turn_has_its_run_go_on() -> None:
    model = Failing(1, ModelBusy())
    turn: dict[str, JSON] = {"model": "b", "client_metadata": {"turn_id": "t1"}, "store": False}
    asked: list[JSON] = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"}]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me"}]}
    with serving(Brain("b", Flow(model=model))) as site:
        first = site.client.post(RESPONSES, json={**turn, "input": asked})
        again = site.client.post(RESPONSES, json={**turn, "input": [*asked, said]})
        other = site.client.post(RESPONSES, json={**turn, "input": asked, "client_metadata": {"turn_id": "t2"}})

        assert (first.status_code, again.status_code) == (429, 200)
        assert again.headers["X-Run-Id"] == first.headers["X-Run-Id"] != other.headers["X-Run-Id"]
        assert runs(site) == 2
