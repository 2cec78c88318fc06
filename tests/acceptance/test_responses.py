"""The Responses protocol where a model's server stands behind the brain: the clients' own list, and what public bug reports tell of.

The lines of that list that need no model behind stand with the parts that they are about: `tests/wire/test_openai_responses*.py`,
`tests/web/test_responses*.py`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from werkzeug.test import TestResponse

from bigbrain import Brain, Flow, Model
from bigbrain.errors import ModelBusy, ModelOverloaded, ModelRefused
from bigbrain.events import checked, collect
from bigbrain.messages import Response, ToolCall
from bigbrain.models.spec import Provider
from bigbrain.settings import Settings
from bigbrain.wire import openai_responses, sse
from tests.acceptance.making import PATIENCE
from tests.acceptance.test_wire_pitfalls import BLOCK, BLOCKS, BROKEN, CUTS, END, FOX, HI, SIGNED, START
from tests.raw_upstream import Raw, chat_frames, message_frames, raw
from tests.scripted import Script, says
from tests.upstream import Upstream
from tests.web.site import Pausing, Site, listening, saying, serving
from tests.web.sockets import send

PATH = "/v1/responses"
BOTH_WAYS = pytest.mark.parametrize("stream", [False, True])
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("w", "v")]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(params=["chat", "responses", "anthropic"])
def site(request: pytest.FixtureRequest, upstream: Upstream) -> Iterator[Site]:
    """A transparent brain before a model that does what it is asked, in each protocol."""
    models = {
        "chat": Model("obey", base_url=upstream.openai),
        "responses": Model("obey", api="responses", base_url=upstream.openai),
        "anthropic": Model("obey", provider="anthropic", base_url=upstream.anthropic),
    }
    with serving(Brain("b", Flow(model=models[request.param]))) as site:
        yield site


def ask(site: Site, said: Any = "hi", headers: dict[str, str] | None = None, **body: Any) -> TestResponse:
    return site.client.post(PATH, json={"model": "b", "input": said, **body}, headers=headers)


def read(response: TestResponse) -> Response:
    """The answer as its client has it, its events in legal order."""
    assert response.status_code == 200, response.get_data()
    if response.mimetype == "application/json":
        return openai_responses.read_response(response.json)
    return collect(checked(openai_responses.read_events(sse.read([response.get_data()]))))


def transparent(up: Raw, provider: Provider = "openai", retries: int = 0) -> Brain:
    url = f"{up.url}/v1" if provider == "openai" else up.url
    return Brain("b", Flow(model=Model("m", provider=provider, base_url=url, api_key="k", retries=retries, pause=0.01)))


# What clients insist on


def test_conformance_03_a_key_is_taken_from_either_header() -> None:
    with serving(saying("x"), Settings(keys=("k",))) as site:
        got = [
            ask(site, headers=headers).status_code
            for headers in ({"Authorization": "Bearer k"}, {"x-api-key": "k"}, {})
        ]

    assert got == [200, 200, 401]


@BOTH_WAYS
def test_conformance_12_two_calls_stay_two(stream: bool) -> None:
    two = says(ToolCall("c1", "w", '{"city":"Oslo"}'), ToolCall("c2", "w", '{"city":"Rome"}'))
    with serving(Brain("b", Flow(model=Script(two)))) as site:
        assert read(ask(site, tools=TOOLS, stream=stream)).calls == two.calls


@BOTH_WAYS
@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "v"}])
def test_conformance_13_a_forced_call_is_made(site: Site, choice: Any, stream: bool) -> None:
    [call] = read(ask(site, tools=TOOLS, tool_choice=choice, stream=stream)).calls

    assert (call.name, call.input) == ("w" if choice == "required" else "v", {"city": "xxxxx"})


@BOTH_WAYS
def test_conformance_14_no_call_is_made_where_none_is_wanted(site: Site, stream: bool) -> None:
    assert read(ask(site, tools=TOOLS[:1], tool_choice="none", stream=stream)).calls == ()


def test_conformance_15_the_second_turn_takes_the_items_of_the_first(site: Site) -> None:
    question = {"role": "user", "content": "hi"}
    first = ask(site, [question], tools=TOOLS[:1]).json["output"]
    output = {"type": "function_call_output", "call_id": first[-1]["call_id"], "output": "sunny"}
    second = read(ask(site, [question, *first, output], tools=TOOLS[:1]))

    assert first[-1]["type"] == "function_call"
    assert (second.text, second.stop) == ("Hello from the model.", "end")


@BOTH_WAYS
def test_conformance_16_a_schema_is_kept_to(site: Site, stream: bool) -> None:
    form = {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}

    assert json.loads(read(ask(site, text={"format": form}, stream=stream)).text) == {"city": "xxxxx"}


def test_conformance_17_a_token_limit_is_passed_on(site: Site, upstream: Upstream) -> None:
    ask(site, max_output_tokens=77)
    body = upstream.requests[-1].body

    assert 77 in (body.get("max_tokens"), body.get("max_completion_tokens"), body.get("max_output_tokens"))


def test_conformance_33_a_picture_reaches_the_model(site: Site, upstream: Upstream) -> None:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    ask(site, [{"role": "user", "content": [{"type": "input_text", "text": "look"}, picture]}])

    assert PNG in json.dumps(upstream.requests[-1].body)


def test_conformance_35_what_trying_again_cannot_help_says_so() -> None:
    with serving(saying("x"), Settings(keys=("k",))) as site:
        assert ask(site).headers["x-should-retry"] == "false"
    with serving(Brain("b", Flow(model=Pausing("", error=ModelRefused())))) as site:
        pausing = site.house.brain.flows["b"].model
        assert isinstance(pausing, Pausing)
        pausing.may_go_on.set()
        assert ask(site).headers["x-should-retry"] == "false"


@pytest.mark.parametrize(("seconds", "told"), [(None, "1"), (2.0, "2"), (3600.0, "30")])
def test_conformance_36_a_429_says_when_and_never_to_wait_for_long(seconds: float | None, told: str) -> None:
    model = Pausing("", error=ModelBusy(retry_after=seconds))
    model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        response = ask(site)

    assert (response.status_code, response.headers["Retry-After"]) == (429, told)


@BOTH_WAYS
def test_conformance_38_an_identical_request_after_a_disconnect_is_the_same_run(stream: bool) -> None:
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        body = json.dumps({"model": "b", "input": "hi", "stream": True}).encode()
        with send(url, PATH, f"Content-Length: {len(body)}", body) as connection:
            connection.recv(65536)
            assert model.reached.wait(PATIENCE)
        lost(site)
        threading.Timer(0.1, model.may_go_on.set).start()
        again = ask(site, stream=stream)

        assert read(again).text == "begun"
        assert runs(site) == 1


def lost(site: Site) -> None:
    until = time.monotonic() + PATIENCE
    while not any(site.house.store.client.scan_iter("bb:lost:*")):
        assert time.monotonic() < until
        time.sleep(0.005)


def runs(site: Site) -> int:
    return len([key for key in site.house.store.client.scan_iter("bb:run:*") if key.count(b":") == 3])


def test_conformance_39_a_counted_try_starts_no_second_run() -> None:
    with serving(saying("x")) as site:
        first = ask(site, "39")
        again = ask(site, "39", headers={"x-stainless-retry-count": "1"})

        assert again.json["id"] == first.json["id"]
        assert runs(site) == 1


def test_conformance_39_codex_asks_again_with_what_it_has_got_and_starts_no_second_run() -> None:
    turn = {"client_metadata": {"turn_id": "t1"}, "store": False, "stream": True}
    question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    got = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "begun"}]}
    model = Pausing("begun")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        body = json.dumps({"model": "b", "input": [question], **turn}).encode()
        with send(url, PATH, f"Content-Length: {len(body)}", body) as connection:
            connection.recv(65536)
            assert model.reached.wait(PATIENCE)
        lost(site)
        threading.Timer(0.1, model.may_go_on.set).start()
        again = ask(site, [question, got], **turn)

        assert read(again).text == "begun"
        assert runs(site) == 1


def test_conformance_41_a_document_that_takes_long_is_a_document() -> None:
    model = Pausing("at last")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.02) as site:
        threading.Timer(0.3, model.may_go_on.set).start()
        response = ask(site)

        assert read(response).text == "at last"


def test_conformance_43_a_stream_is_told_event_by_event_and_never_compressed() -> None:
    model = Pausing("one")
    with serving(Brain("b", Flow(model=model))) as site:
        response = ask(site, stream=True, headers={"Accept-Encoding": "gzip, br, zstd"})
        head = next(iter(response.response))
        assert not model.may_go_on.is_set()
        model.may_go_on.set()
        response.get_data()

    assert b"response.created" in head
    assert "Content-Encoding" not in response.headers


def test_conformance_45_a_body_of_90_kb_with_20_tools_is_taken(site: Site) -> None:
    tools = [{**TOOLS[0], "name": f"tool_{number}", "description": "x" * 4000} for number in range(22)]

    assert ask(site, "x" * 10_000, tools=tools).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"unknown": {"a": [1]}},
        {"input": [{"type": "brand_new", "thing": 1}, {"role": "user", "content": "hi"}]},
        {"input": [{"role": "user", "content": "hi", "internal_chat_message_metadata_passthrough": {"a": 1}}]},
        {"tools": [{"type": "web_search"}, {"type": "tool_search"}, {"type": "brand_new"}]},
        {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"], "top_logprobs": 3},
        {"service_tier": "ultrafast", "truncation": "auto", "prompt_cache_key": "k", "safety_identifier": "s"},
        {"reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"}},
        {"stream_options": {"include_obfuscation": False}},
    ],
)
def test_conformance_46_what_is_not_known_is_no_fault_of_ours(site: Site, fields: dict[str, Any]) -> None:
    response = site.client.post(PATH, json={"model": "b", "input": "hi", **fields})

    assert response.status_code == 200, response.get_data()


@pytest.mark.parametrize("name", ["claude-opus-4-8", "gpt-6.2-sol", "stub:x", "a/b/c", "", "🦊"])
def test_conformance_47_every_name_of_a_model_routes_or_is_not_found(name: str) -> None:
    with serving(saying("x")) as site:
        assert site.client.post(PATH, json={"model": name, "input": "x"}).status_code in (200, 404)


@pytest.mark.parametrize(("keys", "status"), [((), 200), (("k",), 401)])
def test_conformance_48_a_dummy_key_is_let_in_or_kept_out(keys: tuple[str, ...], status: int) -> None:
    with serving(saying("x"), Settings(keys=keys)) as site:
        assert ask(site, headers={"Authorization": "Bearer DUMMY_KEY"}).status_code == status


# What public bug reports tell of


@pytest.mark.parametrize("cut", CUTS)
@BOTH_WAYS
def test_b01_a_character_that_the_network_cuts_stays_whole(stream: bool, cut: str) -> None:
    with raw(CUTS[cut]) as up, serving(transparent(up)) as site:
        assert read(ask(site, stream=stream)).text == FOX


TWO_CALLS = chat_frames(
    {"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "w", "arguments": '{"city":"Oslo"}'}}]}},
    {"delta": {"tool_calls": [{"index": 0, "id": "b", "function": {"name": "w", "arguments": '{"city":"Rome"}'}}]}},
    {"delta": {}, "finish_reason": "stop"},
)


@BOTH_WAYS
def test_b02_b03_two_calls_of_a_careless_server_stay_two_and_are_what_the_answer_ends_with(stream: bool) -> None:
    with raw(TWO_CALLS) as up, serving(transparent(up)) as site:
        answer = read(ask(site, tools=TOOLS, stream=stream))

    assert [call.input for call in answer.calls] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert answer.stop == "calls"


@pytest.mark.parametrize("kind", BROKEN)
@BOTH_WAYS
def test_b04_an_error_before_any_text_is_a_status_that_clients_try_again(stream: bool, kind: str) -> None:
    provider, before, _, status = BROKEN[kind]
    with raw(before) as up, serving(transparent(up, provider)) as site:
        response = ask(site, stream=stream)

    assert response.status_code == (503 if status == 529 else status)
    assert response.headers["x-should-retry"] == "true"
    assert b"sk-canary" not in response.get_data()


@pytest.mark.parametrize("kind", BROKEN)
def test_b04_an_error_after_some_text_is_a_failed_response_and_the_text_is_not_said_twice(kind: str) -> None:
    provider, _, after, _ = BROKEN[kind]
    with raw(after) as up, serving(transparent(up, provider, retries=3)) as site:
        told = [json.loads(frame.data) for frame in sse.read([ask(site, stream=True).get_data()])]
        asked_of_the_model = len(up.bodies)

    assert asked_of_the_model == 1
    assert told[-1]["type"] == "response.failed"
    assert [one["delta"] for one in told if one["type"] == "response.output_text.delta"] == ["Hi"]


@BOTH_WAYS
@pytest.mark.parametrize("stored", [False, True])
def test_b08_signed_thinking_goes_back_up_byte_for_byte_and_in_order(stream: bool, stored: bool) -> None:
    question = {"role": "user", "content": "hi"}
    output = {"type": "function_call_output", "call_id": "toolu_1", "output": "ok"}
    tools: Any = [{"type": "function", "name": "w", "parameters": {"type": "object"}, "strict": False}]
    with raw(SIGNED, message_frames(START, BLOCK, HI, *END)) as up:
        with (
            serving(transparent(up, "anthropic")) as site,
            listening(site.app) as url,
            openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
        ):
            if stream:
                with client.responses.stream(model="b", input=[question], tools=tools) as told:
                    first: Any = told.get_final_response()
            else:
                first = client.responses.create(model="b", input=[question], tools=tools)
            if stored:
                client.responses.create(model="b", input=[output], tools=tools, previous_response_id=first.id)
            else:
                items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
                client.responses.create(model="b", input=[question, *items, output], tools=tools, store=False)
        second = up.bodies[1]["messages"]

    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["content"] == BLOCKS


@pytest.mark.parametrize("limit", [21_334, 10_000_000])
@BOTH_WAYS
def test_b09_a_large_limit_is_passed_on_and_no_reason_to_refuse(stream: bool, limit: int) -> None:
    with raw(message_frames(START, BLOCK, HI, *END)) as up, serving(transparent(up, "anthropic")) as site:
        assert read(ask(site, stream=stream, max_output_tokens=limit)).text == "Hi"
        assert up.bodies[0]["max_tokens"] == limit


@pytest.mark.parametrize("content", ["", None, [], [{"type": "output_text", "text": " "}]])
def test_b10_no_empty_text_reaches_anthropic(content: Any) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "w", "arguments": "{}"}
    history = [
        {"role": "user", "content": "hi"},
        {"type": "message", "role": "assistant", "content": content},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": ""},
    ]
    with raw(message_frames(START, BLOCK, HI, *END)) as up, serving(transparent(up, "anthropic")) as site:
        assert ask(site, history, tools=TOOLS).status_code == 200
        blocks = [
            block
            for message in up.bodies[0]["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]

    assert all(block["text"].strip() for block in blocks if block["type"] == "text")


@BOTH_WAYS
def test_b17_a_client_that_leaves_in_silence_is_noticed_and_its_run_stopped(stream: bool) -> None:
    model = Pausing("")
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        body = json.dumps({"model": "b", "input": "hi", "stream": stream}).encode()
        with send(url, PATH, f"Content-Length: {len(body)}", body):
            assert model.reached.wait(PATIENCE)
        [key] = [key for key in site.house.store.client.scan_iter("bb:run:*") if key.count(b":") == 3]
        assert site.house.record(key.decode().removeprefix("bb:run:")).status == "cancelled"


@BOTH_WAYS
def test_b18_answers_of_no_duration_are_whole_however_many_come_at_once(stream: bool) -> None:
    with serving(saying("x")) as site, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: read(ask(site, stream=stream)).text, range(24)))

    assert answers == ["x"] * 24


def test_conformance_34_an_overloaded_model_is_a_503_which_openai_knows() -> None:
    model = Pausing("", error=ModelOverloaded())
    model.may_go_on.set()
    with serving(Brain("b", Flow(model=model))) as site:
        assert ask(site).status_code == 503
