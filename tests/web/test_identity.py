"""The same request sent again under one id: one run, one answer, whoever sends it when and in which protocol."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from werkzeug.test import TestResponse

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import ModelBusy
from bigbrain.events import Event, replay
from bigbrain.flows import Flow, respond
from bigbrain.identity import scope_of
from bigbrain.messages import Request, Response, Text, Usage
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.turns import Turn
from bigbrain.wire import anthropic, openai_chat, sse
from tests.web.site import BOTH, CHAT, MESSAGES, Pausing, Site, asking, listening, saying, serving
from tests.web.sockets import send
from web.abandoned import GRACE

R7 = {"X-Run-Id": "r-7"}
ODD = ["x" * 5120, "a/b", "r\\n7", "..", "a..b", ".a", "🦊".encode().decode("latin-1"), "", "a b"]


class Counting:
    """A model that counts how often it is asked, and what that costs."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        self.asked += 1
        yield from replay(Response(parts=(Text(f"answer {self.asked}"),), stop="end", usage=Usage(7, 3)))


def read(path: str, response: TestResponse) -> Response:
    """A whole or a streamed answer, read by the dialect's other half."""
    dialect = openai_chat if path == CHAT else anthropic
    assert response.status_code == 200, response.data
    if response.mimetype == "application/json":
        return dialect.read_response(response.json)
    text, usage = "", Usage()
    for event in dialect.read_events(list(sse.read([response.data]))):
        text += getattr(event, "text", "")
        usage = getattr(event, "usage", usage)
    return Response(parts=(Text(text),), usage=usage)


def ask(site: Site, path: str, *, stream: bool = False, text: str = "hi", **headers: str) -> TestResponse:
    options = {"stream_options": {"include_usage": True}} if stream and path == CHAT else {}
    named = {name.replace("_", "-"): value for name, value in headers.items()} or R7
    return site.client.post(path, json=asking(text, stream=stream, **options), headers=named)


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("header", ["X-Run-Id", "Idempotency-Key"])
def test_a_client_may_name_its_run_in_either_header(path: str, header: str) -> None:
    with serving(saying("x")) as site:
        response = ask(site, path, **{header: "a.b:c"})

        assert response.headers["X-Run-Id"] == "a.b:c"
        assert response.json["id"].removeprefix("chatcmpl-").removeprefix("msg_") == "a.b:c"
        assert site.record("a.b:c").status == "done"


def test_of_two_names_the_one_that_is_ours_counts() -> None:
    with serving(saying("x")) as site:
        assert ask(site, CHAT, X_Run_Id="one", Idempotency_Key="two").headers["X-Run-Id"] == "one"


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("header", ["X-Run-Id", "Idempotency-Key"])
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_id_is_refused_and_its_header_named(path: str, header: str, odd: str) -> None:
    with serving(saying("x")) as site:
        response = ask(site, path, **{header: odd})

        assert response.status_code == 400
        assert f"`{header}`" in response.json["error"]["message"]
        assert len(response.headers["X-Run-Id"]) == 32
        assert site.house.store.client.keys("bb:run:*") == []


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_ten_at_once_get_the_answer_of_one_execution(path: str, stream: bool) -> None:
    model, together = Counting(), threading.Barrier(10)
    with serving(Brain("b", Flow(model=model))) as site, ThreadPoolExecutor(10) as pool:

        def one(_: int) -> str:
            together.wait(10)
            return read(path, ask(site, path, stream=stream)).text

        assert list(pool.map(one, range(10))) == ["answer 1"] * 10
        assert model.asked == 1
        assert len(site.record("r-7").steps) == 1


@pytest.mark.parametrize("path", BOTH)
def test_a_client_that_comes_back_gets_the_whole_answer_of_the_run_under_way(path: str) -> None:
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        raw = site.client.application.json.dumps(asking(stream=True)).encode()
        head = f"X-Run-Id: r-7\r\nContent-Length: {len(raw)}"
        with send(url, path, head, raw) as connection:
            told = connection.recv(65536)
            assert model.reached.wait(5)
        again = ask(site, path, stream=True)
        model.may_go_on.set()
        answer = read(path, again)

        assert b"200" in told
        assert answer.text == "begun"
        assert site.record("r-7").status == "done"
        assert len(site.record("r-7").steps) == 1


def test_a_run_that_was_named_waits_for_its_client_longer_than_another() -> None:
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        raw = site.client.application.json.dumps(asking(stream=True)).encode()
        with send(url, BOTH[0], f"X-Run-Id: r-7\r\nContent-Length: {len(raw)}", raw) as connection:
            connection.recv(65536)
            assert model.reached.wait(5)
        time.sleep(GRACE + 0.5)  # a run without a name would be stopped by now
        again = ask(site, BOTH[0], stream=True)
        model.may_go_on.set()

        assert read(BOTH[0], again).text == "begun"
        assert len(site.record("r-7").steps) == 1


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("running", [False, True])
def test_another_request_under_the_id_is_a_conflict(path: str, running: bool) -> None:
    model = Pausing()
    if not running:
        model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        first = ask(site, path, stream=True)
        if not running:
            first.get_data()
        refused = ask(site, path, text="something else")
        model.may_go_on.set()

        assert refused.status_code == 409
        assert "another request" in refused.json["error"]["message"]
        assert refused.headers["X-Run-Id"] == "r-7"
        assert read(path, first).text == "begun"


