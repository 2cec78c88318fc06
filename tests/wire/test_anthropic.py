"""The Messages API: the dialects' contract, and the official SDK as a witness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic as sdk
import httpx2
import msgspec
import pytest
from anthropic.types import Message as SdkMessage
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from bigbrain.errors import Busy, ContextTooLong, Unauthorized
from bigbrain.events import Event, Failed, replay
from bigbrain.messages import (
    AnswerSchema,
    File,
    Image,
    Message,
    Part,
    Request,
    Response,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    user,
)
from bigbrain.wire import anthropic
from tests.contracts.dialect import DialectContract, fuzz, images, stream, texts, wired, words

signed = st.builds(
    Thinking,
    words | st.just(""),
    st.sampled_from([{"anthropic": {"signature": "QUJD"}}, {"anthropic": {"signature": "+/=="}}]),
)
redacted = st.just(Thinking(vendor={"anthropic": {"redacted": "eHg="}}))
files = st.sampled_from(
    [
        File(data="JVBERg==", media_type="application/pdf", name="a.pdf"),
        File(text="some words", name="notes", vendor={"anthropic": {"context": "old", "citations": {"enabled": True}}}),
        File(url="https://a.example/b.pdf"),
        File(file_id="file_1"),
    ]
)
marked = words.map(lambda text: Text(text, vendor={"anthropic": {"cache_control": {"type": "ephemeral"}}}))


def compact(call: ToolCall) -> ToolCall:
    """The call as it comes back: its arguments travel as an object, so their blanks are lost."""
    return replace(call, arguments=msgspec.json.encode(call.input).decode())


def plain(part: Part) -> Part:
    return compact(part) if isinstance(part, ToolCall) else part


def merged(messages: list[Message]) -> list[Message]:
    """The messages with neighbours of one role made one."""
    found: list[Message] = []
    for message in messages:
        if found and found[-1].role == message.role:
            found[-1] = replace(found[-1], parts=(*found[-1].parts, *message.parts))
        else:
            found.append(message)
    return found


def system_of(messages: tuple[Message, ...]) -> list[Message]:
    """The system texts as they come back: in front, and one text unless one of them is marked."""
    parts = tuple(part for message in messages if message.role == "system" for part in message.parts)
    if any(part.vendor for part in parts) or not parts:
        return [Message("system", parts)] if parts else []
    return [Message("system", (Text("\n\n".join(part.text for part in parts if isinstance(part, Text))),))]


class TestContract(DialectContract):
    dialect = anthropic
    fields = frozenset(
        {
            *(
                "model",
                "messages",
                "system",
                "max_tokens",
                "tools",
                "tool_choice",
                "thinking",
                "output_config",
                "stream",
            ),
            *("role", "content", "type", "text", "source", "data", "media_type", "url", "title", "signature", "id"),
            *("name", "input", "tool_use_id", "is_error", "image", "document", "tool_use", "tool_result", "user"),
            *("assistant", "base64", "custom", "input_schema", "auto", "tool", "metadata", "user_id", "stop_sequences"),
            *("message", "index", "delta", "content_block", "usage", "stop_reason", "error", "message_start"),
            *("content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"),
            *("text_delta", "input_json_delta", "partial_json", "input_tokens", "output_tokens", "thread", "effort"),
        }
    )

    def user_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | marked | images | files, min_size=1, max_size=3).map(tuple)

    def system_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | marked, min_size=1, max_size=2).map(tuple)

    def assistant_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | signed | redacted, min_size=1, max_size=3).map(tuple)

    def result_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | images | files, max_size=2).map(tuple)

    def result_errors(self) -> st.SearchStrategy[bool]:
        return st.booleans()

    def response_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | signed | redacted | words.map(Thinking), max_size=3).map(tuple)

    def usages(self) -> st.SearchStrategy[Usage]:
        counts = st.integers(0, 10_000)
        return st.builds(Usage, counts, st.integers(100, 900), counts, counts, st.integers(0, 100))

    def response(self, draw: st.DrawFn) -> Response:
        response = super().response(draw)
        return replace(response, parts=tuple(plain(part) for part in response.parts))

    def request_kept(self, request: Request) -> Request:
        others = merged([message for message in request.messages if message.role != "system"])
        others = [replace(message, parts=tuple(plain(part) for part in message.parts)) for message in others]
        last = others[-1].parts[-1]
        if others[-1].role == "assistant" and isinstance(last, Text):
            trimmed = replace(last, text=last.text.rstrip())
            others[-1] = replace(others[-1], parts=(*others[-1].parts[:-1], trimmed))
        return replace(
            request,
            messages=(*system_of(request.messages), *others),
            parallel_calls=None if request.tool_choice == "none" else request.parallel_calls,
            schema=request.schema and AnswerSchema(schema=request.schema.schema),
        )

    def response_kept(self, response: Response) -> Response:
        return replace(response, created=0)

    def stream_kept(self, response: Response) -> Response:
        return replace(response, created=0)


ASKED = Request(model="m", messages=(user("hi"),), stream=True)

ANSWERS = {
    "text": Response("msg_1", "m", 0, (Text("Hello 🦊"),), "end", usage=Usage(9, 4)),
    "nothing": Response("msg_1", "m", 0, (), "end", usage=Usage(9, 1)),
    "calls": Response(
        "msg_1",
        "m",
        0,
        (Text("look"), ToolCall("toolu_1", "w", '{"c":"Oslo"}'), ToolCall("toolu_2", "w", "{}")),
        "calls",
        usage=Usage(9, 4, 2, 3, 1),
    ),
    "thinking": Response(
        "msg_1",
        "m",
        0,
        (
            Thinking("plan", {"anthropic": {"signature": "QUJDREVG"}}),
            Thinking(vendor={"anthropic": {"redacted": "eHg="}}),
            Thinking("from another model"),
            Text("done"),
        ),
        "length",
        usage=Usage(9, 40, reasoning=30),
    ),
    "stop text": Response("msg_1", "m", 0, (Text("one"),), "sequence", "END", Usage(9, 4)),
    "refusal": Response("msg_1", "m", 0, (Text("I cannot.", refusal=True),), "end", usage=Usage(9, 4)),
    "filter": Response("msg_1", "m", 0, (Text("So"),), "filter", usage=Usage(9, 4)),
    "picture": Response("msg_1", "m", 0, (Image(url="https://a.example/x.png"), Text("see")), "end"),
}
STOPS = {
    "text": "end_turn",
    "nothing": "end_turn",
    "calls": "tool_use",
    "thinking": "max_tokens",
    "stop text": "stop_sequence",
    "refusal": "refusal",
    "filter": "refusal",
    "picture": "end_turn",
}


def client(answer: Callable[[httpx2.Request], httpx2.Response]) -> sdk.Anthropic:
    """The official client, whose requests a function answers."""
    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    return sdk.Anthropic(api_key="x", base_url="http://127.0.0.1:9", max_retries=0, http_client=transport)


def streaming(events: Iterator[Event]) -> sdk.Anthropic:
    body = anthropic.HEARTBEAT.join(stream(anthropic, events, ASKED))
    return client(lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body))


def strictly(message: Any) -> dict[str, Any]:
    """What the SDK's own model makes of a message when it has to validate it."""
    return SdkMessage.model_validate(message, strict=True).model_dump(mode="json", exclude_none=True)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_sdk_accepts_a_whole_answer_strictly(name: str) -> None:
    message = strictly(wired(anthropic.write_response(ANSWERS[name], ASKED)))

    assert message["stop_reason"] == STOPS[name]
    assert len(message["content"]) == len(ANSWERS[name].parts)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_sdk_gathers_the_same_message_from_the_stream(name: str) -> None:
    with (
        streaming(replay(ANSWERS[name])) as model,
        model.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as answer,
    ):
        for event in answer:
            if event.type in ("content_block_start", "content_block_delta", "content_block_stop"):
                assert event.index < len(ANSWERS[name].parts)
        live = answer.get_final_message().model_dump(mode="json", exclude_none=True)
    whole = strictly(wired(anthropic.write_response(ANSWERS[name], ASKED)))
    # Which cache was written is told at the start of a stream only, before it is known.
    live["usage"].pop("cache_creation")
    whole["usage"].pop("cache_creation")

    assert {**live, "content": [strip(block) for block in live["content"]]} == whole


