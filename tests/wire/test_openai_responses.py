"""The Responses dialect keeps the promises of every dialect, and the official SDK understands it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.responses import Response as SdkResponse
from openai.types.responses import ResponseFunctionToolCall, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from bigbrain.errors import ContextTooLong, ModelBroke, ModelBusy
from bigbrain.events import Closed, Delta, Event, Failed, Finished, Opened, Started, checked, collect, fold, replay
from bigbrain.messages import (
    AnswerSchema,
    File,
    Image,
    Message,
    Part,
    Request,
    Response,
    Stop,
    Text,
    Thinking,
    ToolCall,
    ToolSpec,
    Usage,
    user,
)
from bigbrain.wire import Dialect, anthropic, openai_responses, sse
from bigbrain.wire.openai_responses_items import seal
from bigbrain.wire.openai_responses_output import items_of, last_item
from tests.contracts.dialect import DialectContract, fuzz, stream
from tests.contracts.values import images, names, texts, usages, words

DIALECT: Dialect = openai_responses
"""The type checker's proof that the module offers all that a dialect must."""

PLAIN = Request(model="m", messages=(user("hi"),), stream=True)

refusals = words.map(lambda text: Text(text, refusal=True))
oslo, rome = '{"c":"Oslo"}', '{"c":"Rome"}'


def thought(number: int, text: str, *, sealed: bool) -> Thinking:
    note = {"id": f"rs_{number}", **({"encrypted_content": f"secret {number}"} if sealed else {})}
    return Thinking(text, vendor={"openai": note})


thoughts = st.builds(thought, st.just(0), words, sealed=st.booleans())
sealed_thoughts = st.builds(thought, st.just(0), words | st.just(""), sealed=st.just(True))


def told_apart(parts: list[Part]) -> tuple[Part, ...]:
    """Each thought under an id of its own, as servers give them."""
    return tuple(
        thought(place, part.text, sealed="encrypted_content" in part.vendor["openai"])
        if isinstance(part, Thinking)
        else part
        for place, part in enumerate(parts)
    )


def merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """What the wire makes of neighbouring texts of one kind."""
    kept: list[Part] = []
    for part in parts:
        last = kept[-1] if kept else None
        if isinstance(part, Text) and isinstance(last, Text) and part.refusal == last.refusal:
            kept[-1] = replace(last, text=last.text + part.text)
        else:
            kept.append(part)
    return tuple(kept)


def joined(messages: Iterable[Message]) -> tuple[Message, ...]:
    """What the wire makes of neighbouring messages of a model."""
    kept: list[Message] = []
    for message in messages:
        if message.role == "assistant" and kept and kept[-1].role == "assistant":
            kept[-1] = Message("assistant", (*kept[-1].parts, *message.parts))
        else:
            kept.append(message)
    return tuple(kept)


