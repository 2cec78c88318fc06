"""From a request to a document or a stream, in both protocols."""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest
from werkzeug.test import TestResponse

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.errors import ModelBusy, ModelOverloaded
from bigbrain.events import Event, replay
from bigbrain.flows import Flow
from bigbrain.messages import Request, Response, Text, ToolCall, Usage
from bigbrain.models import FixedModel
from bigbrain.scope import Scope
from bigbrain.settings import Limits, Settings
from bigbrain.turns import Turn
from bigbrain.wire import Frame, anthropic, openai_chat, sse
from tests.web.site import BOTH, CHAT, MESSAGES, Pausing, asking, saying, serving


def frames_of(response: TestResponse) -> list[Frame]:
    return list(sse.read([response.data]))


def text_of(path: str, response: TestResponse) -> str:
    """The text of a whole or a streamed answer, read by the dialect's other half."""
    dialect = openai_chat if path == CHAT else anthropic
    if response.mimetype == "application/json":
        return dialect.read_response(response.json).text
    return "".join(event.text for event in dialect.read_events(frames_of(response)) if hasattr(event, "text"))


def failing(error: Exception) -> Brain:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise error

    return Brain("b", Flow(fail))


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_comes_whole_or_streamed_as_the_body_asks(path: str, stream: bool) -> None:
    with serving(saying("fox 🦊 北")) as site:
        response = site.client.post(path, json=asking(stream=stream))

        assert response.status_code == 200
        assert response.mimetype == ("text/event-stream" if stream else "application/json")
        assert text_of(path, response) == "fox 🦊 北"


@pytest.mark.parametrize(("path", "prefix"), [(CHAT, "chatcmpl-"), (MESSAGES, "msg_")])
def test_the_documents_id_is_the_runs_with_the_protocols_prefix(path: str, prefix: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.post(path, json=asking())

        run_id = response.headers["X-Run-Id"]
        assert len(run_id) == 32
        assert response.json["id"] == prefix + run_id
        assert site.record(run_id).status == "done"


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("body", [asking(), asking(stream=True), {"model": 3}])
def test_every_response_names_its_run_in_every_header(path: str, body: object) -> None:
    with serving(saying("x")) as site:
        headers = site.client.post(path, json=body).headers

    assert headers["X-Run-Id"] == headers["x-request-id"] == headers["request-id"] != ""


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_every_answer_says_what_it_cost_to_hand_it_on(path: str, stream: bool) -> None:
    with serving(saying("x")) as site:
        response = site.client.post(path, json=asking(stream=stream))
        response.get_data()

    assert 0 < float(response.headers["X-Brain-Overhead-Ms"]) < 10_000


@pytest.mark.parametrize("path", BOTH)
def test_a_stream_forbids_whoever_is_between_to_gather_it(path: str) -> None:
    with serving(saying("x")) as site:
        response = site.client.post(path, json=asking(stream=True))
        response.get_data()

    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert "Content-Encoding" not in response.headers
    assert "Content-Length" not in response.headers


@pytest.mark.parametrize("path", BOTH)
def test_a_document_has_its_length(path: str) -> None:
    with serving(saying("北")) as site:
        response = site.client.post(path, json=asking())

    assert int(response.headers["Content-Length"]) == len(response.data)


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_what_fails_before_it_says_anything_is_a_real_error(path: str, stream: bool) -> None:
    with serving(failing(ModelBusy("our key is sk-1", retry_after=2))) as site:
        response = site.client.post(path, json=asking(stream=stream))

    assert response.status_code == 429
    assert response.headers["Retry-After"] == "2"
    assert response.headers["x-should-retry"] == "true"
    assert response.json["error"]["type"] in ("rate_limit_error", "rate_limit_exceeded")
    assert b"sk-1" not in response.data


@pytest.mark.parametrize("stream", [False, True])
def test_an_overloaded_model_is_a_529_to_anthropics_clients_only(stream: bool) -> None:
    with serving(failing(ModelOverloaded())) as site:
        body = asking(stream=stream)

        assert site.client.post(MESSAGES, json=body).status_code == 529
        assert site.client.post(CHAT, json=body).status_code == 503


def test_a_handlers_error_shows_nothing_of_its_inside() -> None:
    with serving(failing(ValueError("/etc/secret"))) as site:
        response = site.client.post(MESSAGES, json=asking())

    assert response.status_code == 500
    assert response.json["type"] == "error"
    assert response.json["request_id"] == response.headers["X-Run-Id"]
    assert b"secret" not in response.data


@pytest.mark.parametrize("path", BOTH)
def test_what_fails_in_midstream_is_the_protocols_error_frame(path: str) -> None:
    model = Pausing(error=ModelBusy())
    model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        # the failure is kept back until the first words are out, or it would be an error status
        model.may_go_on.clear()
        response = site.client.post(path, json=asking(stream=True))
        model.may_go_on.set()
        frames = frames_of(response)

    assert response.status_code == 200
    assert b"begun" in response.data
    assert b'"rate_limit_error"' in frames[-1].data
    assert b"[DONE]" not in response.data
    assert frames[-1].event == ("" if path == CHAT else "error")


@pytest.mark.parametrize("path", BOTH)
def test_a_document_that_fails_late_is_an_error_all_the_same(path: str) -> None:
    model = Pausing(error=ModelBusy())
    model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        assert site.client.post(path, json=asking()).status_code == 429


@pytest.mark.parametrize(("path", "beat"), [(CHAT, b": keep-alive"), (MESSAGES, b"event: ping")])
def test_a_silent_brain_does_not_keep_a_stream_waiting_for_ever(path: str, beat: bytes) -> None:
    model = Pausing(first="")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.05) as site:
        response = site.client.post(path, json=asking(stream=True))
        chunks = iter(response.response)
        first, second = next(chunks), next(chunks)
        model.may_go_on.set()
        rest = b"".join(chunks)

    assert response.status_code == 200
    assert (b"assistant" in first, beat in first) == (True, True)
    assert second.startswith(beat)
    assert (b"[DONE]" if path == CHAT else b"message_stop") in rest


