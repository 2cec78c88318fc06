"""Every request goes out in the one form that servers accept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bigbrain.messages import (
    AnswerSchema,
    File,
    ForcedTool,
    Image,
    Message,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    system,
    user,
)
from bigbrain.wire.openai_chat import read_request, write_request

HI = {"role": "user", "content": "hi"}
W = {"type": "function", "function": {"name": "w", "parameters": {"type": "object"}}}
V = {"type": "function", "function": {"name": "v"}}
GREP = {"type": "custom", "custom": {"name": "grep", "description": "find", "format": {"type": "text"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
PNG = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}}
W_SPEC = ToolSpec("w", schema={"type": "object"})
GREP_SPEC = ToolSpec("grep", "find", vendor={"openai": GREP})


def read(**fields: Any) -> Request:
    return read_request({"model": "m", "messages": [HI], **fields})


def read_messages(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return read(messages=list(messages)).messages


def written(*messages: Message, **fields: Any) -> dict[str, Any]:
    return write_request(Request("m", messages, **fields))


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ("{}", "{}"),
        ('{"a": 1}', '{"a": 1}'),
        ("", "{}"),
        ("   ", "{}"),
        ("null", "{}"),
        ('"{\\"a\\":1}"', '{"a":1}'),
        ("[]", '{"_raw":"[]"}'),
        ('{"a":1', '{"_raw":"{\\"a\\":1"}'),
        ("{'a':1}", '{"_raw":"{\'a\':1}"}'),
    ],
)
def test_arguments_go_out_as_the_text_of_an_object(arguments: str, sent: str) -> None:
    asked = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "w", "arguments": arguments}}]}
    body = write_request(read(messages=[HI, asked, TOLD]))

    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == sent
    assert isinstance(json.loads(sent), dict)


def test_ids_used_in_every_turn_go_out_unique() -> None:
    body = write_request(read(messages=[HI, ASKED, TOLD, ASKED, {**TOLD, "content": "again"}]))
    told = body["messages"]

    assert [told[1]["tool_calls"][0]["id"], told[2]["tool_call_id"]] == ["c1", "c1"]
    assert [told[3]["tool_calls"][0]["id"], told[4]["tool_call_id"]] == ["c1_2", "c1_2"]
    assert [told[2]["content"], told[4]["content"]] == ["ok", "again"]


def test_a_message_with_calls_only_has_null_content_and_each_result_its_own_message() -> None:
    calls = Message("assistant", (ToolCall("a", "w"), ToolCall("b", "w")))
    results = Message("tool", (ToolResult("a", is_error=True), ToolResult("b")))

    assert written(user("hi"), calls, results)["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "w", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "w", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "failed"},
        {"role": "tool", "tool_call_id": "b", "content": "empty"},
    ]


def test_an_error_result_keeps_its_words() -> None:
    calls = Message("assistant", (ToolCall("a", "w"),))
    results = Message("tool", (ToolResult("a", (Text("no such file"),), is_error=True),))

    assert written(calls, results)["messages"][1]["content"] == "no such file"


def test_a_picture_in_a_result_follows_as_a_message_of_the_user() -> None:
    calls = Message("assistant", (ToolCall("a", "w"),))
    results = Message("tool", (ToolResult("a", (Image("aGk=", "image/png"),)),))

    assert written(calls, results)["messages"][1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "see the next message"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "From the result of the call a:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("message", "content"),
    [(user(""), ""), (Message("assistant"), ""), (Message("user", (File(text="words"),)), "words")],
)
def test_a_message_without_parts_has_empty_content(message: Message, content: str) -> None:
    assert written(message)["messages"][0]["content"] == content


def test_a_system_message_without_parts_is_left_out() -> None:
    assert written(system(""), user("hi"))["messages"] == [HI]


def test_thinking_goes_back_only_where_it_came_from() -> None:
    ours = Thinking("mull", {"openai": {"field": "reasoning"}})
    theirs = Thinking("secret", {"anthropic": {"signature": "x"}})

    assert written(Message("assistant", (theirs, ours, Text("ok"))))["messages"] == [
        {"role": "assistant", "content": "ok", "reasoning": "mull"}
    ]


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({}, {}),
        ({"max_tokens": 9}, {"max_completion_tokens": 9}),
        ({"max_tokens": 9, "extra": {"openai": {"max_tokens": 1}}}, {"max_tokens": 9}),
        ({"extra": {"openai": {"max_tokens": 1}}}, {"max_tokens": 1}),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
        (
            {"stream": True, "extra": {"openai": {"stream_options": {"include_obfuscation": False}}}},
            {"stream": True, "stream_options": {"include_obfuscation": False, "include_usage": True}},
        ),
        ({"extra": {"openai": {"stream_options": {"include_usage": True}, "seed": 1}}}, {"seed": 1}),
        ({"extra": {"anthropic": {"thread": 1}}}, {}),
        ({"think": "none"}, {"reasoning_effort": "none"}),
        ({"think": True}, {}),
        ({"think": False}, {}),
        ({"think": 4096}, {}),
        ({"top_k": 5, "temperature": 0.0}, {"temperature": 0.0}),
        ({"schema": AnswerSchema()}, {"response_format": {"type": "json_object"}}),
        (
            {"schema": AnswerSchema("my answer", {"type": "object"})},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "my_answer", "schema": {"type": "object"}},
                }
            },
        ),
        ({"tool_choice": "any", "parallel_calls": False}, {}),
        ({"tools": (W_SPEC,), "tool_choice": "any"}, {"tools": [W], "tool_choice": "required"}),
        ({"tools": (ToolSpec("v"), GREP_SPEC)}, {"tools": [V, GREP]}),
        (
            {"tools": (W_SPEC, GREP_SPEC), "tool_choice": ForcedTool("grep"), "parallel_calls": False},
            {
                "tools": [W, GREP],
                "tool_choice": {"type": "custom", "custom": {"name": "grep"}},
                "parallel_tool_calls": False,
            },
        ),
        ({"tools": (ToolSpec("search", vendor={"anthropic": {"type": "web_search"}}),)}, {}),
        ({"tools": (ToolSpec("search", vendor={"openai": {"type": "web_search"}}),)}, {}),
        (
            {"tools": (ToolSpec("w", schema={"type": "object"}, vendor={"anthropic": {"cache_control": {}}}),)},
            {"tools": [W]},
        ),
    ],
)
def test_a_field_is_written_as_servers_want_it(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    assert written(user("hi"), **fields) == {"model": "m", "messages": [HI], **sent}