class TestDialect(DialectContract):
    dialect: ClassVar[Dialect] = openai_responses
    fields: ClassVar[frozenset[str]] = frozenset(
        [
            "input",
            "role",
            "content",
            "type",
            "text",
            "refusal",
            "call_id",
            "name",
            "arguments",
            "namespace",
            "output",
            "summary",
            "encrypted_content",
            "tools",
            "tool_choice",
            "stream",
            "instructions",
            "include",
            "metadata",
            "store",
            "id",
            "item",
            "response",
            "output_index",
            "content_index",
            "delta",
            "status",
            "error",
            "usage",
            "incomplete_details",
            "function_call",
            "message",
            "reasoning",
            "image_url",
            "phase",
            "parameters",
        ]
    )

    def user_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        files = st.builds(File, data=st.just("aGk="), media_type=st.just("application/pdf"), name=st.just("a.pdf"))
        links = st.builds(Image, url=st.just("https://a.example/b.png"), vendor=st.just({"openai": {"detail": "low"}}))
        uploads = st.builds(File, file_id=st.just("file-1"))
        addresses = st.builds(File, url=st.just("https://a.example/c.pdf"))
        return st.lists(texts | images | files | links | uploads | addresses, min_size=1, max_size=3).map(tuple)

    def assistant_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | refusals | sealed_thoughts, min_size=1, max_size=3).map(told_apart)

    def messages(self, draw: st.DrawFn) -> tuple[Message, ...]:
        """Each thought of the conversation under an id of its own."""
        number = itertools.count()
        return tuple(
            replace(
                message,
                parts=tuple(
                    thought(next(number), part.text, sealed=True) if isinstance(part, Thinking) else part
                    for part in message.parts
                ),
            )
            for message in super().messages(draw)
        )

    def result_parts(self) -> st.SearchStrategy[tuple[Any, ...]]:
        return st.lists(texts | images, min_size=1, max_size=2).map(tuple)

    def response_parts(self) -> st.SearchStrategy[tuple[Part, ...]]:
        return st.lists(texts | thoughts | refusals, max_size=4).map(told_apart)

    def knobs(self) -> st.SearchStrategy[dict[str, Any]]:
        own = st.fixed_dictionaries(
            {},
            optional={
                "think": st.sampled_from(["none", "low", "max"]),
                "extra": st.just(
                    {"openai": {"store": False, "metadata": {"a": "b"}, "reasoning": {"summary": "auto"}}},
                ),
            },
        )
        return st.builds(lambda base, more: {**base, **more}, super().knobs(), own)

    def tools(self) -> st.SearchStrategy[tuple[ToolSpec, ...]]:
        inside = {"openai": {"type": "function", "namespace": {"name": "ns", "description": "d"}}}
        spec = st.builds(ToolSpec, names, words, st.just({"type": "object"}), vendor=st.sampled_from([{}, inside]))
        return st.lists(spec, max_size=3, unique_by=lambda tool: tool.name).map(
            lambda specs: tuple(sorted(specs, key=lambda tool: bool(tool.vendor)))
        )

    def usages(self) -> st.SearchStrategy[Usage]:
        return st.builds(lambda usage, written: replace(usage, cache_write=written), usages, st.integers(0, 9))

    def request_kept(self, request: Request) -> Request:
        return replace(request, messages=joined(request.messages), stop=())

    def stop_kept(self, response: Response) -> Stop | None:
        """A refusal in words is what the wire calls a plain end."""
        refused = any(isinstance(part, Text) and part.refusal for part in response.parts)
        return "refusal" if response.stop == "end" and refused else response.stop

    def response_kept(self, response: Response) -> Response:
        return replace(response, parts=merged(response.parts), stop=self.stop_kept(response))

    def stream_kept(self, response: Response) -> Response:
        return self.response_kept(response)

    @given(data=st.data())
    @fuzz
    def test_the_sdk_reads_every_document_and_frame_strictly(self, data: st.DataObject) -> None:
        response = data.draw(st.composite(self.response)())
        document = openai_responses.write_response(response, PLAIN)
        SdkResponse.model_validate_json(json.dumps(document), strict=True)
        for frame in sse.read(stream(openai_responses, replay(response), PLAIN)):
            EVENTS.validate_json(frame.data, strict=True)

    @given(data=st.data())
    @fuzz
    def test_the_last_item_is_found_without_making_the_others(self, data: st.DataObject) -> None:
        parts = data.draw(st.composite(self.response)()).parts

        assert [last_item(parts)] == (items_of(parts)[-1:] or [None])

    @given(data=st.data())
    @fuzz
    def test_conformance_18_the_first_frame_creates_and_the_last_completes_one_response_and_numbers_have_no_gap(
        self, data: st.DataObject
    ) -> None:
        response = data.draw(st.composite(self.response)())
        told = frames_of(response)
        lifecycle = [one for one in told if "response" in one]

        assert [one["sequence_number"] for one in told] == list(range(len(told)))
        assert {one["response"]["id"] for one in lifecycle} == {response.id}
        ends = "response.completed" if response.stop != "length" else "response.incomplete"
        assert [one["type"] for one in lifecycle] == ["response.created", "response.in_progress", ends]
        assert [told[0], told[1], told[-1]] == lifecycle

    @given(data=st.data())
    @fuzz
    def test_conformance_19_every_frame_names_the_item_that_was_added_and_is_done_under_one_id(
        self, data: st.DataObject
    ) -> None:
        told = frames_of(data.draw(st.composite(self.response)()))
        added = {one["output_index"]: one["item"] for one in told if one["type"] == "response.output_item.added"}
        done = {one["output_index"]: one["item"] for one in told if one["type"] == "response.output_item.done"}

        assert list(added) == list(done) == list(range(len(added)))
        for place, item in added.items():
            assert (item["id"], item.get("call_id")) == (done[place]["id"], done[place].get("call_id"))
        for one in told:
            if "item_id" in one:
                assert one["item_id"] == added[one["output_index"]]["id"]
            elif ".delta" in one["type"]:
                pytest.fail(f"{one} names no item")

    @given(data=st.data())
    @fuzz
    def test_conformance_21_the_last_frame_holds_the_items_that_were_done_and_their_texts_are_the_deltas(
        self, data: st.DataObject
    ) -> None:
        response = data.draw(st.composite(self.response)())
        told = frames_of(response)
        done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
        grown: dict[str, str] = {}
        for one in told:
            if one["type"].endswith(".delta"):
                key = f"{one['item_id']}/{one['type']}/{one.get('content_index')}/{one.get('summary_index')}"
                grown[key] = grown.get(key, "") + one["delta"]

        assert told[-1]["response"]["output"] == done
        assert done == openai_responses.write_response(response, PLAIN)["output"]
        assert sorted(grown.values()) == sorted(text for item in done for text in texts_of(item))


EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def frames_of(response: Response, request: Request = PLAIN) -> list[dict[str, Any]]:
    return [json.loads(frame.data) for frame in sse.read(stream(openai_responses, replay(response), request))]


def texts_of(item: dict[str, Any]) -> Iterator[str]:
    for content in (*item.get("content", ()), *item.get("summary", ())):
        yield content.get("text") or content.get("refusal")
    if "arguments" in item:
        yield item["arguments"]


def answered(document: bytes, kind: str) -> openai.OpenAI:
    """The official SDK in front of a server that always gives this answer."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=document, headers={"content-type": kind}))
    return openai.OpenAI(base_url="http://127.0.0.1/v1", api_key="x", http_client=httpx2.Client(transport=transport))


FULL = Response(
    "resp_1",
    "m",
    1_700_000_000,
    (
        thought(1, "first ", sealed=False),
        thought(1, "second", sealed=True),
        Text("fox 🦊 "),
        Text("北"),
        Text("but no", refusal=True),
        ToolCall("a", "w", oslo),
        ToolCall("b", "v"),
        ToolCall("c", "patch", "*** Begin", vendor={"openai": {"type": "custom"}}),
        Text("more"),
    ),
    "calls",
    usage=Usage(input=5, output=9, cache_read=2, reasoning=4),
)


def test_the_sdk_gathers_a_stream_as_it_was_meant() -> None:
    sent = b"".join(stream(openai_responses, replay(FULL), PLAIN))
    with (
        answered(sent, "text/event-stream") as client,
        client.responses.stream(model="m", input="x") as live,
    ):
        kinds = [event.type for event in live]
        got = live.get_final_response()

    assert kinds.count("response.output_text.delta") == 3
    assert (got.id, got.model, got.created_at, got.status) == ("resp_1", "m", 1_700_000_000, "completed")
    assert [item.type for item in got.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "custom_tool_call",
        "message",
    ]
    assert got.output_text == "fox 🦊 北more"
    calls = [item for item in got.output if isinstance(item, ResponseFunctionToolCall)]
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [("a", "w", oslo), ("b", "v", "{}")]
    assert got.usage is not None
    assert (got.usage.input_tokens, got.usage.output_tokens, got.usage.total_tokens) == (7, 9, 16)


def test_the_sdk_parses_what_was_asked_for_as_a_type() -> None:
    class Place(BaseModel):
        city: str

    answer = Response("resp_1", "m", 1, (Text('{"city":"Oslo"}'),), "end")
    sent = b"".join(stream(openai_responses, replay(answer), PLAIN))
    with (
        answered(sent, "text/event-stream") as client,
        client.responses.stream(model="m", input="x", text_format=Place) as live,
    ):
        got = live.get_final_response()

    assert got.output_parsed == Place(city="Oslo")


def test_the_sdk_takes_heartbeats_in_the_midst_of_a_stream_for_nothing() -> None:
    so_far, sent = Response(), []
    for event in replay(FULL):
        so_far = fold(so_far, event)
        sent += openai_responses.write_event(event, so_far, PLAIN, len(sent))
    cut = len(sent) // 2
    middle = Response("resp_1", "m", 1_700_000_000)
    beat = openai_responses.write_heartbeat(middle, PLAIN, cut)
    with (
        answered(b"".join([*sent[:cut], beat, *sent[cut:]]), "text/event-stream") as client,
        client.responses.stream(model="m", input="x") as live,
    ):
        numbers = [event.sequence_number for event in live]

    assert numbers == [*range(cut), cut - 1, *range(cut, len(sent))]


def test_before_the_answer_has_an_id_a_heartbeat_is_a_comment() -> None:
    assert openai_responses.write_heartbeat(Response(), PLAIN, 0).startswith(b":")


def test_a_stream_is_written_frame_by_frame() -> None:
    response = Response("resp_1", "m", 1, (Text("Hi"), ToolCall("a", "w", oslo)), "calls", usage=Usage(3, 2))
    told = frames_of(response)
    message, call = {"item_id": "msg_1_0", "output_index": 0}, {"item_id": "fc_1_1", "output_index": 1}
    part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}

    assert [{k: v for k, v in one.items() if k not in ("sequence_number", "response")} for one in told[:-1]] == [
        {"type": "response.created"},
        {"type": "response.in_progress"},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"id": "msg_1_0", "type": "message", "role": "assistant", "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **message, "content_index": 0, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **message, "content_index": 0, "delta": "Hi", "logprobs": []},
        {"type": "response.output_text.done", **message, "content_index": 0, "text": "Hi", "logprobs": []},
        {"type": "response.content_part.done", **message, "content_index": 0, "part": part},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {
                "id": "msg_1_0",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            },
        },
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {
                "id": "fc_1_1",
                "type": "function_call",
                "status": "in_progress",
                "call_id": "a",
                "name": "w",
                "arguments": "",
            },
        },
        {"type": "response.function_call_arguments.delta", **call, "delta": oslo},
        {"type": "response.function_call_arguments.done", **call, "arguments": oslo, "name": "w"},
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {
                "id": "fc_1_1",
                "type": "function_call",
                "status": "completed",
                "call_id": "a",
                "name": "w",
                "arguments": oslo,
            },
        },
    ]
    assert told[-1]["response"]["usage"]["total_tokens"] == 5


def test_a_whole_answer_has_every_field_that_strict_clients_want() -> None:
    asked = Request(
        model="asked",
        messages=openai_responses.read_request({"input": "x", "instructions": "be brief"}).messages,
        tools=(ToolSpec("w", "d", {"type": "object"}),),
        schema=AnswerSchema("a", {"type": "object"}, strict=True),
        think="low",
        max_tokens=9,
        extra={"openai": {"metadata": {"k": "v"}, "reasoning": {"summary": "auto"}, "text": {"verbosity": "low"}}},
    )

    assert openai_responses.write_response(Response("resp_1", "m", 1, (), "length", usage=Usage(1)), asked) == {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "incomplete",
        "background": False,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"},
        "instructions": "be brief",
        "max_output_tokens": 9,
        "metadata": {"k": "v"},
        "model": "m",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "low", "summary": "auto"},
        "service_tier": "default",
        "store": True,
        "temperature": None,
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True},
        },
        "tool_choice": "auto",
        "tools": [
            {"type": "function", "name": "w", "description": "d", "parameters": {"type": "object"}, "strict": None}
        ],
        "top_p": None,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 1,
        },
        "user": None,
    }


REFUSED = (Text("no", refusal=True),)


@pytest.mark.parametrize(
    ("parts", "stop", "status"),
    [
        ((), "end", ("completed", None)),
        ((), "sequence", ("completed", None)),
        ((), "pause", ("completed", None)),
        ((), "length", ("incomplete", "max_output_tokens")),
        ((), "context", ("incomplete", "max_output_tokens")),
        ((), "filter", ("incomplete", "content_filter")),
        ((), "refusal", ("incomplete", "content_filter")),
        (REFUSED, "refusal", ("completed", None)),
        ((ToolCall("a", "w", oslo),), "calls", ("completed", None)),
    ],
)
def test_the_status_fits_what_was_said_in_both_modes(
    parts: tuple[Part, ...], stop: Stop, status: tuple[str, str | None]
) -> None:
    response = Response("resp_1", "m", 1, parts, stop)
    for document in (openai_responses.write_response(response, PLAIN), frames_of(response)[-1]["response"]):
        assert (document["status"], (document["incomplete_details"] or {}).get("reason")) == status


@pytest.mark.parametrize(
    ("failed", "code"),
    [
        (Failed("context_length_exceeded", "too long", 400), "context_length_exceeded"),
        (Failed("model_busy", "busy", 429, retryable=True), "rate_limit_exceeded"),
        (Failed("model_overloaded", "busy", 529, retryable=True), "rate_limit_exceeded"),
        (Failed("invalid_request", "no", 400), "invalid_prompt"),
        (Failed("handler_failed", "A step failed.", 500), "server_error"),
    ],
)
def test_conformance_37_a_failure_after_the_first_byte_is_a_failed_response_and_the_last_frame(
    failed: Failed, code: str
) -> None:
    events: list[Event] = [Started("resp_1", "m", 1), Opened(0, Text()), Delta(0, "half"), failed]
    frames = [json.loads(frame.data) for frame in sse.read(stream(openai_responses, events, PLAIN))]
    document = frames[-1]["response"]

    assert (frames[-1]["type"], document["status"], document["id"]) == ("response.failed", "failed", "resp_1")
    assert document["error"] == {"code": code, "message": failed.message}


def test_the_codes_of_a_failed_response_come_back_as_errors_of_the_model() -> None:
    def read(failed: Failed) -> None:
        sent = stream(openai_responses, [Started("resp_1", "m", 1), failed], PLAIN)
        list(openai_responses.read_events(sse.read(sent)))

    with pytest.raises(ContextTooLong):
        read(Failed("context_length_exceeded", "too long", 400))
    with pytest.raises(ModelBusy):
        read(Failed("model_busy", "busy", 429, retryable=True))
    with pytest.raises(ModelBroke):
        read(Failed("handler_failed", "A step failed.", 500))


def test_what_another_model_noted_on_a_thought_goes_to_the_client_sealed_and_comes_back() -> None:
    signed = Thinking("mull", vendor={"anthropic": {"signature": "sig"}})
    document = openai_responses.write_response(Response("resp_1", "m", 1, (signed, Text("ok")), "end"), PLAIN)
    (item, _) = document["output"]
    back = openai_responses.read_request({"input": [{"role": "user", "content": "x"}, item]})

    assert "sig" not in json.dumps(item)
    assert item["id"] == "rs_1_0"
    thought = back.messages[1].parts[0]
    assert isinstance(thought, Thinking)
    assert (thought.text, thought.vendor["anthropic"]) == ("mull", {"signature": "sig"})


def test_a_client_that_asks_for_sealed_thoughts_always_gets_something_to_keep() -> None:
    asked = replace(PLAIN, extra={"openai": {"include": ["reasoning.encrypted_content"]}})
    answer = Response("resp_1", "m", 1, (Thinking("mull"),), "end")

    assert openai_responses.write_response(answer, asked)["output"][0]["encrypted_content"] == seal({})
    assert "encrypted_content" not in openai_responses.write_response(answer, PLAIN)["output"][0]


def test_annotations_stand_behind_the_text_that_they_annotate() -> None:
    link = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}
    parts = (Text("ab"), Text("cd", vendor={"openai": {"annotations": [link]}}))
    told = frames_of(Response("resp_1", "m", 1, parts, "end"))
    moved = {**link, "start_index": 2, "end_index": 4}

    assert told[-1]["response"]["output"][0]["content"][0]["annotations"] == [moved]
    assert [one["annotation"] for one in told if one["type"] == "response.output_text.annotation.added"] == [moved]


LIKELY = [{"token": "ab", "logprob": -0.1, "bytes": [97, 98], "top_logprobs": []}]


def test_probabilities_stand_with_the_text_in_both_modes_and_are_read_back() -> None:
    answer = Response("resp_1", "m", 1, (Text("ab", vendor={"openai": {"logprobs": {"content": LIKELY}}}),), "end")
    told = frames_of(answer)
    [part] = told[-1]["response"]["output"][0]["content"]
    [done] = [one for one in told if one["type"] == "response.output_text.done"]

    assert part["logprobs"] == done["logprobs"] == LIKELY
    assert collect(openai_responses.read_events(sse.read(stream(openai_responses, replay(answer), PLAIN)))) == answer
    assert openai_responses.read_response(openai_responses.write_response(answer, PLAIN)) == answer


def test_conformance_24_a_call_of_a_tool_in_a_namespace_says_so() -> None:
    inside = {"type": "function", "name": "spawn", "parameters": {"type": "object"}}
    asked = openai_responses.read_request(
        {
            "input": "x",
            "tools": [
                {"type": "namespace", "name": "agents", "description": "d", "tools": [inside]},
                {"type": "namespace", "name": "plants", "description": "e", "tools": [inside]},
            ],
        }
    )
    calls = tuple(ToolCall(str(place), tool.name, "{}") for place, tool in enumerate(asked.tools))
    told = frames_of(Response("resp_1", "m", 1, calls, "calls"), asked)
    items = [one["item"] for one in told if one["type"].startswith("response.output_item")]

    assert [tool.name for tool in asked.tools] == ["spawn", "plants__spawn"]
    assert [(item["name"], item["namespace"]) for item in items] == [("spawn", "agents")] * 2 + [
        ("spawn", "plants")
    ] * 2
    again = openai_responses.read_request({"input": [items[-1]], "tools": told[0]["response"]["tools"]})
    assert [call.name for call in again.messages[0].calls] == ["plants__spawn"]


def test_a_model_that_knows_no_free_text_calls_a_custom_tool_with_an_object_and_the_client_gets_the_text() -> None:
    asked = openai_responses.read_request({"input": "x", "tools": [{"type": "custom", "name": "exec"}], "stream": True})
    [tool] = anthropic.write_request(asked)["tools"]
    answer = Response("resp_1", "m", 1, (ToolCall("a", "exec", '{"input":"1 + 1"}'),), "calls")
    told = frames_of(answer, asked)
    document = openai_responses.write_response(answer, asked)

    assert (tool["name"], tool["input_schema"]["required"]) == ("exec", ["input"])
    assert [one["delta"] for one in told if one["type"] == "response.custom_tool_call_input.delta"] == ["1 + 1"]
    assert told[-1]["response"]["output"] == document["output"]
    assert (document["output"][0]["type"], document["output"][0]["input"]) == ("custom_tool_call", "1 + 1")


def test_two_thoughts_of_one_id_are_two_items_with_ids_of_their_own() -> None:
    parts = (thought(1, "a", sealed=True), Text("x"), thought(1, "b", sealed=True))
    answer = Response("resp_1", "m", 1, parts, "end")
    told = frames_of(answer)
    ids = [item["id"] for item in told[-1]["response"]["output"]]

    assert ids == ["rs_1", "msg_1_1", "rs_1_2"]
    assert [one["item"]["id"] for one in told if one["type"] == "response.output_item.done"] == ids
    assert {one["item_id"] for one in told if "item_id" in one} == set(ids)


def test_pictures_in_an_answer_are_passed_over() -> None:
    parts = (Text("a"), Image(url="https://a.example/b.png"), Text("b"))
    told = frames_of(Response("resp_1", "m", 1, parts, "end"))

    assert [item["content"][0]["text"] for item in told[-1]["response"]["output"]] == ["ab"]


def test_events_close_their_parts_as_they_end() -> None:
    events = list(checked(openai_responses.read_events(sse.read(stream(openai_responses, replay(FULL), PLAIN)))))

    assert len([event for event in events if isinstance(event, Closed)]) == 8
    assert isinstance(events[-1], Finished)
    assert collect(events).calls == (FULL.parts[5], ToolCall("b", "v", "{}"), FULL.parts[7])