@pytest.mark.parametrize(("first", "then"), [(CHAT, MESSAGES), (MESSAGES, CHAT)])
@pytest.mark.parametrize("running", [False, True])
def test_the_same_request_in_the_other_protocol_is_the_same_run(first: str, then: str, running: bool) -> None:
    model = Pausing()
    if not running:
        model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        one = ask(site, first, stream=True)
        if not running:
            one.get_data()
        other = ask(site, then, stream=True)
        model.may_go_on.set()

        assert read(first, one).text == read(then, other).text == "begun"
        assert len(site.record("r-7").steps) == 1


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_finished_run_is_replayed_and_costs_nothing(path: str, stream: bool, again: bool) -> None:
    model = Counting()
    brain = Brain("b", Flow(model=model) >> respond >> Flow(model=FixedModel("two")) >> respond)
    with serving(brain) as site:
        one = read(path, ask(site, path, stream=stream))
        other = read(path, ask(site, path, stream=again))

        assert one.text == other.text
        assert one.text.index("answer 1") < one.text.index("two")
        assert (one.usage, other.usage) == (Usage(7, 3), Usage())
        assert model.asked == 1
        assert site.record("r-7").replayed == 1


def test_a_stream_is_replayed_with_the_same_documents() -> None:
    with serving(saying("one two three")) as site:
        bodies = [site.client.post(CHAT, json=asking(stream=True), headers=R7).data for _ in range(2)]

    assert bodies[0] == bodies[1]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("path", BOTH)
def test_a_failed_run_is_taken_up_where_it_failed_if_anything_of_it_is_durable(path: str, kept: bool) -> None:
    tries, done = count(1), list[str]()

    @agent
    def first(turn: Turn, chat: Chat) -> None:
        done.append("first")

    @agent
    def second(turn: Turn, chat: Chat) -> None:
        if next(tries) == 1:
            raise ModelBusy
        turn.reply("at last")

    flow = (Flow(first) >> Flow(second)).named("x")
    with serving(Brain("b", flow.durable() if kept else flow)) as site:
        failed = ask(site, path)
        answer = ask(site, path)

        assert failed.status_code == 429
        assert read(path, answer).text == "at last"
        assert done == (["first"] if kept else ["first"] * 2)


def test_the_same_id_of_two_keys_is_two_runs() -> None:
    model = Counting()
    with serving(Brain("b", Flow(model=model)), Settings(keys=("one", "other"))) as site:
        texts = [
            read(CHAT, ask(site, CHAT, text=key, X_Run_Id="r-7", Authorization=f"Bearer {key}")).text
            for key in ("one", "other", "one")
        ]
        keys = site.house.store.client.keys("bb:run:*:r-7")

    assert texts == ["answer 1", "answer 2", "answer 1"]
    assert len(keys) == 2
    assert not any(b"one" in key or b"other" in key for key in keys)


def test_the_scope_of_a_key_is_the_same_in_either_header() -> None:
    with serving(saying("x"), Settings(keys=("one",))) as site:
        ask(site, CHAT, X_Run_Id="r-7", Authorization="Bearer one")
        ask(site, MESSAGES, X_Run_Id="r-7", x_api_key="one")
        [key] = site.house.store.client.keys("bb:run:*:r-7")

    assert len(key.split(b":")[2]) == len(scope_of(b"\0" * 32))


def test_while_another_client_follows_a_run_goes_on_when_one_leaves() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        staying = ask(site, CHAT, stream=True)
        raw = site.client.application.json.dumps(asking(stream=True)).encode()
        with send(url, MESSAGES, f"X-Run-Id: r-7\r\nContent-Length: {len(raw)}", raw) as connection:
            assert b"200" in connection.recv(65536)
        stopped = threading.Event()
        # past the grace in which a run without any follower is stopped
        assert not stopped.wait(0.8)
        model.may_go_on.set()

        assert read(CHAT, staying).text == "begun"
        assert site.record("r-7").status == "done"


def test_different_ids_share_nothing() -> None:
    model = Counting()
    with serving(Brain("b", Flow(model=model))) as site:
        texts = [read(CHAT, ask(site, CHAT, X_Run_Id=run_id)).text for run_id in ("r", "r.1", "R", "r:1")]

    assert texts == [f"answer {number}" for number in (1, 2, 3, 4)]
