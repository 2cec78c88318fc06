"""What public bug reports tell of streams between a model and its client, with their very bytes: every protocol, streamed and not."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import anthropic as claude
import openai
import pytest
from werkzeug.test import TestResponse

from bigbrain import Brain, Flow, Model
from bigbrain.events import checked, collect
from bigbrain.messages import Response, Thinking
from bigbrain.models import FixedModel
from bigbrain.models.spec import Provider
from bigbrain.wire import anthropic, openai_chat, sse
from tests.acceptance.making import PATIENCE
from tests.raw_upstream import Raw, chat_frames, message_frames, raw
from tests.web.site import BOTH, CHAT, MESSAGES, Pausing, Site, asking, listening, saying, serving
from tests.web.sockets import send

EVERYWHERE = [(path, stream) for path in BOTH for stream in (False, True)]
pytestmark = pytest.mark.filterwarnings("error")


def transparent(up: Raw, provider: Provider = "openai", retries: int = 0) -> Brain:
    url = f"{up.url}/v1" if provider == "openai" else up.url
    return Brain("b", Flow(model=Model("m", provider=provider, base_url=url, api_key="k", retries=retries, pause=0.01)))


def read(path: str, response: TestResponse) -> Response:
    """The answer as its client has it, its events in legal order."""
    assert response.status_code == 200, response.get_data()
    dialect = openai_chat if path == CHAT else anthropic
    if response.mimetype == "application/json":
        return dialect.read_response(response.json)
    return collect(checked(dialect.read_events(sse.read([response.get_data()]))))


def asked(site: Site, path: str, stream: bool, **fields: Any) -> TestResponse:
    more = {"stream_options": {"include_usage": True}} if stream and path == CHAT else {}
    return site.client.post(path, json=asking(stream=stream, **more, **fields))


# B01: a character cut in two

FOX = "fox 🦊 北"
WHOLE = b"".join(chat_frames({"delta": {"content": FOX}}, {"delta": {}, "finish_reason": "stop"}))
IN_THE_FOX, IN_THE_NORTH = WHOLE.index("🦊".encode()) + 2, WHOLE.index("北".encode()) + 1
CUTS = {
    "in the fox": (WHOLE[:IN_THE_FOX], WHOLE[IN_THE_FOX:]),
    "in both": (WHOLE[:IN_THE_FOX], WHOLE[IN_THE_FOX:IN_THE_NORTH], WHOLE[IN_THE_NORTH:]),
    "everywhere": tuple(WHOLE[place : place + 1] for place in range(len(WHOLE))),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b01_a_character_that_the_network_cuts_stays_whole(path: str, stream: bool, cut: str) -> None:
    with raw(CUTS[cut]) as up, serving(transparent(up)) as site:
        assert read(path, asked(site, path, stream)).text == FOX


# B04: an error inside a good stream

START = {
    "type": "message_start",
    "message": {"id": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 0}},
}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
HI = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded, our key is sk-canary"}}
END = (
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)
UPSET = b'data: {"error":{"message":"upstream reset","type":"server_error"}}\n\n'
BROKEN: dict[str, tuple[Provider, Sequence[bytes], Sequence[bytes], int]] = {
    "anthropic": ("anthropic", message_frames(START, OVERLOADED), message_frames(START, BLOCK, HI, OVERLOADED), 529),
    "openai": ("openai", [UPSET], chat_frames({"delta": {"content": "Hi"}}, last=UPSET), 502),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b04_an_error_before_any_text_is_a_status_that_clients_try_again(path: str, stream: bool, kind: str) -> None:
    provider, before, _, status = BROKEN[kind]
    with raw(before) as up, serving(transparent(up, provider)) as site:
        response = asked(site, path, stream)

    assert response.status_code == (503 if status == 529 and path == CHAT else status)
    assert response.headers["x-should-retry"] == "true"
    assert b"sk-canary" not in response.get_data()


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b04_an_error_before_any_text_is_tried_again_within_the_run(path: str, stream: bool, kind: str) -> None:
    provider, before, _, _ = BROKEN[kind]
    good = (
        message_frames(START, BLOCK, HI, *END) if provider == "anthropic" else chat_frames({"delta": {"content": "Hi"}})
    )
    with raw(before, good) as up, serving(transparent(up, provider, retries=1)) as site:
        assert read(path, asked(site, path, stream)).text == "Hi"
        assert len(up.bodies) == 2


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b04_an_error_after_some_text_is_told_and_the_text_is_not_said_twice(
    path: str, stream: bool, kind: str
) -> None:
    provider, _, after, status = BROKEN[kind]
    with raw(after) as up, serving(transparent(up, provider, retries=3)) as site:
        response = asked(site, path, stream)
        told = response.get_data()
        record = site.record(response.headers["X-Run-Id"])
        asked_of_the_model = len(up.bodies)

    assert asked_of_the_model == 1
    assert record.status == "failed"
    if not stream:
        assert response.status_code == (503 if status == 529 and path == CHAT else status)
    else:
        last = list(sse.read([told]))[-1]
        assert told.count(b'"Hi"') == 1
        assert last.event == ("error" if path == MESSAGES else "")
        assert "error" in json.loads(last.data)


# B05: blocks out of order

MIXED = chat_frames(
    {"delta": {"reasoning_content": "mull"}},
    {"delta": {"content": ""}},
    {"delta": {"reasoning_content": " more"}},
    {"delta": {"content": "Yes"}},
    {"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "w", "arguments": ""}}]}},
    {"delta": {"content": ""}},
    {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}},
    {"delta": {}, "finish_reason": "tool_calls"},
)


@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b05_empty_deltas_between_parts_move_none_of_them(path: str, stream: bool) -> None:
    with raw(MIXED) as up, serving(transparent(up)) as site:
        answer = read(path, asked(site, path, stream))

    thoughts = [part.text for part in answer.parts if isinstance(part, Thinking)]
    assert (thoughts, answer.text) == (["mull more"], "Yes")
    assert [(call.id, call.name, call.input) for call in answer.calls] == [("c1", "w", {})]
    assert answer.stop == "calls"


def test_b05_every_block_of_a_messages_stream_is_opened_once_and_closed_before_the_next() -> None:
    with raw(MIXED) as up, serving(transparent(up)) as site:
        told = [json.loads(frame.data) for frame in sse.read([asked(site, MESSAGES, True).get_data()])]

    open_block, order = None, []
    for event in told:
        match event["type"]:
            case "content_block_start":
                assert open_block is None
                open_block = event["index"]
                order.append((event["index"], event["content_block"]["type"]))
            case "content_block_delta":
                assert event["index"] == open_block
            case "content_block_stop":
                assert event["index"] == open_block
                open_block = None
    assert order == [(0, "thinking"), (1, "text"), (2, "tool_use")]
    assert [event["type"] for event in told[-2:]] == ["message_delta", "message_stop"]


# B06: a chunk without choices

USAGE = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
OK = {"delta": {"content": "ok"}}
STOP = {"delta": {}, "finish_reason": "stop"}
REPORTS = {
    "last, alone": (
        chat_frames({"choices": [], "prompt_filter_results": []}, OK, STOP, {"choices": [], "usage": USAGE}),
        (7, 1),
    ),
    "null everywhere": (
        chat_frames(
            {"choices": [{"index": 0, **OK}], "usage": None},
            {"choices": [{"index": 0, **STOP}], "usage": None},
            {"choices": [], "usage": USAGE},
        ),
        (7, 1),
    ),
    "with the reason": (chat_frames(OK, {"choices": [{"index": 0, **STOP}], "usage": USAGE}), (7, 1)),
    "nowhere": (chat_frames(OK, STOP), (0, 0)),
}


@pytest.mark.parametrize("where", REPORTS)
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b06_usage_is_found_wherever_it_stands_and_never_guessed(path: str, stream: bool, where: str) -> None:
    frames, usage = REPORTS[where]
    with raw(frames) as up, serving(transparent(up)) as site:
        answer = read(path, asked(site, path, stream))

    assert answer.text == "ok"
    assert (answer.usage.input, answer.usage.output) == usage


# B08: signed thinking

SIGNED = message_frames(
    START,
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "plan "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "b"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "QUJD"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "REVG"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "eHg="}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "signature_delta", "signature": "R0hJ"}},
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}},
    },
    {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)
BLOCKS = [
    {"type": "thinking", "thinking": "plan b", "signature": "QUJDREVG"},
    {"type": "redacted_thinking", "data": "eHg="},
    {"type": "thinking", "thinking": "", "signature": "R0hJ"},
    {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}},
]


def by_the_sdk(url: str, path: str, stream: bool) -> None:
    """Two turns as the official client takes them: what the first brings goes back with the second."""
    hi: list[Any] = [{"role": "user", "content": "hi"}]
    if path == MESSAGES:
        with claude.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
            if stream:
                with client.messages.stream(model="b", max_tokens=99, messages=hi) as told:
                    content: Any = told.get_final_message().content
            else:
                content = client.messages.create(model="b", max_tokens=99, messages=hi).content
            result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]}
            client.messages.create(
                model="b", max_tokens=99, messages=[*hi, {"role": "assistant", "content": content}, result]
            )
        return
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as chat:
        if stream:
            with chat.chat.completions.stream(model="b", messages=hi) as answer:
                message: Any = answer.get_final_completion().choices[0].message.model_dump(exclude={"parsed"})
        else:
            message = chat.chat.completions.create(model="b", messages=hi).choices[0].message.model_dump()
        result = {"role": "tool", "tool_call_id": "toolu_1", "content": "ok"}
        chat.chat.completions.create(model="b", messages=[*hi, message, result])


@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b08_signed_thinking_goes_back_up_byte_for_byte_and_in_order(path: str, stream: bool) -> None:
    with raw(SIGNED, message_frames(START, BLOCK, HI, *END)) as up:
        with serving(transparent(up, "anthropic")) as site, listening(site.app) as url:
            by_the_sdk(url, path, stream)
        second = up.bodies[1]["messages"]

    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["content"] == BLOCKS


# B09: large limits


@pytest.mark.parametrize("limit", [21_333, 21_334, 64_000, 10_000_000])
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b09_a_large_limit_is_passed_on_and_no_reason_to_refuse(path: str, stream: bool, limit: int) -> None:
    with raw(message_frames(START, BLOCK, HI, *END)) as up, serving(transparent(up, "anthropic")) as site:
        assert read(path, asked(site, path, stream, max_tokens=limit)).text == "Hi"
        assert up.bodies[0]["max_tokens"] == limit


@pytest.mark.parametrize("limit", [-1, "100", 1e3, True])
@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b09_a_limit_that_is_none_names_its_field(path: str, stream: bool, limit: object) -> None:
    with serving(saying("x")) as site:
        response = asked(site, path, stream, max_tokens=limit)

    assert response.status_code == 400
    assert "max_tokens" in response.json["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_b09_nothing_at_all_is_a_limit_for_messages_only(stream: bool) -> None:
    """Anthropic's clients fill its cache so; OpenAI's server refuses it."""
    with serving(saying("x")) as site:
        assert asked(site, CHAT, stream, max_tokens=0).status_code == 400
        answer = read(MESSAGES, asked(site, MESSAGES, stream, max_tokens=0))

    assert (answer.parts, answer.stop) == ((), "length")


# B10: empty text beside calls

CALL = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
EMPTY: list[Any] = ["", None, "missing", [], [{"type": "text", "text": " "}]]


@pytest.mark.parametrize("content", EMPTY)
@pytest.mark.parametrize("stream", [False, True])
def test_b10_no_empty_text_reaches_anthropic(content: Any, stream: bool) -> None:
    said = {"role": "assistant", "tool_calls": [CALL], **({} if content == "missing" else {"content": content})}
    result = {"role": "tool", "tool_call_id": "c1", "content": ""}
    history = [
        {"role": "system", "content": ""},
        *asking()["messages"],
        said,
        result,
        {"role": "user", "content": "go"},
    ]
    with raw(message_frames(START, BLOCK, HI, *END)) as up, serving(transparent(up, "anthropic")) as site:
        read(CHAT, asked(site, CHAT, stream, messages=history))
        (body,) = up.bodies

    blocks = [block for message in body["messages"] for block in message["content"]]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_result", "text"]
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert "system" not in body


# B17: clients that leave in silence


@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b17_clients_that_leave_in_silence_are_noticed_and_leave_their_places(path: str, stream: bool) -> None:
    model = Pausing("")
    with serving(Brain("b", Flow(model=model)), heartbeat=0.02) as site, listening(site.app) as url:
        body = json.dumps(asking(stream=stream)).encode()
        for number in range(5):
            model.reached.clear()
            with send(url, path, f"X-Run-Id: r-{number}\r\nContent-Length: {len(body)}", body):
                assert model.reached.wait(PATIENCE)
        assert site.client.get("/v1/models").status_code == 200
        tick = threading.Event()
        for _ in range(500):
            if len(list(site.house.store.client.scan_iter("bb:lost:*"))) == 5:
                break
            tick.wait(0.01)

        assert len(list(site.house.store.client.scan_iter("bb:lost:*"))) == 5
        model.may_go_on.set()


# B18: an answer that is over before anybody listens


@pytest.mark.parametrize(("path", "stream"), EVERYWHERE)
def test_b18_an_answer_of_no_duration_is_whole(path: str, stream: bool) -> None:
    with serving(Brain("b", Flow(model=FixedModel("ABC")))) as site:
        assert {read(path, asked(site, path, stream)).text for _ in range(20)} == {"ABC"}
