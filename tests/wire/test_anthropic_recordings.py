"""Streams and errors of the Messages API as its servers and their imitators send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bigbrain.errors import (
    BrainError,
    ContextTooLong,
    ModelBroke,
    ModelBusy,
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    RunInterrupted,
    WireError,
)
from bigbrain.events import Closed, Event, Failed, Opened, checked, collect
from bigbrain.messages import Message, Request, Response, Text, Thinking, ToolCall, ToolResult, Usage, user
from bigbrain.wire import Frame, anthropic, sse

RECORDINGS = Path(__file__).parents[1] / "recordings" / "anthropic"


def events_of(name: str, size: int = 1 << 16) -> list[Event]:
    """The events of a recording that arrives in pieces of `size` bytes."""
    data = (RECORDINGS / f"{name}.sse").read_bytes()
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    return list(checked(anthropic.read_events(sse.read(pieces))))


def answer_of(name: str) -> Response:
    return collect(events_of(name))


def test_signed_thinking_goes_back_byte_for_byte() -> None:
    answer = answer_of("thinking_then_call")
    history = (user("go"), answer.message, Message("tool", (ToolResult("toolu_1", (Text("ok"),)),)))
    body = anthropic.write_request(Request(model="m", messages=history, think=2000))

    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "plan b", "signature": "QUJDREVG"},
        {"type": "redacted_thinking", "data": "eHg="},
        {"type": "thinking", "thinking": "", "signature": "c29sbw=="},
        {"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}, "caller": {"type": "direct"}},
    ]
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}


def test_signed_thinking_passes_through_a_brain_unchanged() -> None:
    answer = answer_of("thinking_then_call")
    shown = anthropic.write_response(answer, Request())
    asked = anthropic.read_request({"model": "m", "messages": [{"role": "assistant", "content": shown["content"]}]})

    assert asked.messages[0].parts == answer.parts


def test_usage_is_the_last_report_where_it_says_something() -> None:
    assert answer_of("usage_in_two_reports").usage == Usage(30, 9, 100, 7)
    assert answer_of("thinking_then_call").usage == Usage(25, 64, 100, 7, 40)


def test_blocks_of_hosted_tools_leave_no_gap() -> None:
    events = events_of("hosted_search")
    answer = collect(events)

    assert [event.index for event in events if isinstance(event, Opened)] == [0, 1]
    assert (answer.text, answer.calls, answer.stop) == ("Let me look. Found it.", (), "end")


def test_citations_go_on_to_a_client_and_back() -> None:
    part = answer_of("hosted_search").parts[1]
    citation = part.vendor["anthropic"]["citations"][0]
    sent = b"".join(anthropic.write_event(Closed(1), Response(parts=(Text("a"), part)), Request(stream=True)))

    assert citation["url"] == "https://a.example"
    assert b'"citations_delta","citation":{"type":"web_search_result_location"' in sent
    assert anthropic.write_response(Response(parts=(part,)), Request())["content"][0]["citations"] == [citation]


def test_a_call_may_come_whole_in_its_start() -> None:
    answer = answer_of("call_whole_in_its_start")

    assert answer.parts == (ToolCall("toolu_1", "w", '{"c":"Oslo"}'), ToolCall("toolu_2", "now", "{}"))
    assert answer.stop == "calls"


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_characters_survive_any_cut(size: int) -> None:
    assert collect(events_of("fox", size)).text == "fox 🦊 é 北"


def test_unknown_events_blocks_and_deltas_are_passed_over() -> None:
    answer = answer_of("unknown_kinds")

    assert (answer.parts, answer.stop) == ((Text("ok"),), "end")


def test_blocks_that_nobody_stops_are_closed_in_time() -> None:
    assert answer_of("nothing_stopped").parts == (
        Thinking("hm", {"anthropic": {"signature": "QQ=="}}),
        Text("Yes"),
        ToolCall("t1", "w", "{}"),
    )


def test_a_refusal_keeps_its_details() -> None:
    answer = answer_of("refusal")
    details = {"type": "refusal", "category": "bio", "explanation": "It may do harm."}

    assert answer.stop == "refusal"
    assert anthropic.write_response(answer, Request())["stop_details"] == details


def test_a_stop_text_is_named() -> None:
    answer = answer_of("stop_sequence")

    assert (answer.stop, answer.stop_sequence) == ("sequence", "END")


@pytest.mark.parametrize("name", ["delta_without_start", "thinking_in_a_text_block", "no_message_stop"])
def test_what_the_protocol_does_not_allow_is_a_broken_model(name: str) -> None:
    with pytest.raises(ModelBroke):
        events_of(name)


@pytest.mark.parametrize(("name", "seen"), [("overloaded_at_once", 1), ("overloaded_after_text", 3)])
def test_an_error_in_a_stream_is_raised_after_what_came_before(name: str, seen: int) -> None:
    data = (RECORDINGS / f"{name}.sse").read_bytes()
    events: list[Event] = []
    with pytest.raises(ModelOverloaded, match="Overloaded"):
        for event in anthropic.read_events(sse.read([data])):
            events.append(event)

    assert len(events) == seen


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("overloaded_error", "Overloaded", ModelOverloaded),
        ("rate_limit_error", "slow down", ModelBusy),
        ("authentication_error", "bad key", ModelRefused),
        ("permission_error", "not you", ModelRefused),
        ("invalid_request_error", "max_tokens: too big", ModelRefused),
        ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", ContextTooLong),
        ("timeout_error", "too slow", ModelTimeout),
        ("api_error", "oops", ModelBroke),
        ("brand_new_error", "?", ModelBroke),
    ],
)
def test_each_type_of_error_has_its_meaning(kind: str, message: str, expected: type[ModelError]) -> None:
    document = {"type": "error", "error": {"type": kind, "message": message}}
    with pytest.raises(ModelError, match=kind) as caught:
        anthropic.read_response(document)

    assert type(caught.value) is expected


@pytest.mark.parametrize(
    "data", [b"[DONE]", b"[]", b'{"type":5}', b'{"type":"error","error":"x"}', b'{"type":"message_stop"}']
)
def test_frames_that_make_no_sense_are_a_broken_model(data: bytes) -> None:
    with pytest.raises(ModelBroke):
        list(anthropic.read_events([Frame("", data)]))


@pytest.mark.parametrize("document", [None, [], {}, {"content": "hi"}, {"content": [{"type": "text"}]}])
def test_documents_that_are_no_message_are_a_broken_model(document: Any) -> None:
    with pytest.raises(ModelBroke):
        anthropic.read_response(document)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        *((status, b"{}", ModelRefused) for status in (400, 401, 403, 404, 422)),
        (400, b'{"error":{"message":"prompt is too long: 2 tokens > 1 maximum"}}', ContextTooLong),
        (413, b"", ContextTooLong),
        (429, b"", ModelBusy),
        *((status, b"", ModelOverloaded) for status in (503, 529)),
        *((status, b"", ModelTimeout) for status in (408, 504)),
        *((status, b"<html>", ModelBroke) for status in (500, 502)),
        (500, b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}', ModelOverloaded),
    ],
)
def test_a_refusal_is_understood_by_its_status(status: int, body: bytes, expected: type[ModelError]) -> None:
    error = anthropic.read_error(status, {}, body)

    assert type(error) is expected
    assert str(error).startswith(f"{status}: ")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("nan", None), ("-1", None), ("Mon, 30 Nov 2026 11:00:00 GMT", None)],
)
def test_the_time_to_wait_is_read_in_seconds(header: str, seconds: float | None) -> None:
    assert anthropic.read_error(429, {"retry-after": header}, b"").retry_after == seconds


def test_only_the_beginning_of_a_long_refusal_is_kept() -> None:
    assert len(str(anthropic.read_error(500, {}, b"x" * 10_000))) < 600


@pytest.mark.parametrize(
    ("error", "status", "kind", "headers", "message"),
    [
        (
            WireError("must be a list", param="messages"),
            400,
            "invalid_request_error",
            {"x-should-retry": "false"},
            "messages: must be a list",
        ),
        (
            ContextTooLong("secret words of the upstream"),
            400,
            "invalid_request_error",
            {"x-should-retry": "false"},
            f"prompt is too long: {ContextTooLong.safe}",
        ),
        (
            ModelOverloaded("secret", retry_after=0.2),
            529,
            "overloaded_error",
            {"x-should-retry": "true", "retry-after": "1"},
            ModelOverloaded.safe,
        ),
        (
            ModelBusy("secret", retry_after=3600),
            429,
            "rate_limit_error",
            {"x-should-retry": "true", "retry-after": "30"},
            ModelBusy.safe,
        ),
        (ModelRefused("secret"), 502, "api_error", {"x-should-retry": "false"}, ModelRefused.safe),
        (ModelTimeout("secret"), 504, "timeout_error", {"x-should-retry": "true"}, ModelTimeout.safe),
        (
            RunInterrupted(retry_after=2),
            503,
            "api_error",
            {"x-should-retry": "true", "retry-after": "2"},
            RunInterrupted.safe,
        ),
    ],
)
def test_an_error_has_its_type_and_its_advice(
    error: BrainError, status: int, kind: str, headers: dict[str, str], message: str
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "run_1"}

    assert anthropic.write_error(Failed.of(error), "run_1") == (status, headers, body)
