"""The Chat Completions dialect keeps the promises of every dialect, and the official SDK understands it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from bigbrain.errors import ModelBroke
from bigbrain.events import Delta, Failed, Opened, Started, collect, replay
from bigbrain.messages import (
    Audio,
    File,
    Image,
    Part,
    Request,
    Response,
    Stop,
    Text,
    Thinking,
    ToolCall,
    Usage,
    user,
)
from bigbrain.wire import Dialect, openai_chat, sse
from tests.contracts.dialect import CANARY, DialectContract, fuzz, stream
from tests.contracts.values import images, texts, usages, words

DIALECT: Dialect = openai_chat
"""The type checker's proof that the module offers all that a dialect must."""

THOUGHT = {"openai": {"field": "reasoning_content"}}
PLAIN = Request(model="m", messages=(user("hi"),), stream=True)
ASKING = replace(PLAIN, extra={"openai": {"stream_options": {"include_usage": True}}})

thoughts = words.map(lambda text: Thinking(text, vendor=THOUGHT))
refusals = words.map(lambda text: Text(text, refusal=True))
oslo, rome = '{"c":"Oslo"}', '{"c":"Rome"}'


def merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """What a flat wire makes of neighbours of one kind."""
    kept: list[Part] = []
    for part in parts:
        last = kept[-1] if kept else None
        match last, part:
            case (Text(refusal=before), Text(refusal=now)) if before == now:
                kept[-1] = replace(last, text=last.text + part.text)
            case (Thinking(), Thinking()):
                kept[-1] = replace(last, text=last.text + part.text)
            case _:
                kept.append(part)
    return tuple(kept)