def strip(block: dict[str, Any]) -> dict[str, Any]:
    """A block without the helper's own field."""
    return {name: value for name, value in block.items() if name != "parsed_output"}


@given(data=st.data())
@fuzz
def test_the_sdk_accepts_every_whole_answer(data: st.DataObject) -> None:
    response = data.draw(st.composite(TestContract().response)())

    strictly(wired(anthropic.write_response(response, ASKED)))


def test_a_stream_has_the_frames_of_the_protocol_in_their_order() -> None:
    frames = b"".join(stream(anthropic, replay(ANSWERS["thinking"]), ASKED)).decode().split("\n\n")[:-1]
    kinds = [frame.split("\n")[0].removeprefix("event: ") for frame in frames]
    block, delta, end = "content_block_start", "content_block_delta", "content_block_stop"

    assert kinds == [
        *("message_start", block, delta, delta, end, block, end, block, delta, end, block, delta, end),
        *("message_delta", "message_stop"),
    ]
    assert '"thinking":"","signature":""' in frames[1]
    assert '"signature_delta","signature":"QUJDREVG"' in frames[3]
    assert '"content_block":{"type":"redacted_thinking","data":"eHg="}' in frames[5]
    assert '"content_block":{"type":"text","text":""}' in frames[10]


def test_the_start_of_a_call_has_an_empty_input() -> None:
    sent = b"".join(stream(anthropic, replay(ANSWERS["calls"]), ASKED))

    assert b'{"type":"tool_use","id":"toolu_1","name":"w","input":{}}' in sent
    assert b'"partial_json":"{\\"c\\":\\"Oslo\\"}"' in sent