@pytest.mark.parametrize("path", BOTH)
def test_what_fails_after_the_wait_is_an_error_frame(path: str) -> None:
    model = Pausing(first="", error=ModelBusy())
    with serving(Brain("b", Flow(model=model)), heartbeat=0.05) as site:
        response = site.client.post(path, json=asking(stream=True))
        model.may_go_on.set()

        assert response.status_code == 200
        assert b"rate_limit_error" in frames_of(response)[-1].data


def test_the_first_words_do_not_wait_for_the_others() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        response = site.client.post(CHAT, json=asking(stream=True))
        chunks = iter(response.response)
        first = next(chunks)
        gone_on = model.may_go_on.is_set()
        model.may_go_on.set()
        rest = b"".join(chunks)

    assert not gone_on
    assert b"begun" in first
    assert rest.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_past_the_cap_of_open_answers_a_request_is_refused_at_once(path: str, stream: bool) -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model)), Settings(limits=Limits(max_streams=1))) as site:
        open_one = site.client.post(path, json=asking(stream=True))
        refused = site.client.post(path, json=asking(stream=stream))
        model.may_go_on.set()
        open_one.get_data()
        allowed = site.client.post(path, json=asking(stream=stream))
        allowed.get_data()

    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert "1 answers are open" in refused.json["error"]["message"]
    assert allowed.status_code == 200


def test_a_stream_that_is_closed_before_it_was_read_leaves_its_place() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model)), Settings(limits=Limits(max_streams=1))) as site:
        for _ in range(3):
            response = site.client.post(CHAT, json=asking(stream=True))
            response.close()

            assert response.status_code == 200
        assert len(site.house.hub) == 0
        model.may_go_on.set()


def test_a_refused_request_leaves_its_place() -> None:
    with serving(failing(ModelBusy()), Settings(limits=Limits(max_streams=1))) as site:
        statuses = [site.client.post(CHAT, json=asking(stream=stream)).status_code for stream in (True, False, True)]

    assert statuses == [429, 429, 429]


