"""Streams of the Responses API from all kinds of servers mean what they were meant to mean."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from bigbrain.errors import ContextTooLong, ModelBroke, ModelBusy
from bigbrain.events import Closed, Delta, Opened, Started, checked, collect
from bigbrain.messages import JSON, Part, Response, Text, Thinking, ToolCall, Usage
from bigbrain.wire import openai_responses, sse
from tests.contracts.values import cut

oslo, rome = '{"c":"Oslo"}', '{"c":"Rome"}'

Event = dict[str, Any]

CREATED: Event = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "created_at": 1}}
USAGE = {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}


def ended(status: str = "completed", **more: JSON) -> Event:
    return {"type": f"response.{status}", "response": {"id": "resp_1", "status": status, **more}}


def message(place: int = 0, step: str = "added", **more: JSON) -> Event:
    item = {"type": "message", "id": f"msg_{place}", "role": "assistant", **more}
    return {"type": f"response.output_item.{step}", "output_index": place, "item": item}


def call(place: int, call_id: str, step: str = "added", arguments: str = "", **more: JSON) -> Event:
    item = {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "name": "w", "arguments": arguments}
    return {"type": f"response.output_item.{step}", "output_index": place, "item": {**item, **more}}


def text(delta: str, place: int = 0, content: int = 0) -> Event:
    at = {"output_index": place, "content_index": content}
    return {"type": "response.output_text.delta", **at, "delta": delta}


def arguments(delta: str, place: int) -> Event:
    return {"type": "response.function_call_arguments.delta", "output_index": place, "delta": delta}


def summary(delta: str, number: int, place: int = 0) -> Event:
    at = {"output_index": place, "summary_index": number}
    return {"type": "response.reasoning_summary_text.delta", **at, "delta": delta}


def reasoning(step: str, **more: JSON) -> Event:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], **more}
    return {"type": f"response.output_item.{step}", "output_index": 0, "item": item}


def sent(*events: Event) -> bytes:
    return b"".join(sse.write(json.dumps(event, ensure_ascii=False).encode(), event["type"]) for event in events)


def read(*events: Event) -> Response:
    return collect(checked(openai_responses.read_events(sse.read([sent(*events)]))))


def parts(*events: Event) -> tuple[Part, ...]:
    return read(CREATED, *events, ended()).parts


def test_a_text_is_read_with_its_usage() -> None:
    got = read(CREATED, message(), text("Hi "), text("there"), message(step="done"), ended(usage=USAGE))

    assert got == Response("resp_1", "m", 1, (Text("Hi there"),), "end", usage=Usage(5, 2, 4))


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_b01_characters_that_are_cut_in_two_are_whole(pieces: int) -> None:
    data = sent(CREATED, message(), text("fox 🦊 北"), ended())
    chunks = cut(data, range(0, len(data), pieces))

    assert collect(openai_responses.read_events(sse.read(chunks))).text == "fox 🦊 北"


def test_b02_calls_whose_arguments_come_in_turns_stay_apart() -> None:
    got = parts(
        call(0, "a"),
        call(1, "b"),
        arguments('{"c":', 1),
        arguments('{"c":"Os', 0),
        arguments('"Rome"}', 1),
        arguments('lo"}', 0),
        call(1, "b", "done", rome),
        call(0, "a", "done", oslo),
    )

    assert got == (ToolCall("a", "w", oslo), ToolCall("b", "w", rome))


def test_b02_a_call_that_comes_whole_is_whole() -> None:
    assert parts(call(0, "a", "done", oslo)) == (ToolCall("a", "w", oslo),)
    assert parts(call(0, "a"), call(0, "a", "done", oslo)) == (ToolCall("a", "w", oslo),)
    told: Event = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": oslo}
    assert parts(call(0, "a"), told, call(0, "a", "done", oslo)) == (ToolCall("a", "w", oslo),)


@pytest.mark.parametrize(
    ("last", "stop"),
    [
        (ended(), "calls"),
        (ended("incomplete", incomplete_details={"reason": "max_output_tokens"}), "length"),
        (ended("incomplete", incomplete_details={"reason": "content_filter"}), "filter"),
        (ended("incomplete"), "length"),
    ],
)
def test_b03_the_stop_fits_what_came(last: Event, stop: str) -> None:
    assert read(CREATED, call(0, "a"), arguments('{"c":', 0), last).stop == stop


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"type": "error", "code": "server_error", "message": "it broke"}, ModelBroke),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "busy"}}, ModelBusy),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "busy"}), ModelBusy),
        (ended("failed", error={"code": "context_length_exceeded", "message": "long"}), ContextTooLong),
        (ended("failed"), ModelBroke),
        (ended("cancelled"), ModelBroke),
    ],
)
def test_b04_an_error_in_a_good_stream_is_an_error(event: Event, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        read(CREATED, message(), text("half"), event)


@pytest.mark.parametrize(
    "events",
    [
        [arguments("{}", 0)],
        [call(0, "a"), call(0, "a")],
        [{"type": "response.output_text.delta", "delta": "x"}],
        [message(), text("a"), message(1), text("b", 1), text("c")],
        [call(0, "a", name="")],
        [{"type": "response.output_item.added", "output_index": "0"}],
    ],
)
def test_b05_what_belongs_nowhere_breaks_the_answer(events: list[Event]) -> None:
    with pytest.raises(ModelBroke):
        read(CREATED, *events, ended())


def test_b06_an_answer_without_usage_counts_nothing() -> None:
    assert read(CREATED, message(), text("x"), ended(usage=None)).usage == Usage()


def test_b07_two_calls_of_one_id_are_told_apart() -> None:
    got = parts(call(0, "a"), call(0, "a", "done", oslo), call(1, "a"), call(1, "a", "done", rome))

    assert got == (ToolCall("a", "w", oslo), ToolCall("a_2", "w", rome))


def test_b08_a_sealed_thought_keeps_its_seal_and_its_summaries_apart() -> None:
    whole = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    got = parts(
        reasoning("added"),
        summary("o", 0),
        summary("ne", 0),
        summary("two", 1),
        reasoning("done", summary=whole, encrypted_content="seal"),
        message(1),
        text("yes", 1),
    )

    assert got == (
        Thinking("one", {"openai": {"id": "rs_1"}}),
        Thinking("two", {"openai": {"id": "rs_1", "encrypted_content": "seal"}}),
        Text("yes"),
    )


def test_b08_a_thought_that_is_nothing_but_a_seal_is_kept() -> None:
    note = {"openai": {"id": "rs_1", "encrypted_content": "seal"}}

    assert parts(reasoning("added"), reasoning("done", encrypted_content="seal")) == (Thinking(vendor=note),)


def test_b08_a_seal_that_comes_after_the_answer_has_begun_is_not_lost() -> None:
    done = reasoning("done", summary=[{"text": "one"}], encrypted_content="seal")
    got = parts(reasoning("added"), summary("one", 0), message(1), text("yes", 1), done)

    assert got[2] == Thinking(vendor={"openai": {"id": "rs_1", "encrypted_content": "seal"}})


def test_raw_thoughts_are_told_from_summaries() -> None:
    raw: Event = {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "hm"}

    assert parts(reasoning("added"), raw) == (Thinking("hm", {"openai": {"id": "rs_1", "form": "reasoning_text"}}),)


def test_texts_are_open_while_they_grow() -> None:
    events = list(openai_responses.read_events(sse.read([sent(CREATED, message(), text("a"), text("b"), ended())])))

    assert events[:5] == [Started("resp_1", "m", 1), Opened(0, Text()), Delta(0, "a"), Delta(0, "b"), Closed(0)]


def test_annotations_come_with_the_end_of_their_text() -> None:
    link = {"type": "url_citation", "url": "https://a.example"}
    content = {"type": "output_text", "text": "a", "annotations": [link]}

    assert parts(message(), text("a"), message(step="done", content=[content])) == (
        Text("a", vendor={"openai": {"annotations": [link]}}),
    )


def test_a_hosted_search_is_kept_as_it_came() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    searched: Event = {"type": "response.output_item.done", "output_index": 0, "item": item}
    unknown: Event = {"type": "response.web_search_call.searching", "output_index": [], "delta": 7}

    assert parts(unknown, searched, message(1), text("x", 1)) == (
        Thinking(vendor={"openai": {"item": item}}),
        Text("x"),
    )


def test_an_answer_that_only_the_last_frame_tells_is_read() -> None:
    content = [{"type": "output_text", "text": "all", "annotations": []}]
    output: list[JSON] = [{"type": "message", "role": "assistant", "content": content}]

    assert read(CREATED, ended(output=output)).parts == (Text("all"),)


def test_a_refusal_is_one() -> None:
    at = {"output_index": 0, "content_index": 0}
    got = read(CREATED, message(), {"type": "response.refusal.delta", **at, "delta": "no"}, ended())

    assert (got.parts, got.stop) == ((Text("no", refusal=True),), "refusal")


@pytest.mark.parametrize("events", [[], [CREATED], [CREATED, message(), text("half")]])
def test_a_stream_that_ends_before_its_response_broke(events: Iterable[Event]) -> None:
    with pytest.raises(ModelBroke, match="ended before"):
        read(*events)


def test_the_mark_of_the_other_dialect_means_nothing() -> None:
    data = sent(CREATED, message(), text("x")) + b"data: [DONE]\n\n" + sent(ended())

    assert collect(openai_responses.read_events(sse.read([data]))).text == "x"
