"""Every form of a Chat Completions request that clients send is read."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain.errors import WireError
from bigbrain.messages import (
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
    ("fields", "want"),
    [
        ({}, {}),
        ({"stream": True}, {"stream": True}),
        ({"stream": None, "stop": None, "temperature": None, "tools": None, "seed": None}, {}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": 9}),
        ({"max_tokens": 10_000_000}, {"max_tokens": 10_000_000}),
        ({"stop": "END"}, {"stop": ("END",)}),
        ({"stop": ["a", "", "b"]}, {"stop": ("a", "b")}),
        ({"temperature": 0, "top_p": 1}, {"temperature": 0.0, "top_p": 1.0}),
        ({"reasoning_effort": "xhigh"}, {"think": "xhigh"}),
        ({"user": "u"}, {"user": "u"}),
        ({"safety_identifier": "s"}, {"user": "s"}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": {"type": "json_object"}}, {"schema": AnswerSchema()}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}},
            {"schema": AnswerSchema("n", {}, True)},
        ),
        ({"tools": [W, GREP]}, {"tools": (W_SPEC, GREP_SPEC)}),
        ({"tools": [V], "parallel_tool_calls": False}, {"tools": (ToolSpec("v"),), "parallel_calls": False}),
        ({"tools": [W], "tool_choice": "none"}, {"tools": (W_SPEC,), "tool_choice": "none"}),
        ({"tools": [W], "tool_choice": "required"}, {"tools": (W_SPEC,), "tool_choice": "any"}),
        (
            {"tools": [W], "tool_choice": {"type": "function", "function": {"name": "w"}}},
            {"tools": (W_SPEC,), "tool_choice": ForcedTool("w")},
        ),
        (
            {"tools": [W, GREP], "tool_choice": {"type": "custom", "custom": {"name": "grep"}}},
            {"tools": (W_SPEC, GREP_SPEC), "tool_choice": ForcedTool("grep")},
        ),
        (
            {
                "tools": [W, V, GREP],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [W, GREP]}},
            },
            {"tools": (W_SPEC, GREP_SPEC), "tool_choice": "any"},
        ),
        (
            {"functions": [{"name": "w", "parameters": {"type": "object"}}], "function_call": {"name": "w"}},
            {
                "tools": (W_SPEC,),
                "tool_choice": ForcedTool("w"),
                "parallel_calls": False,
                "extra": {"openai": {"functions": [{"name": "w", "parameters": {"type": "object"}}]}},
            },
        ),
        ({"n": 2}, {"extra": {"openai": {"n": 2}}}),
        (
            {
                "stream": True,
                "seed": 1,
                "n": 1,
                "logit_bias": {"5": 1},
                "stream_options": {"include_usage": True},
                "novel": [1],
            },
            {
                "stream": True,
                "extra": {
                    "openai": {
                        "seed": 1,
                        "n": 1,
                        "logit_bias": {"5": 1},
                        "stream_options": {"include_usage": True},
                        "novel": [1],
                    }
                },
            },
        ),
    ],
)
def test_a_field_is_read_in_every_form(fields: dict[str, Any], want: dict[str, Any]) -> None:
    assert read(**fields) == Request("m", (user("hi"),), **want)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "m"}, "messages"),
        ([], None),
        ("x", None),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [HI, {"role": "user", "content": 5}]}, "messages[1].content"),
        ({"messages": [HI, {"content": "x"}]}, "messages[1].role"),
        ({"messages": [HI, {"role": "robot"}]}, "messages[1].role"),
        ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]}, "messages[0].content[0].file"),
        ({"messages": [{**ASKED, "tool_calls": [{"function": {"name": "w"}}]}]}, "messages[0].tool_calls[0].id"),
        ({"messages": [{**ASKED, "tool_calls": [{"id": "c"}]}]}, "messages[0].tool_calls[0].function"),
        ({"messages": [ASKED, {**TOLD, "tool_call_id": "c2"}]}, "messages[1].tool_call_id"),
        ({"messages": [TOLD]}, "messages[0].tool_call_id"),
        ({"messages": [ASKED, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
        ({"messages": [HI], "max_tokens": 0}, "max_tokens"),
        ({"messages": [HI], "max_tokens": -1}, "max_tokens"),
        ({"messages": [HI], "max_tokens": "100"}, "max_tokens"),
        ({"messages": [HI], "max_tokens": 1e3}, "max_tokens"),
        ({"messages": [HI], "max_tokens": 10**30}, "max_tokens"),
        ({"messages": [HI], "max_completion_tokens": True}, "max_completion_tokens"),
        ({"messages": [HI], "n": 0}, "n"),
        ({"messages": [HI], "n": 129}, "n"),
        ({"messages": [HI], "stream_options": {"include_usage": True}}, "stream_options"),
        ({"messages": [HI], "top_logprobs": 3}, "top_logprobs"),
        ({"messages": [HI], "logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"messages": [HI], "modalities": ["text", "audio"]}, "modalities"),
        ({"messages": [HI], "audio": {"voice": "a", "format": "wav"}}, "audio"),
        ({"messages": [HI], "n": "1"}, "n"),
        ({"messages": [HI], "stream": "yes"}, "stream"),
        ({"messages": [HI], "stream_options": 1}, "stream_options"),
        ({"messages": [HI], "reasoning_effort": "huge"}, "reasoning_effort"),
        ({"messages": [HI], "response_format": {"type": "xml"}}, "response_format.type"),
        ({"messages": [HI], "response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"messages": [HI], "tools": [{"type": "function"}]}, "tools[0]"),
        ({"messages": [HI], "tools": [W, {"function": {}}]}, "tools[1].function.name"),
        ({"messages": [HI], "tool_choice": "required"}, "tool_choice"),
        ({"messages": [HI], "tools": [W], "tool_choice": "some"}, "tool_choice"),
        ({"messages": [HI], "tools": [W], "tool_choice": {"function": {"name": "v"}}}, "tool_choice"),
        ({"messages": [HI], "tools": [W], "tool_choice": {}}, "tool_choice"),
        (
            {"messages": [HI], "tools": [W], "tool_choice": {"allowed_tools": {"tools": [V]}}},
            "tool_choice.allowed_tools.tools[0]",
        ),
        ({"messages": [HI], "function_call": {"name": "v"}}, "function_call"),
    ],
)
def test_a_wrong_field_is_named(body: Any, param: str | None) -> None:
    with pytest.raises(WireError) as caught:
        read_request(body)

    assert caught.value.param == param
    assert param is None or f"`{param}`" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("hi", (Text("hi"),)),
        ("", ()),
        (None, ()),
        ([], ()),
        (" ", (Text(" "),)),
        ([{"type": "text", "text": " "}], (Text(" "),)),
        ([{"type": "text", "text": ""}, PNG], (Image("aGk=", "image/png", vendor={"openai": {"detail": "low"}}),)),
        (
            [{"type": "image_url", "image_url": {"url": "https://a.example/b"}}, {"type": "text", "text": "see"}],
            (Image(url="https://a.example/b"), Text("see")),
        ),
        (
            [{"type": "image_url", "image_url": "data:image/png,raw"}],
            (Image(url="data:image/png,raw"),),
        ),
        ([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}], (Audio("aGk=", "wav"),)),
        (
            [{"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "a"}}],
            (File("aGk=", "application/pdf", name="a"),),
        ),
        ([{"type": "file", "file": {"file_id": "f"}}], (File(file_id="f"),)),
    ],
)
def test_content_of_a_user_is_read_in_every_form(content: Any, parts: tuple[Part, ...]) -> None:
    assert read_messages({"role": "user", "content": content}) == (Message("user", parts),)


@pytest.mark.parametrize("content", ["", None, [], [{"type": "text", "text": " "}], ...])
def test_blank_text_beside_calls_is_dropped_in_every_spelling(content: Any) -> None:
    asked = {"role": "assistant", "tool_calls": [CALL], **({} if content is ... else {"content": content})}
    told = read_messages({"role": "system", "content": ""}, HI, asked, {**TOLD, "content": ""}, HI)

    assert told == (
        system(""),
        user("hi"),
        Message("assistant", (ToolCall("c1", "w", "{}"),)),
        Message("tool", (ToolResult("c1"),)),
        user("hi"),
    )


def test_a_history_with_the_keys_of_real_answers_is_read() -> None:
    answer = {
        "role": "assistant",
        "content": "so",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "reasoning_content": "mull",
        "tool_calls": [CALL, {"id": "c2", "type": "custom", "custom": {"name": "grep", "input": "a b"}}],
    }
    told = read_messages(
        HI, answer, {**TOLD, "name": None}, {**TOLD, "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]}
    )

    assert told[1:] == (
        Message(
            "assistant",
            (
                Thinking("mull", {"openai": {"field": "reasoning_content"}}),
                Text("so"),
                ToolCall("c1", "w", "{}"),
                ToolCall("c2", "grep", "a b", {"openai": {"type": "custom"}}),
            ),
        ),
        Message("tool", (ToolResult("c1", (Text("ok"),)), ToolResult("c2", (Text("two"),)))),
    )


def test_roles_of_instruction_are_one() -> None:
    told = read_messages({"role": "developer", "content": "be brief"}, HI, {"role": "system", "content": "now"})

    assert told == (system("be brief"), user("hi"), system("now"))


def test_refusals_are_read_from_the_field_and_from_parts() -> None:
    no = Text("no", refusal=True)
    assert read_messages({"role": "assistant", "refusal": "no"}) == (Message("assistant", (no,)),)
    assert read_messages({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}) == (
        Message("assistant", (no,)),
    )


def test_deprecated_functions_are_read() -> None:
    asked = {"role": "assistant", "content": None, "function_call": {"name": "w", "arguments": "{}"}}

    assert read_messages(HI, asked, {"role": "function", "name": "w", "content": "ok"})[1:] == (
        Message("assistant", (ToolCall("call_w", "w", "{}"),)),
        Message("tool", (ToolResult("call_w", (Text("ok"),)),)),
    )


def test_arguments_as_an_object_are_read_as_text() -> None:
    asked = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "w", "arguments": {"a": 1}}}]}

    assert read_messages(asked)[0].calls[0].arguments == '{"a":1}'
