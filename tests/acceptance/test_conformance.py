"""What real clients insist on, line by line, for chat completions and messages: the checks of the clients' own list, by number."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from werkzeug.test import TestResponse

from bigbrain import Brain, Chat, Flow, Model, Turn, agent
from bigbrain.errors import BrainError, ModelBusy, ModelOverloaded, ModelRefused
from bigbrain.messages import JSON, Response, Text, ToolCall
from bigbrain.settings import Limits, Settings
from bigbrain.wire import Frame, sse
from tests.acceptance.making import PATIENCE
from tests.scripted import Script, says
from tests.upstream import Upstream
from tests.web.site import BOTH, CHAT, MESSAGES, Pausing, Site, asking, listening, saying, serving
from tests.web.sockets import send

V1, V2 = {"anthropic-version": "2023-06-01"}, {"anthropic-version": "2026-10-21"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture
def site(upstream: Upstream) -> Iterator[Site]:
    """A transparent brain before a model that does what it is asked."""
    with serving(Brain("b", Flow(model=Model("obey", base_url=upstream.openai)))) as site:
        yield site


def frames(response: TestResponse) -> list[Frame]:
    assert response.status_code == 200, response.get_data()
    return list(sse.read([response.get_data()]))


def chunks(response: TestResponse) -> list[dict[str, Any]]:
    told = frames(response)
    assert told[-1].data == b"[DONE]"
    return [json.loads(frame.data) for frame in told[:-1]]


def events(response: TestResponse) -> list[dict[str, Any]]:
    told = frames(response)
    assert all(frame.event == json.loads(frame.data)["type"] for frame in told)
    return [json.loads(frame.data) for frame in told if frame.event != "ping"]


def tools(path: str, *names: str) -> list[JSON]:
    if path == CHAT:
        return [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names]
    return [{"name": name, "input_schema": SCHEMA} for name in names]


def calls(path: str, document: Any) -> list[tuple[str, Any]]:
    if path == CHAT:
        found = document["choices"][0]["message"].get("tool_calls") or []
        return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]
    return [(block["name"], block["input"]) for block in document["content"] if block["type"] == "tool_use"]


def text(path: str, document: Any) -> str:
    if path == CHAT:
        return str(document["choices"][0]["message"]["content"])
    return "".join(block.get("text", "") for block in document["content"])


def test_conformance_01_models_are_listed_in_the_shape_of_whoever_asks(site: Site) -> None:
    assert site.client.get("/v1/models").json["object"] == "list"
    for headers in (V1, V2):
        page = site.client.get("/v1/models?limit=1000", headers=headers).json
        assert [one["type"] for one in page["data"]] == ["model"]
        assert page["has_more"] is False


def test_conformance_02_one_model_in_both_shapes_and_an_unknown_one_in_both_errors(site: Site) -> None:
    assert site.client.get("/v1/models/b").json["object"] == "model"
    assert site.client.get("/v1/models/b", headers=V1).json["type"] == "model"
    assert site.client.get("/v1/models/x").json["error"]["code"]
    missing = site.client.get("/v1/models/x", headers=V2)
    assert (missing.status_code, missing.json["type"]) == (404, "error")


ROUTES = [("get", "/v1/models"), ("post", CHAT), ("post", MESSAGES), ("post", f"{MESSAGES}/count_tokens")]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_conformance_03_a_key_is_taken_from_either_header_and_from_both(method: str, path: str) -> None:
    both = {"Authorization": "Bearer wrong", "x-api-key": "k"}
    with serving(saying("x"), Settings(keys=("k",))) as site:
        for headers in ({"Authorization": "Bearer k"}, {"x-api-key": "k"}, both, {**V2, **both}):
            assert site.client.open(path, method=method, json=asking(), headers=headers).status_code == 200


@pytest.mark.parametrize("headers", [{}, V1, V2])
def test_conformance_04_every_version_of_the_api_works(site: Site, headers: dict[str, str]) -> None:
    assert site.client.post(MESSAGES, json=asking(), headers=headers).status_code == 200


@pytest.mark.parametrize("beta", ["novel-2031-01-01", "a,b , c-2026-08-12", ""])
def test_conformance_05_unknown_betas_are_no_reason_to_refuse(site: Site, beta: str) -> None:
    response = site.client.post(f"{MESSAGES}?beta=true", json=asking(), headers={"anthropic-beta": beta})

    assert response.status_code == 200


def test_conformance_06_tokens_are_counted_without_tools_with_thinking_and_all_at_once(site: Site) -> None:
    body = {"model": "b", "messages": [{"role": "user", "content": "hi"}], "tools": []}
    thinking = {**body, "thinking": {"type": "enabled", "budget_tokens": 2048}}
    with ThreadPoolExecutor(24) as pool:
        answers = list(
            pool.map(
                lambda n: site.client.post(f"{MESSAGES}/count_tokens", json=(body, thinking)[n % 2]).json, range(24)
            )
        )

    assert all(answer.keys() == {"input_tokens"} and answer["input_tokens"] > 0 for answer in answers)


def test_conformance_07_a_websocket_is_answered_with_426(site: Site) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}

    assert site.client.get("/v1/responses", headers=upgrade).status_code == 426


def test_conformance_08_a_chat_document_is_a_whole_chat_completion(site: Site) -> None:
    ChatCompletion.model_validate(site.client.post(CHAT, json=asking()).json, strict=True)


def test_conformance_09_a_chat_stream_has_its_role_its_indices_one_reason_and_done(site: Site) -> None:
    told = chunks(site.client.post(CHAT, json=asking(stream=True)))
    choices = [choice for chunk in told for choice in chunk["choices"]]

    assert choices[0]["delta"]["role"] == "assistant"
    assert all(choice["index"] == 0 for choice in choices)
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
    assert {chunk["object"] for chunk in told} == {"chat.completion.chunk"}


def test_conformance_10_usage_comes_last_and_only_to_whoever_asked(site: Site) -> None:
    wanted = {"stream_options": {"include_usage": True}}
    told = chunks(site.client.post(CHAT, json=asking(stream=True, **wanted)))
    untold = chunks(site.client.post(CHAT, json=asking(stream=True)))

    assert told[-1]["choices"] == []
    assert told[-1]["usage"]["total_tokens"] > 0
    assert [chunk["usage"] for chunk in told[:-1]] == [None] * (len(told) - 1)
    assert not any(chunk.get("usage") for chunk in untold)


def called(site: Site, path: str, **fields: JSON) -> TestResponse:
    return site.client.post(path, json=asking(tools=tools(path, "w", "v"), **fields))


def test_conformance_11_a_calls_deltas_have_their_index_and_its_head_comes_once(site: Site) -> None:
    told = chunks(called(site, CHAT, stream=True, tool_choice="required"))
    pieces = [call for chunk in told for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", [])]

    assert [piece["index"] for piece in pieces] == [0] * len(pieces)
    assert (pieces[0]["type"], pieces[0]["function"]["name"]) == ("function", "w")
    assert not any("id" in piece or "type" in piece or "name" in piece["function"] for piece in pieces[1:])
    assert json.loads("".join(piece["function"]["arguments"] for piece in pieces)) == {"city": "xxxxx"}
    assert told[-1]["choices"][0]["finish_reason"] == "tool_calls"


TWO = says(ToolCall("c1", "w", '{"city":"Oslo"}'), ToolCall("c2", "w", '{"city":"Rome"}'))


@pytest.mark.parametrize("stream", [False, True])
def test_conformance_12_two_calls_stay_two_and_one_is_asked_for_where_one_is_wanted(
    upstream: Upstream, site: Site, stream: bool
) -> None:
    with serving(Brain("b", Flow(model=Script(TWO)))) as two:
        response = called(two, CHAT, stream=stream)
        if stream:
            deltas = [choice["delta"] for chunk in chunks(response) for choice in chunk["choices"]]
            heads = [call for delta in deltas for call in delta.get("tool_calls", []) if "id" in call]
            assert [(head["index"], head["id"]) for head in heads] == [(0, "c1"), (1, "c2")]
        else:
            assert [name for name, _ in calls(CHAT, response.json)] == ["w", "w"]
    called(site, CHAT, stream=stream, tool_choice="required", parallel_tool_calls=False).get_data()

    assert upstream.requests[-1].body["parallel_tool_calls"] is False


FORCED = {
    CHAT: ["required", {"type": "function", "function": {"name": "w"}}],
    MESSAGES: [{"type": "any"}, {"type": "tool", "name": "w"}],
}


@pytest.mark.parametrize(("path", "choice"), [(path, choice) for path in BOTH for choice in FORCED[path]])
def test_conformance_13_a_forced_call_is_made(site: Site, path: str, choice: JSON) -> None:
    assert calls(path, called(site, path, tool_choice=choice).json) == [("w", {"city": "xxxxx"})]


@pytest.mark.parametrize(("path", "choice"), [(CHAT, "none"), (MESSAGES, {"type": "none"})])
def test_conformance_14_no_call_is_made_where_none_is_wanted(site: Site, path: str, choice: JSON) -> None:
    response = site.client.post(path, json=asking(tools=tools(path, "w"), tool_choice=choice))

    assert calls(path, response.json) == []
    assert text(path, response.json) == "Hello from the model."


def test_conformance_15_the_second_turn_takes_the_first_ones_message_with_all_its_nulls(site: Site) -> None:
    message = called(site, CHAT, tool_choice="required").json["choices"][0]["message"]
    more = {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": None}
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}
    history = [*asking()["messages"], {**message, **more}, result]
    response = called(site, CHAT, messages=history)

    assert text(CHAT, response.json) == "Hello from the model."


SHAPED = [
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}),
    (CHAT, {"response_format": {"type": "json_object"}}),
    (MESSAGES, {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    (MESSAGES, {"output_format": {"type": "json_schema", "schema": SCHEMA}}),
]


@pytest.mark.parametrize(("path", "fields"), SHAPED)
def test_conformance_16_every_way_to_ask_for_json_gives_it(site: Site, path: str, fields: dict[str, JSON]) -> None:
    value = json.loads(text(path, site.client.post(path, json=asking(**fields)).json))

    assert value == ({"city": "xxxxx"} if "schema" in json.dumps(fields) else {})


@pytest.mark.parametrize(
    ("path", "field", "reason"),
    [
        (CHAT, "max_tokens", "length"),
        (CHAT, "max_completion_tokens", "length"),
        (MESSAGES, "max_tokens", "max_tokens"),
    ],
)
def test_conformance_17_a_token_limit_is_passed_on_and_told_when_it_is_hit(
    upstream: Upstream, path: str, field: str, reason: str
) -> None:
    body = {name: value for name, value in asking().items() if name != "max_tokens"}
    with serving(Brain("b", Flow(model=Model("length", base_url=upstream.openai)))) as site:
        document = site.client.post(path, json={**body, field: 7}).json

    told = document["choices"][0]["finish_reason"] if path == CHAT else document["stop_reason"]
    assert told == reason
    assert upstream.requests[-1].body["max_completion_tokens"] == 7


def test_conformance_26_a_messages_stream_has_every_event_in_its_place(site: Site) -> None:
    told = events(site.client.post(MESSAGES, json=asking(stream=True)))
    kinds = [event["type"] for event in told]

    assert kinds[0] == "message_start"
    assert told[0]["message"]["content"] == []
    assert told[0]["message"]["usage"].keys() >= {"input_tokens", "output_tokens"}
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert told[-2]["usage"]["output_tokens"] > 0
    starts = [event["index"] for event in told if event["type"] == "content_block_start"]
    assert (
        starts
        == [event["index"] for event in told if event["type"] == "content_block_stop"]
        == list(range(len(starts)))
    )


def test_conformance_27_a_tool_use_begins_empty_and_its_pieces_parse(site: Site) -> None:
    told = events(called(site, MESSAGES, stream=True, tool_choice={"type": "any"}))
    (start,) = [event["content_block"] for event in told if event["type"] == "content_block_start"]
    pieces = [event["delta"]["partial_json"] for event in told if event["type"] == "content_block_delta"]

    assert (start["type"], start["input"]) == ("tool_use", {})
    assert json.loads("".join(pieces)) == {"city": "xxxxx"}
    assert told[-2]["delta"]["stop_reason"] == "tool_use"


THINKING = [
    {"type": "enabled", "budget_tokens": 1024},
    {"type": "adaptive", "display": "summarized"},
    {"type": "between_tools"},
    {"type": "disabled"},
]


@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_conformance_28_every_thinking_is_accepted_and_its_block_comes_back(
    upstream: Upstream, provider: str, thinking: JSON
) -> None:
    url = upstream.openai if provider == "openai" else upstream.anthropic
    with serving(Brain("b", Flow(model=Model("reasoning", provider=provider, base_url=url)))) as site:
        answer = site.client.post(MESSAGES, json=asking(thinking=thinking)).json
        history = [*asking()["messages"], {"role": "assistant", "content": answer["content"]}]
        again = site.client.post(MESSAGES, json=asking(messages=[*history, {"role": "user", "content": "more"}]))

    assert answer["content"][0]["type"] == "thinking"
    assert answer["content"][0]["signature"]
    assert again.status_code == 200


@pytest.mark.parametrize("place", [0, 1])
def test_conformance_29_a_system_message_is_not_taken_for_the_prompt(place: int) -> None:
    @agent
    def talk(turn: Turn, chat: Chat) -> None:
        turn.reply(f"{turn.last.role}: {turn.last.text}")

    messages = [{"role": "user", "content": "the prompt"}]
    messages.insert(place, {"role": "system", "content": "# Environment"})
    with serving(Brain("b", Flow(talk))) as site:
        answer = site.client.post(MESSAGES, json=asking(messages=messages)).json

    assert text(MESSAGES, answer) == "user: the prompt"


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}])
def test_conformance_30_a_thread_is_refused_so_that_the_whole_conversation_comes(site: Site, thread: JSON) -> None:
    response = site.client.post(MESSAGES, json=asking(thread=thread))

    assert response.status_code == 400
    assert response.json["error"]["details"]["error_code"] == "thread_unsupported_request"


@pytest.mark.parametrize("headers", [{}, V1, V2])
def test_conformance_31_knobs_that_are_gone_are_taken_all_the_same(site: Site, headers: dict[str, str]) -> None:
    body = asking(temperature=0.5, top_p=0.9, top_k=5)

    assert site.client.post(MESSAGES, json=body, headers=headers).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BOTH)
def test_conformance_32_a_refusal_is_told_in_the_protocols_words(path: str, stream: bool) -> None:
    model = Script(Response(parts=(Text("I cannot.", refusal=True),), stop="refusal"))
    with serving(Brain("b", Flow(model=model))) as site:
        response = site.client.post(path, json=asking(stream=stream))
        if path == CHAT and stream:
            told = [choice for chunk in chunks(response) for choice in chunk["choices"]]
            assert "".join(choice["delta"].get("refusal") or "" for choice in told) == "I cannot."
            assert told[-1]["finish_reason"] == "stop"
        elif path == CHAT:
            assert response.json["choices"][0]["message"]["refusal"] == "I cannot."
        else:
            told = events(response)[-2]["delta"] if stream else response.json
            assert told["stop_reason"] == "refusal"
            assert told["stop_details"]["type"] == "refusal"


PICTURES = {
    CHAT: [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}}],
    MESSAGES: [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}],
}


@pytest.mark.parametrize("path", BOTH)
def test_conformance_33_a_picture_reaches_the_model(upstream: Upstream, site: Site, path: str) -> None:
    response = site.client.post(path, json=asking(messages=[{"role": "user", "content": PICTURES[path]}]))

    assert response.status_code == 200
    url = upstream.requests[-1].body["messages"][0]["content"][0]["image_url"]["url"]
    assert url == f"data:image/png;base64,{PNG}"


def failing(error: BrainError) -> Brain:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise error

    return Brain("b", Flow(fail))


@pytest.mark.parametrize(
    ("path", "headers", "body", "status", "kind"),
    [
        (CHAT, {"x-api-key": "k"}, {"messages": 3}, 400, "invalid_request_error"),
        (MESSAGES, {"x-api-key": "k"}, {"messages": 3}, 400, "invalid_request_error"),
        (CHAT, {}, asking(), 401, "authentication_error"),
        (MESSAGES, {}, asking(), 401, "authentication_error"),
        ("/v1/nothing", {"x-api-key": "k"}, {}, 404, "invalid_request_error"),
        (f"{MESSAGES}/batches", {"x-api-key": "k"}, {}, 404, "not_found_error"),
    ],
)
def test_conformance_34_an_error_has_the_protocols_shape_and_an_id(
    path: str, headers: dict[str, str], body: JSON, status: int, kind: str
) -> None:
    with serving(saying("x"), Settings(keys=("k",))) as site:
        response = site.client.post(path, json=body, headers=headers)

    assert (response.status_code, response.json["error"]["type"]) == (status, kind)
    assert response.headers["x-request-id"] == response.headers["request-id"]
    if path.startswith(MESSAGES):
        assert response.json["request_id"] == response.headers["request-id"]
    else:
        assert response.json["error"].keys() == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("error", "chat", "messages"),
    [
        (ModelBusy(), (429, "rate_limit_error"), (429, "rate_limit_error")),
        (BrainError(), (500, "server_error"), (500, "api_error")),
        (ModelOverloaded(), (503, "server_error"), (529, "overloaded_error")),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_conformance_34_a_failing_run_has_the_status_that_clients_know(
    error: BrainError, chat: tuple[int, str], messages: tuple[int, str], stream: bool
) -> None:
    for path, (status, kind) in ((CHAT, chat), (MESSAGES, messages)):
        with serving(failing(error)) as site:
            response = site.client.post(path, json=asking(stream=stream))
        assert (response.status_code, response.json["error"]["type"]) == (status, kind)


@pytest.mark.parametrize("path", BOTH)
def test_conformance_35_what_trying_again_cannot_help_says_so(path: str) -> None:
    with serving(saying("x"), Settings(keys=("k",))) as site:
        assert site.client.post(path, json=asking()).headers["x-should-retry"] == "false"
    for error in (ModelRefused(), BrainError()):
        with serving(failing(error)) as site:
            assert site.client.post(path, json=asking()).headers["x-should-retry"] == "false"


@pytest.mark.parametrize("path", BOTH)
def test_conformance_36_a_429_says_when_and_never_to_wait_for_long(path: str) -> None:
    for asked, told in ((2.0, "2"), (3600.0, "30"), (None, "1")):
        with serving(failing(ModelBusy(retry_after=asked))) as site:
            assert site.client.post(path, json=asking()).headers["Retry-After"] == told


@pytest.mark.parametrize("path", BOTH)
def test_conformance_37_a_failure_after_the_first_byte_is_an_error_frame_and_an_end(path: str) -> None:
    model = Pausing(error=ModelBusy())
    with serving(Brain("b", Flow(model=model))) as site:
        response = site.client.post(path, json=asking(stream=True))
        model.may_go_on.set()
        last = list(sse.read([response.get_data()]))[-1]

    assert last.event == ("error" if path == MESSAGES else "")
    assert json.loads(last.data)["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_conformance_38_an_identical_request_after_a_disconnect_is_the_same_run(path: str, stream: bool) -> None:
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        raw = json.dumps(asking(stream=True)).encode()
        with send(url, path, f"Content-Length: {len(raw)}", raw) as connection:
            connection.recv(65536)
            assert model.reached.wait(PATIENCE)
        until = time.monotonic() + PATIENCE
        while not any(site.house.store.client.scan_iter("bb:lost:*")):
            assert time.monotonic() < until
            time.sleep(0.005)
        threading.Timer(0.1, model.may_go_on.set).start()
        again = site.client.post(path, json=asking(stream=stream)).get_data()

        assert b"begun" in again
        assert len([key for key in site.house.store.client.scan_iter("bb:run:*") if key.count(b":") == 3]) == 1


@pytest.mark.parametrize("path", BOTH)
def test_conformance_39_a_counted_try_starts_no_second_run(site: Site, path: str) -> None:
    first = site.client.post(path, json=asking("39"))
    again = site.client.post(path, json=asking("39"), headers={"x-stainless-retry-count": "1"})

    assert again.headers["X-Run-Id"] == first.headers["X-Run-Id"]


@pytest.mark.parametrize(("path", "beat"), [(CHAT, b": keep-alive\n\n"), (MESSAGES, b"event: ping\n")])
def test_conformance_40_a_silent_run_shows_that_it_lives_as_long_as_it_takes(path: str, beat: bytes) -> None:
    model = Pausing("")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.02) as site:
        threading.Timer(0.5, model.may_go_on.set).start()
        began = time.monotonic()
        response = site.client.post(path, json=asking(stream=True))
        headers_after = time.monotonic() - began
        body = response.get_data()

    assert headers_after < 0.4, "the headers come after one heartbeat"
    assert body.count(beat) >= 5


@pytest.mark.parametrize("path", BOTH)
def test_conformance_41_a_document_that_takes_long_is_a_document(path: str) -> None:
    model = Pausing("at last")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.02) as site:
        response = site.client.post(path, json=asking())
        model.may_go_on.set()

        assert "at last" in text(path, json.loads(response.get_data()))
        assert "Content-Length" not in response.headers


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream", "*/*"])
def test_conformance_42_the_body_alone_says_whether_to_stream(site: Site, path: str, accept: str) -> None:
    for stream, kind in ((True, "text/event-stream"), (False, "application/json")):
        response = site.client.post(path, json=asking(stream=stream), headers={"Accept": accept})
        response.get_data()
        assert response.mimetype == kind


@pytest.mark.parametrize("path", BOTH)
def test_conformance_43_a_stream_is_told_event_by_event_and_never_compressed(path: str) -> None:
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site:
        response = site.client.post(path, json=asking(stream=True), headers={"Accept-Encoding": "gzip, br, zstd"})
        pieces = response.iter_encoded()
        told = next(pieces)
        while b"begun" not in told:
            told += next(pieces)
        assert not model.may_go_on.is_set()
        model.may_go_on.set()
        list(pieces)

    assert "Content-Encoding" not in response.headers


@pytest.mark.parametrize("path", BOTH)
def test_conformance_45_big_bodies_are_taken_and_bigger_ones_refused_in_shape(path: str) -> None:
    with serving(saying("x"), Settings(limits=Limits(max_body=200_000))) as site:
        big = site.client.post(path, json=asking("x" * 90_000, tools=tools(path, *(f"t{n}" for n in range(25)))))
        bigger = site.client.post(path, json=asking("x" * 200_000))

    assert big.status_code == 200
    assert bigger.status_code == 413
    assert bigger.json["error"]["type"] == ("invalid_request_error" if path == CHAT else "request_too_large")


@pytest.mark.parametrize("path", BOTH)
def test_conformance_46_what_is_not_known_is_no_fault_of_ours(site: Site, path: str) -> None:
    novel = [{"role": "user", "content": [{"type": "text", "text": "hi", "novel": 1}], "novel": {}}]
    strange = [{"role": "user", "content": [{"type": "novel", "novel": []}]}]

    assert site.client.post(path, json=asking(novel={"a": [1]}, messages=novel)).status_code == 200
    assert site.client.post(path, json=asking(messages=strange)).status_code < 500


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("name", ["claude-opus-4-8", "gpt-6.2-sol", "stub:x", "acme/coder/v2", "🦊"])
def test_conformance_47_every_name_of_a_model_routes_or_is_not_found(path: str, name: str) -> None:
    with serving(saying("x")) as site:
        assert site.client.post(path, json={**asking(), "model": name}).status_code == 200
    strict = Brain("b", saying("x").flows["b"], strict_models=True)
    with serving(strict) as site:
        refused = site.client.post(path, json={**asking(), "model": name})

    assert refused.status_code == 404
    if path == CHAT:
        assert refused.json["error"]["code"] == "model_not_found"


@pytest.mark.parametrize(("keys", "status"), [((), 200), (("k",), 401)])
@pytest.mark.parametrize("path", BOTH)
def test_conformance_48_a_dummy_key_is_let_in_or_kept_out(path: str, keys: tuple[str, ...], status: int) -> None:
    with serving(saying("x"), Settings(keys=keys)) as site:
        response = site.client.post(path, json=asking(), headers={"Authorization": "Bearer DUMMY_KEY"})

    assert response.status_code == status
