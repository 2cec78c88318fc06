"""Requests of the Messages API as its servers accept them, whatever the history."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain.messages import (
    JSON,
    AnswerSchema,
    Audio,
    File,
    ForcedTool,
    Image,
    Message,
    Part,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    assistant,
    system,
    user,
)
from bigbrain.wire import anthropic
from bigbrain.wire.anthropic_write_request import ANY_OBJECT

MARK = {"cache_control": {"type": "ephemeral"}}
SHAPE = {"type": "object", "properties": {"a": {"type": "integer"}}}
READ = ToolSpec("read", "reads", SHAPE)


def body_of(*messages: Message, **fields: Any) -> dict[str, JSON]:
    return anthropic.write_request(Request(model="m", messages=messages, **fields))


def test_blank_texts_are_left_out_and_everything_else_stays() -> None:
    body = body_of(
        system(" "),
        user("hi"),
        Message("assistant", (Text(""), ToolCall("c1", "w", "{}"))),
        Message("tool", (ToolResult("c1", (Text(" "),)),)),
        Message("user", (Text("\n"), Image(url="https://a.example/x"))),
        user("  "),
    )

    assert "system" not in body
    assert [message["content"] for message in body["messages"]] == [
        [{"type": "text", "text": "hi"}],
        [{"type": "tool_use", "id": "c1", "name": "w", "input": {}}],
        [
            {"type": "tool_result", "tool_use_id": "c1"},
            {"type": "image", "source": {"type": "url", "url": "https://a.example/x"}},
        ],
    ]


def test_users_and_assistants_take_turns_and_a_user_begins() -> None:
    body = body_of(assistant("a"), assistant("b"), user("c"), system("s"), user("d"), assistant("e \n"))

    assert body["system"] == "s"
    assert [(message["role"], [block["text"] for block in message["content"]]) for message in body["messages"]] == [
        ("user", ["Go on."]),
        ("assistant", ["a", "b"]),
        ("user", ["c", "d"]),
        ("assistant", ["e"]),
    ]


def test_a_conversation_of_system_texts_only_is_still_a_question() -> None:
    body = body_of(system("a"), system("b"))

    assert body["system"] == "a\n\nb"
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Go on."}]}]


def test_system_texts_with_a_cache_mark_stay_blocks() -> None:
    marked = Message("system", (Text("a", vendor={"anthropic": MARK}), Text("b")))

    assert body_of(marked, user("hi"))["system"] == [
        {"type": "text", "text": "a", **MARK},
        {"type": "text", "text": "b"},
    ]


def rounds(*ids: str) -> list[Message]:
    """One round of one call for each id."""
    return [
        message
        for number, one in enumerate(ids)
        for message in (
            Message("assistant", (ToolCall(one, "w", "{}"),)),
            Message("tool", (ToolResult(one, (Text(str(number)),)),)),
        )
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (("a", "b"), ["a", "b"]),
        (("call_0", "call_0", "call_0"), ["call_0", "call_0_2", "call_0_3"]),
        (("list:0", "list_0"), ["list_0_2", "list_0"]),
        (("list:0", "list:0"), ["list_0", "list_0_2"]),
    ],
)
def test_call_ids_are_unique_and_legal_on_call_and_result_alike(ids: tuple[str, ...], expected: list[str]) -> None:
    messages = body_of(user("hi"), *rounds(*ids))["messages"][1:]
    calls = [message["content"][0]["id"] for message in messages if message["role"] == "assistant"]
    results = [message["content"][0] for message in messages if message["role"] == "user"]

    assert sorted(calls) == sorted(expected)
    assert len(set(calls)) == len(calls)
    assert [result["tool_use_id"] for result in results] == calls
    assert [result["content"][0]["text"] for result in results] == [str(number) for number in range(len(ids))]


def test_an_id_that_is_fine_is_never_changed() -> None:
    messages = body_of(user("hi"), *rounds("list:0", "list_0"))["messages"]

    assert messages[3]["content"][0]["id"] == "list_0"


def test_a_call_that_nobody_answered_gets_a_result() -> None:
    messages = body_of(user("hi"), Message("assistant", (ToolCall("c1", "w"),)), user("never mind"))["messages"]

    assert messages[2]["content"][0]["tool_use_id"] == "c1"
    assert messages[2]["content"][0]["is_error"] is True
    assert messages[2]["content"][1] == {"type": "text", "text": "never mind"}


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ("  ", {}),
        ("null", {}),
        ('{"a":1}', {"a": 1}),
        ('"{\\"a\\":1}"', {"a": 1}),
        ('{"a":1', {"_raw": '{"a":1'}),
        ("[]", {"_raw": "[]"}),
        ("{'a':1}", {"_raw": "{'a':1}"}),
    ],
)
def test_an_input_is_always_an_object(arguments: str, value: dict[str, JSON]) -> None:
    messages = body_of(user("hi"), Message("assistant", (ToolCall("c1", "w", arguments),)))["messages"]

    assert messages[1]["content"][0]["input"] == value


def test_only_signed_thinking_goes_to_a_server() -> None:
    parts = (
        Thinking("of a stranger", {"openai": {"signature": "zz"}}),
        Thinking("unsigned"),
        Thinking("signed", {"anthropic": {"signature": "QQ=="}}),
        Text("done"),
    )
    content = body_of(user("hi"), Message("assistant", parts), user("go on"))["messages"][1]["content"]

    assert [block["type"] for block in content] == ["thinking", "text"]
    assert content[0] == {"type": "thinking", "thinking": "signed", "signature": "QQ=="}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"think": True}, {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}),
        ({"think": 5000}, {"thinking": {"type": "enabled", "budget_tokens": 5000}, "max_tokens": 9096}),
        ({"think": 10}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ({"think": True, "max_tokens": 100}, {"max_tokens": 1124}),
        ({"think": "high"}, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ({"think": "minimal"}, {"output_config": {"effort": "low"}}),
        ({"think": "none"}, {"thinking": None, "output_config": None}),
        ({"think": False}, {"thinking": None}),
        (
            {"think": True, "temperature": 0.5, "top_p": 0.5, "top_k": 5},
            {"temperature": None, "top_p": None, "top_k": None},
        ),
        ({"temperature": 0.0, "top_k": 0}, {"temperature": 0.0, "top_k": 0, "top_p": None}),
        ({"temperature": 1.7}, {"temperature": 1.0}),
        ({"think": True, "tools": (READ,), "tool_choice": "any"}, {"thinking": None, "tool_choice": {"type": "any"}}),
        (
            {"schema": AnswerSchema(schema=SHAPE)},
            {"output_config": {"format": {"type": "json_schema", "schema": SHAPE}}},
        ),
        ({"schema": AnswerSchema()}, {"output_config": None, "system": ANY_OBJECT}),
        ({"stop": ("END", " ")}, {"stop_sequences": ["END"]}),
        ({"max_tokens": 0}, {"max_tokens": 4096}),
        ({"stream": True, "user": "u"}, {"stream": True, "metadata": {"user_id": "u"}}),
        ({}, {"stream": None, "metadata": None, "tools": None, "tool_choice": None, "system": None}),
        ({"tool_choice": "any"}, {"tool_choice": None}),
        ({"tools": (READ,), "tool_choice": ForcedTool("read")}, {"tool_choice": {"type": "tool", "name": "read"}}),
        (
            {"tools": (READ,), "parallel_calls": False},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        ({"tools": (READ,), "parallel_calls": False, "tool_choice": "none"}, {"tool_choice": {"type": "none"}}),
        ({"tools": (READ,)}, {"tools": [{"name": "read", "description": "reads", "input_schema": SHAPE}]}),
        ({"tools": (ToolSpec("now"),)}, {"tools": [{"name": "now", "input_schema": {"type": "object"}}]}),
        ({"tools": (ToolSpec("search", vendor={"openai": {"type": "web_search"}}),)}, {"tools": None}),
        (
            {"tools": (ToolSpec("bash", vendor={"anthropic": {"type": "bash_20250124", "name": "bash"}}),)},
            {"tools": [{"type": "bash_20250124", "name": "bash"}]},
        ),
        (
            {"extra": {"anthropic": {"cache_control": MARK, "context_management": {}, "service_tier": "auto"}}},
            {"cache_control": MARK, "context_management": None, "service_tier": None},
        ),
    ],
)
def test_a_field_is_written_as_the_api_wants_it(fields: dict[str, Any], expected: dict[str, JSON]) -> None:
    body = body_of(user("hi"), **fields)

    assert {name: body.get(name) for name in expected} == expected


def test_thinking_is_left_out_where_the_api_would_refuse_it() -> None:
    unthought = rounds("c1")
    thought = Message("assistant", (Thinking("", {"anthropic": {"signature": "QQ=="}}), *unthought[0].parts))

    assert "thinking" not in body_of(user("hi"), *unthought, think=True)
    assert "thinking" in body_of(user("hi"), thought, unthought[1], think=True)
    assert "thinking" in body_of(user("hi"), *unthought, assistant("ok"), user("go"), think=True)
    assert "thinking" not in body_of(user("hi"), assistant("The answer is"), think=True)


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            Image(data="/9j/4AAQ"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ"}},
        ),
        (
            File(data="aGVsbG8=", media_type="text/markdown", name="a.md"),
            {
                "type": "document",
                "title": "a.md",
                "source": {"type": "text", "media_type": "text/plain", "data": "hello"},
            },
        ),
        (
            File(data="/w==", media_type="text/plain"),
            {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "/w=="}},
        ),
        (Audio("UklGRg==", "wav"), {"type": "text", "text": "[a sound (`wav`), which this protocol cannot carry]"}),
        (Text("no", refusal=True), {"type": "text", "text": "no"}),
    ],
)
def test_a_part_of_another_dialect_is_written_as_the_api_takes_it(part: Part, block: dict[str, JSON]) -> None:
    assert body_of(Message("user", (part,)))["messages"][0]["content"] == [block]