def test_a_refusal_in_words_explains_itself() -> None:
    document = anthropic.write_response(ANSWERS["refusal"], ASKED)

    assert document["content"] == [{"type": "text", "text": "I cannot."}]
    assert document["stop_details"] == {"type": "refusal", "category": None, "explanation": "I cannot."}


def test_an_end_that_leaves_calls_owed_is_tool_use() -> None:
    response = replace(ANSWERS["calls"], stop="end")

    assert anthropic.write_response(response, ASKED)["stop_reason"] == "tool_use"
    assert b'"stop_reason":"tool_use"' in b"".join(stream(anthropic, replay(response), ASKED))


def test_arguments_that_are_no_object_stay_readable() -> None:
    broken = replace(ANSWERS["calls"], parts=(ToolCall("toolu_1", "w", '{"a":1'),))

    assert anthropic.write_response(broken, ASKED)["content"][0]["input"] == {"_raw": '{"a":1'}


def test_a_broken_stream_never_looks_complete() -> None:
    events = [*list(replay(ANSWERS["text"]))[:3], Failed("model_overloaded", "busy", 529, True)]
    sent = b"".join(stream(anthropic, events, ASKED))

    assert sent.endswith(
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
    )
    assert b"content_block_stop" not in sent
    assert b"message_stop" not in sent
    with streaming(iter(events)) as model, pytest.raises(sdk.APIStatusError) as caught:
        list(model.messages.create(model="m", max_tokens=9, stream=True, messages=[{"role": "user", "content": "hi"}]))

    assert caught.value.type == "overloaded_error"


@pytest.mark.parametrize(
    ("failed", "raised"),
    [
        (Failed.of(Unauthorized("no key")), sdk.AuthenticationError),
        (Failed.of(Busy("full", retry_after=90.0)), sdk.RateLimitError),
        (Failed.of(ContextTooLong("internal")), sdk.BadRequestError),
        (Failed("not_found", "no such model", 404), sdk.NotFoundError),
        (Failed("run_failed", "The run failed."), sdk.InternalServerError),
        (Failed("model_overloaded", "busy", 529, True), sdk.OverloadedError),
    ],
)
def test_the_sdk_raises_the_class_that_fits(failed: Failed, raised: type[sdk.APIStatusError]) -> None:
    status, headers, body = anthropic.write_error(failed, "run_1")
    with client(lambda _: httpx2.Response(status, headers=headers, json=body)) as model, pytest.raises(raised):
        model.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])


def test_the_sdks_tool_runner_gives_up_threads_and_sends_its_whole_history() -> None:
    bodies: list[dict[str, Any]] = []
    answers = [ANSWERS["calls"], ANSWERS["text"]]

    def answer(request: httpx2.Request) -> httpx2.Response:
        try:
            bodies.append(msgspec.json.decode(request.content))
            anthropic.read_request(bodies[-1])
        except anthropic.ThreadUnsupported as error:
            status, headers, body = anthropic.write_error(Failed.of(error), "run_1")
            return httpx2.Response(status, headers=headers, json=body)
        return httpx2.Response(200, json=anthropic.write_response(answers.pop(0), ASKED))

    @sdk.beta_tool
    def w(c: str = "") -> str:
        """The weather."""
        return f"sun in {c}"

    with client(answer) as model:
        final = model.beta.messages.tool_runner(
            model="m", max_tokens=9, tools=[w], messages=[{"role": "user", "content": "hi"}]
        ).until_done()

    asked = anthropic.read_request(bodies[-1])
    assert final.content[0].text == "Hello 🦊"
    assert "thread" not in bodies[-1]
    assert [message.role for message in asked.messages] == ["user", "assistant", "tool"]
    assert asked.messages[-1].results == (
        ToolResult("toolu_1", (Text("sun in Oslo"),)),
        ToolResult("toolu_2", (Text("sun in "),)),
    )