def test_a_stream_that_the_server_cuts_leaves_its_run_alone() -> None:
    model = Pausing()
    with serving(Brain("b", Flow(model=model))) as site:
        response = site.client.post(CHAT, json=asking(stream=True))
        next(iter(response.response))
        response.close()
        model.may_go_on.set()

        assert site.record(response.headers["X-Run-Id"]).status == "done"


@pytest.mark.parametrize(("model", "answered_by"), [("b", "b"), ("acme/coder", "acme/coder"), ("gpt-9", "b")])
def test_the_model_of_a_request_picks_the_flow(model: str, answered_by: str) -> None:
    brain = Brain("b", Flow(model=FixedModel("default")))
    brain.add_flow(Flow(model=FixedModel("coder")), name="acme/coder")
    with serving(brain) as site:
        assert site.client.post(CHAT, json=asking(model=model)).json["model"] == answered_by


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_calls_and_usage_pass_to_the_client(path: str, stream: bool) -> None:
    class Calling:
        def ask(self, request: Request, scope: Scope) -> Generator[Event]:
            parts = (Text("Let me see."), ToolCall("c1", "look", '{"n":1}'), ToolCall("c2", "look", '{"n":2}'))
            yield from replay(Response(parts=parts, stop="calls", usage=Usage(7, 3)))

    tool = {"name": "look", "description": "", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": tool}] if path == CHAT else [{"name": "look", "input_schema": {}}]
    options = {"stream_options": {"include_usage": True}} if path == CHAT and stream else {}
    dialect = openai_chat if path == CHAT else anthropic
    with serving(Brain("b", Flow(model=Calling()))) as site:
        response = site.client.post(path, json=asking(stream=stream, tools=tools, **options))
        frames = frames_of(response) if stream else []

    if stream:
        events = list(dialect.read_events(frames))
        parts = [event.part for event in events if hasattr(event, "part")]
        assert [part.id for part in parts if isinstance(part, ToolCall)] == ["c1", "c2"]
        assert (events[-1].stop, events[-1].usage) == ("calls", Usage(7, 3))
    else:
        answer = dialect.read_response(response.json)
        assert [(call.id, call.arguments.replace(" ", "")) for call in answer.calls] == [
            ("c1", '{"n":1}'),
            ("c2", '{"n":2}'),
        ]
        assert (answer.stop, answer.usage) == ("calls", Usage(7, 3))


def test_many_streams_at_once_get_every_word_of_their_own() -> None:
    words = " ".join(f"w{n}" for n in range(40))
    with serving(saying(words)) as site:
        got: list[str] = []

        def ask() -> None:
            got.append(text_of(CHAT, site.client.post(CHAT, json=asking(stream=True))))

        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert got == [words] * 20


def test_the_tokens_of_a_request_are_counted() -> None:
    with serving(saying("x")) as site:
        response = site.client.post(f"{MESSAGES}/count_tokens?beta=true", json={**asking(), "tools": []})
        refused = site.client.post(f"{MESSAGES}/count_tokens", json={"model": "b"})

    assert response.json["input_tokens"] > 0
    assert (refused.status_code, refused.json["type"]) == (400, "error")


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", None])
def test_every_version_of_anthropics_api_is_accepted(version: str | None) -> None:
    headers = {"anthropic-beta": "unknown-2030-01-01", **({"anthropic-version": version} if version else {})}
    with serving(saying("x")) as site:
        assert site.client.post(f"{MESSAGES}?beta=true", json=asking(), headers=headers).status_code == 200


def test_the_tool_runners_thread_is_refused_in_the_way_that_lets_them_go_on() -> None:
    with serving(saying("x")) as site:
        response = site.client.post(MESSAGES, json=asking(thread={"type": "create"}))

    assert response.status_code == 400
    assert response.json["error"]["details"] == {"error_code": "thread_unsupported_request"}
