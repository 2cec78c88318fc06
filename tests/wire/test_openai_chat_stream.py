"""Streams of all kinds of servers mean what they were meant to mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bigbrain.errors import ModelBroke
from bigbrain.events import Closed, Delta, Opened, Started, checked, collect, replay
from bigbrain.messages import (
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
from bigbrain.wire import openai_chat, sse
from tests.contracts.dialect import stream

RECORDINGS = Path(__file__).parent.parent / "recordings" / "openai_chat"

THOUGHT = {"openai": {"field": "reasoning_content"}}
PLAIN = Request(model="m", messages=(user("hi"),), stream=True)
oslo, rome = '{"c":"Oslo"}', '{"c":"Rome"}'


def called(id: str, arguments: str) -> ToolCall:
    return ToolCall(id, "w", arguments)


TWO: tuple[tuple[Part, ...], Stop] = ((called("call_a", oslo), called("call_b", rome)), "calls")

MEANT: dict[str, tuple[tuple[Part, ...], Stop]] = {
    "b01_raw_characters": ((Text("fox 🦊 北"),), "end"),
    "b02_index_always_zero": TWO,
    "b02_no_index": TWO,
    "b02_no_index_in_fragments": TWO,
    "b02_interleaved": TWO,
    "b02_empty_ids_later": TWO,
    "b02_arguments_as_object": TWO,
    "b02_whole_call_repeated_at_its_end": TWO,
    "b02_no_ids": ((called("call_0_chatcmpl-1", oslo), called("call_1_chatcmpl-1", rome)), "calls"),
    "b03_calls_but_stop": ((called("call_a", oslo),), "calls"),
    "b03_length_in_arguments": ((called("call_a", '{"c":"Os'),), "length"),
    "b05_empty_content_between": (
        (Thinking("mull more", THOUGHT), Text("Yes"), ToolCall("c1", "w", "{}")),
        "calls",
    ),
    "b06_empty_choices_first_and_last": ((Text("ok"),), "end"),
    "b06_usage_on_the_finish_chunk": ((Text("ok"),), "end"),
    "b06_no_usage": ((Text("ok"),), "end"),
    "b07_one_id_twice": ((called("list:0", oslo), called("list:0_2", rome)), "calls"),
    "text_between_calls": ((called("call_a", oslo), Text("and"), called("call_b", rome)), "calls"),
    "reasoning_field": ((Thinking("mull", {"openai": {"field": "reasoning"}}), Text("Yes")), "end"),
    "refusal": ((Text("I cannot.", refusal=True),), "refusal"),
    "custom_tool": ((ToolCall("call_a", "sql", "select {1}", {"openai": {"type": "custom"}}),), "calls"),
}


def test_every_recording_is_read() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.sse")} == {*MEANT, "b04_error_in_mid_stream"}


@pytest.mark.parametrize("name", MEANT)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_a_recorded_stream_means_one_thing(name: str, size: int) -> None:
    data = (RECORDINGS / f"{name}.sse").read_bytes()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    response = collect(checked(openai_chat.read_events(sse.read(chunks))))

    assert (response.parts, response.stop) == MEANT[name]
    assert (response.id, response.model, response.created) == ("chatcmpl-1", "m", 1_700_000_000)


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("b06_empty_choices_first_and_last", Usage(7, 1)),
        ("b06_usage_on_the_finish_chunk", Usage(7, 1)),
        ("b06_no_usage", Usage()),
    ],
)
def test_usage_is_found_wherever_it_stands_and_never_guessed(name: str, usage: Usage) -> None:
    data = (RECORDINGS / f"{name}.sse").read_bytes()

    assert collect(openai_chat.read_events(sse.read([data]))).usage == usage


def test_an_error_in_mid_stream_comes_after_the_text_before_it() -> None:
    data = (RECORDINGS / "b04_error_in_mid_stream.sse").read_bytes()
    seen = []
    with pytest.raises(ModelBroke, match="upstream reset"):
        for event in openai_chat.read_events(sse.read([data])):
            seen.append(event)

    assert seen == [Started("chatcmpl-1", "m", 1_700_000_000), Opened(0, Text()), Delta(0, "Hi")]


def test_the_first_call_flows_while_a_later_one_waits() -> None:
    data = (RECORDINGS / "b02_interleaved.sse").read_bytes()
    events = list(openai_chat.read_events(sse.read([data])))

    assert events[1:-1] == [
        Opened(0, ToolCall("call_a", "w")),
        Delta(0, '{"c":'),
        Delta(0, '"Oslo"}'),
        Closed(0),
        Opened(1, ToolCall("call_b", "w")),
        Delta(1, '{"c":"Ro'),
        Delta(1, 'me"}'),
        Closed(1),
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"data: [DONE]\n\n",
        b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}\n\n'
        b"data: [DONE]\n\n",
        b'data: {"choices":[{"index":0,"delta":{"content":5}}]}\n\n',
        b'data: "\xff"\n\n',
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
    ],
)
def test_a_stream_that_is_no_answer_is_a_broken_model(data: bytes) -> None:
    with pytest.raises(ModelBroke):
        list(openai_chat.read_events(sse.read([data])))


@pytest.mark.parametrize("end", [b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', b"data: [DONE]\n\n"])
def test_a_reason_or_the_done_mark_alone_is_a_good_end(end: bytes) -> None:
    data = b'data: {"choices":[{"delta":{"content":"ok"}}]}\n\n' + end

    assert collect(checked(openai_chat.read_events(sse.read([data])))) == Response(parts=(Text("ok"),), stop="end")


def test_nothing_is_read_behind_the_done_mark() -> None:
    def chunks() -> Iterable[bytes]:
        yield b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        raise AssertionError("the reader waited for the connection to close")

    assert collect(openai_chat.read_events(sse.read(chunks()))).text == "ok"


@pytest.mark.parametrize("arguments", ["{}", '{"a": "}"}', '{"a":"\\\\"}', '{"a": {"b": "\\"{"}}', '{"a":"\\\\\\"}"}'])
def test_braces_in_texts_do_not_end_a_call(arguments: str) -> None:
    parts = (ToolCall("a", "w", arguments), ToolCall("b", "w", arguments))
    response = Response("r", "m", 1, parts, "calls")
    letters = [
        one
        for event in replay(response)
        for one in ([Delta(event.index, c) for c in event.text] if isinstance(event, Delta) else [event])
    ]
    events = list(openai_chat.read_events(sse.read(stream(openai_chat, letters, PLAIN))))

    assert collect(checked(events)).parts == parts
    assert events.index(Closed(0)) < events.index(Delta(1, "{"))