def in_order(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Thinking, text, refusal, calls: the order of a whole message's fields."""

    def rank(part: Part) -> int:
        if isinstance(part, Text):
            return 2 if part.refusal else 1
        return 0 if isinstance(part, Thinking) else 3

    return merged(sorted(parts, key=rank))


class TestDialect(DialectContract):
    dialect: ClassVar[Dialect] = openai_chat
    fields: ClassVar[frozenset[str]] = frozenset(
        [
            "messages",
            "role",
            "content",
            "tool_calls",
            "id",
            "function",
            "name",
            "arguments",
            "tools",
            "tool_choice",
            "n",
            "stop",
            "stream",
            "error",
            "choices",
            "delta",
            "message",
            "finish_reason",
            "usage",
            "index",
            "type",
            "response_format",
            "max_tokens",
            "text",
            "image_url",
            "url",
            "custom",
            "input",
            "refusal",
        ]
    )

    def user_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        files = st.builds(File, data=st.just("aGk="), media_type=st.just("application/pdf"), name=st.just("a.pdf"))
        sounds = st.builds(Audio, st.just("aGk="), st.sampled_from(["wav", "mp3"]))
        links = st.builds(Image, url=st.just("https://a.example/b.png"), vendor=st.just({"openai": {"detail": "low"}}))
        uploads = st.builds(File, file_id=st.just("file-1"))
        return st.lists(texts | images | files | sounds | links | uploads, min_size=1, max_size=3).map(tuple)

    def assistant_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        said = st.lists(texts, max_size=2)
        return st.builds(
            lambda thought, text, refusal: (*thought, *text, *refusal) or (Text("ok"),),
            st.lists(thoughts, max_size=1),
            said,
            st.lists(refusals, max_size=1),
        )

    def response_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | thoughts | refusals, max_size=4).map(tuple)

    def knobs(self) -> st.SearchStrategy[dict[str, Any]]:
        own = st.fixed_dictionaries(
            {},
            optional={
                "think": st.sampled_from(["none", "low", "max"]),
                "extra": st.just({"openai": {"seed": 7, "logit_bias": {"50": -1}, "metadata": {"a": "b"}}}),
            },
        )
        return st.builds(lambda base, more: {**base, **more}, super().knobs(), own)

    def usages(self) -> st.SearchStrategy[Usage]:
        return st.builds(lambda usage, written: replace(usage, cache_write=written), usages, st.integers(0, 9))

    def asking(self) -> Request:
        return ASKING

    def request_kept(self, request: Request) -> Request:
        if not request.stream:
            return request
        extra = {**request.extra.get("openai", {}), "stream_options": {"include_usage": True}}
        return replace(request, extra={"openai": extra})

    def stop_kept(self, response: Response) -> Stop | None:
        """A refusal in words is what the wire calls a plain end."""
        refused = any(isinstance(part, Text) and part.refusal for part in response.parts)
        return "refusal" if response.stop == "end" and refused else response.stop

    def response_kept(self, response: Response) -> Response:
        return replace(response, parts=in_order(response.parts), stop=self.stop_kept(response))

    def stream_kept(self, response: Response) -> Response:
        return replace(response, parts=merged(response.parts), stop=self.stop_kept(response))

    @given(data=st.data())
    @fuzz
    def test_the_sdk_reads_every_document_and_chunk_strictly(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        for request in (ASKING, PLAIN):
            document = openai_chat.write_response(response, request)
            ChatCompletion.model_validate_json(json.dumps(document), strict=True)
            frames = list(sse.read(stream(openai_chat, replay(response), request)))

            assert frames.pop().data == b"[DONE]"
            for frame in frames:
                ChatCompletionChunk.model_validate_json(frame.data, strict=True)

    @given(data=st.data())
    @fuzz
    def test_a_stream_has_one_role_one_reason_and_an_index_on_everything(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        frames = list(sse.read(stream(openai_chat, replay(response), PLAIN)))
        chunks = [json.loads(frame.data) for frame in frames[:-1]]
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        fragments = [fragment for delta in deltas for fragment in delta.get("tool_calls", ())]

        assert [place for place, delta in enumerate(deltas) if "role" in delta] == [0]
        assert [place for place, one in enumerate(chunks) if one["choices"][0]["finish_reason"]] == [len(chunks) - 1]
        assert not any("usage" in chunk for chunk in chunks)
        assert {one["choices"][0]["index"] for one in chunks} == {0}
        assert [one["index"] for one in fragments if "id" in one] == list(range(len(response.calls)))
        assert all(set(one) == {"index", "function"} and set(one["function"]) == {"arguments"}
                   for one in fragments if "id" not in one)  # fmt: skip


def answered(document: bytes, kind: str) -> openai.OpenAI:
    """The official SDK in front of a server that always gives this answer."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=document, headers={"content-type": kind}))
    return openai.OpenAI(base_url="http://127.0.0.1/v1", api_key="x", http_client=httpx2.Client(transport=transport))


FULL = Response(
    "chatcmpl-1",
    "m",
    1_700_000_000,
    (
        Thinking("mull"),
        Text("fox 🦊 "),
        Text("北"),
        ToolCall("a", "w", oslo),
        ToolCall("b", "v"),
        ToolCall("c", "w", rome),
    ),
    "calls",
    usage=Usage(input=5, output=9, cache_read=2, reasoning=4),
)


def test_the_sdk_gathers_a_stream_as_it_was_meant() -> None:
    sent = b"".join(stream(openai_chat, replay(FULL), ASKING))
    with (
        answered(sent, "text/event-stream") as client,
        client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as live,
    ):
        got = live.get_final_completion()
    message = got.choices[0].message
    calls = [(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ()]

    assert (got.id, got.model, got.created) == ("chatcmpl-1", "m", 1_700_000_000)
    assert (message.content, message.refusal) == ("fox 🦊 北", None)
    assert calls == [("a", "w", oslo), ("b", "v", "{}"), ("c", "w", rome)]
    assert got.choices[0].finish_reason == "tool_calls"
    assert got.usage is not None
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (7, 9, 16)


def test_the_sdk_reads_a_whole_answer_as_it_was_meant() -> None:
    document = json.dumps(openai_chat.write_response(FULL, PLAIN)).encode()
    with answered(document, "application/json") as client:
        got = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])

    assert got.choices[0].message.content == "fox 🦊 北"
    assert [call.id for call in got.choices[0].message.tool_calls or ()] == ["a", "b", "c"]


def test_the_sdk_raises_an_error_frame() -> None:
    failed = Failed("run_failed", "The run failed.", 500)
    sent = b"".join(stream(openai_chat, [Started("r", "m", 1), Opened(0, Text()), Delta(0, "a"), failed], PLAIN))
    with answered(sent, "text/event-stream") as client, pytest.raises(openai.APIError, match=r"The run failed\."):
        list(client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True))


def test_a_whole_answer_has_every_field_that_strict_clients_want() -> None:
    assert openai_chat.write_response(FULL, PLAIN) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "fox 🦊 北",
                    "refusal": None,
                    "annotations": [],
                    "reasoning_content": "mull",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "w", "arguments": oslo}},
                        {"id": "b", "type": "function", "function": {"name": "v", "arguments": "{}"}},
                        {"id": "c", "type": "function", "function": {"name": "w", "arguments": rome}},
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 9,
            "total_tokens": 16,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
    }


@pytest.mark.parametrize(
    ("parts", "content"),
    [((), ""), ((ToolCall("a", "w"),), None), ((Text("x"),), "x"), ((Text("no", refusal=True),), None)],
)
def test_content_is_null_only_when_something_else_is_said(parts: tuple[Part, ...], content: str | None) -> None:
    message = openai_chat.write_response(Response("r", "m", 1, parts, "end"), PLAIN)["choices"][0]["message"]

    assert message["content"] == content


CALLED = (ToolCall("a", "w", oslo),)
REFUSED = (Text("no", refusal=True),)


@pytest.mark.parametrize(
    ("parts", "stop", "reason"),
    [
        ((), "end", "stop"),
        ((), "sequence", "stop"),
        ((), "pause", "stop"),
        ((), "length", "length"),
        ((), "context", "length"),
        ((), "filter", "content_filter"),
        ((), "refusal", "content_filter"),
        (REFUSED, "refusal", "stop"),
        ((), "calls", "stop"),
        (CALLED, "calls", "tool_calls"),
        (CALLED, "end", "tool_calls"),
        (CALLED, "length", "length"),
        (CALLED, "filter", "content_filter"),
    ],
)
def test_the_reason_fits_what_was_sent_in_both_modes(parts: tuple[Part, ...], stop: Stop, reason: str) -> None:
    response = Response("r", "m", 1, parts, stop)
    whole = openai_chat.write_response(response, PLAIN)["choices"][0]["finish_reason"]
    last = list(sse.read(stream(openai_chat, replay(response), PLAIN)))[-2]

    assert (whole, json.loads(last.data)["choices"][0]["finish_reason"]) == (reason, reason)


def test_half_an_argument_is_the_same_in_both_modes() -> None:
    response = Response("r", "m", 1, (ToolCall("a", "w", '{"c":"Os'),), "length")
    whole = openai_chat.read_response(openai_chat.write_response(response, PLAIN))
    live = collect(openai_chat.read_events(sse.read(stream(openai_chat, replay(response), PLAIN))))

    assert whole.calls == live.calls == response.calls


def test_a_stream_is_written_frame_by_frame() -> None:
    response = Response("r", "m", 1, (Text("Hi"), ToolCall("a", "w", oslo)), "calls", usage=Usage(3, 2))
    frames = [frame.data for frame in sse.read(stream(openai_chat, replay(response), ASKING))]
    told = [
        (one["choices"][0]["delta"], one["choices"][0]["finish_reason"], one["usage"])
        for one in map(json.loads, frames[:-2])
    ]
    last = json.loads(frames[-2])

    assert told == [
        ({"role": "assistant", "content": "", "refusal": None}, None, None),
        ({"content": "Hi"}, None, None),
        (
            {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "w", "arguments": ""}}]},
            None,
            None,
        ),
        ({"tool_calls": [{"index": 0, "function": {"arguments": oslo}}]}, None, None),
        ({}, "tool_calls", None),
    ]
    assert (last["choices"], last["usage"]["total_tokens"], frames[-1]) == ([], 5, b"[DONE]")


def test_a_failure_is_the_last_frame() -> None:
    failed = Failed("model_broke", "The model behind this brain broke off.", 502, retryable=True)
    frames = [frame.data for frame in sse.read(stream(openai_chat, [Started("r", "m", 1), failed], PLAIN))]

    assert json.loads(frames[-1]) == {
        "error": {
            "message": "The model behind this brain broke off.",
            "type": "server_error",
            "param": None,
            "code": "model_broke",
        }
    }


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({}, "no `choices`"),
        ({"choices": []}, "no `choices`"),
        ({"choices": [{}]}, "no chat completion"),
        ([], "no chat completion"),
        ({"choices": [{"message": {"tool_calls": [{"id": "a"}]}}]}, "calls nothing"),
        ({"error": {"message": CANARY}}, CANARY),
    ],
)
def test_a_document_that_is_no_answer_is_a_broken_model(document: Any, sentence: str) -> None:
    with pytest.raises(ModelBroke, match=sentence):
        openai_chat.read_response(document)


def test_a_whole_answer_of_a_careless_server_is_read() -> None:
    call = {"function": {"name": "w", "arguments": {"c": 1}}}
    message = {"content": [{"type": "text", "text": "ok"}], "reasoning": "mull", "tool_calls": [call, call]}

    assert openai_chat.read_response({"created": 1.5, "choices": [{"message": message}]}) == Response(
        created=1,
        parts=(
            Thinking("mull", {"openai": {"field": "reasoning"}}),
            Text("ok"),
            ToolCall("call_0", "w", '{"c":1}'),
            ToolCall("call_1", "w", '{"c":1}'),
        ),
        stop="calls",
    )
