"""Requests of the Responses API, in every form that clients send."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain.errors import WireError
from bigbrain.messages import (
    JSON,
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
    user,
)
from bigbrain.wire import openai_chat, openai_responses

FUNCTION = {"type": "function", "name": "w", "description": "d", "parameters": {"type": "object"}}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
PATCH = {"type": "custom", "name": "apply_patch", "description": "p", "format": GRAMMAR}
CALL = {"type": "function_call", "call_id": "c1", "name": "w", "arguments": "{}"}


def read(**body: Any) -> Request:
    return openai_responses.read_request(body)


def told(*items: JSON, **more: Any) -> tuple[Message, ...]:
    return read(input=list(items), **more).messages


def refused(**body: Any) -> WireError:
    with pytest.raises(WireError) as caught:
        openai_responses.read_request(body)
    return caught.value


def test_conformance_22_input_may_be_a_text() -> None:
    assert read(input="hi").messages == (user("hi"),)


def test_conformance_22_messages_may_have_no_type_and_items_no_id() -> None:
    messages = told(
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": "go"},
    )

    assert [(message.role, message.text) for message in messages] == [
        ("system", "be brief"),
        ("user", "hi"),
        ("assistant", "yes?"),
        ("user", "go"),
    ]


def test_conformance_22_a_reasoning_item_of_another_server_is_kept_as_it_came() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-foreign"}
    (message,) = told(item)

    assert message.parts == (Thinking(vendor={"openai": {"id": "rs_1", "encrypted_content": "gAAAA-foreign"}}),)
    assert openai_responses.write_request(Request(messages=(message,)))["input"] == [item]


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        ("sunny", (Text("sunny"),)),
        ([{"type": "input_text", "text": "sunny"}], (Text("sunny"),)),
        ([{"type": "input_image", "image_url": "data:image/png;base64,aGk="}], (Image("aGk=", "image/png"),)),
        ({"degrees": 7}, (Text('{"degrees":7}'),)),
        ("", ()),
    ],
)
def test_conformance_22_the_output_of_a_call_is_a_text_or_parts(output: Any, parts: tuple[Any, ...]) -> None:
    messages = told(CALL, {"type": "function_call_output", "call_id": "c1", "output": output})

    assert messages[1] == Message("tool", (ToolResult("c1", parts),))


def test_calls_in_a_row_are_one_message_and_so_are_their_results() -> None:
    other = {**CALL, "call_id": "c2"}
    results = [{"type": "function_call_output", "call_id": one, "output": "x"} for one in ("c1", "c2")]

    assert [message.role for message in told({"role": "user", "content": "go"}, CALL, other, *results)] == [
        "user",
        "assistant",
        "tool",
    ]


def test_conformance_23_tools_of_every_kind_are_taken() -> None:
    tools = [
        {k: v for k, v in FUNCTION.items() if k != "strict"},
        PATCH,
        {"type": "namespace", "name": "agents", "description": "n", "tools": [{**FUNCTION, "name": "spawn"}]},
        {"type": "web_search", "external_web_access": True},
        {"type": "tool_search"},
        {"type": "local_shell"},
        {"type": "mcp", "server_label": "docs", "server_url": "https://a.example"},
    ]
    asked = read(input="x", tools=tools)

    assert [tool.name for tool in asked.tools] == [
        *("w", "apply_patch", "spawn", "web_search", "tool_search", "local_shell", "docs")
    ]
    assert asked.tools[0] == ToolSpec("w", "d", {"type": "object"})
    written = openai_responses.write_request(asked)["tools"]
    assert written[1:2] + written[3:] == tools[1:2] + tools[3:]
    assert written[2] == {**tools[2], "tools": [{**FUNCTION, "name": "spawn", "strict": None}]}


def test_conformance_23_tools_are_found_in_an_additional_tools_item() -> None:
    inside = {"type": "namespace", "name": "functions", "description": "", "tools": [{**PATCH, "name": "exec"}]}
    asked = read(
        input=[
            {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [inside]},
            {"role": "user", "content": "go"},
            {"type": "custom_tool_call", "call_id": "c1", "name": "exec", "namespace": "functions", "input": "1+1"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "2"},
        ]
    )

    assert [tool.name for tool in asked.tools] == ["exec"]
    assert asked.messages == (
        user("go"),
        Message("assistant", (ToolCall("c1", "exec", "1+1", {"openai": {"type": "custom"}}),)),
        Message("tool", (ToolResult("c1", (Text("2"),)),)),
    )
    written = openai_responses.write_request(asked)
    assert written["tools"] == [inside]
    assert written["input"][1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "exec", "input": "1+1", "namespace": "functions"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "2"},
    ]


def test_a_custom_tool_reaches_a_chat_model_in_its_form_and_back() -> None:
    asked = read(input="x", tools=[{"type": "namespace", "name": "n", "description": "", "tools": [PATCH]}])
    written = openai_chat.write_request(asked)["tools"]
    grammar = {"syntax": "lark", "definition": "start: /x/"}

    assert written == [
        {
            "type": "custom",
            "custom": {"name": "apply_patch", "description": "p", "format": {"type": "grammar", "grammar": grammar}},
        }
    ]
    back = openai_responses.write_request(openai_chat.read_request({"messages": [], "tools": written} | CHAT))
    assert back["tools"] == [PATCH]


CHAT = {"messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "any"),
        ({"type": "function", "name": "w"}, ForcedTool("w")),
        ({"type": "custom", "name": "apply_patch"}, ForcedTool("apply_patch")),
        ({"type": "web_search"}, ForcedTool("web_search")),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "w"}]}, "any"),
    ],
)
def test_a_choice_of_tools_is_understood(choice: JSON, meant: object) -> None:
    asked = read(input="x", tools=[FUNCTION, PATCH, {"type": "web_search"}], tool_choice=choice)

    assert asked.tool_choice == meant
    if isinstance(choice, dict) and "tools" in choice:
        assert [tool.name for tool in asked.tools] == ["w"]
    else:
        assert openai_responses.write_request(asked).get("tool_choice", "auto") == choice


def test_the_shape_of_the_answer_is_flat() -> None:
    form = {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}

    assert read(input="x", text={"format": form}).schema == AnswerSchema("a", {"type": "object"}, strict=True)
    assert read(input="x", text={"format": {"type": "json_object"}}).schema == AnswerSchema()
    assert read(input="x", text={"format": {"type": "text"}, "verbosity": "low"}).schema is None


def test_conformance_33_a_picture_and_a_file_arrive() -> None:
    (message,) = told(
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
                {"type": "input_image", "file_id": "file-1"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
                {"type": "input_file", "file_url": "https://a.example/a.pdf"},
            ],
        }
    )

    assert message.parts == (
        Image("aGk=", "image/png", vendor={"openai": {"detail": "low"}}),
        Image(file_id="file-1"),
        File("aGk=", "application/pdf", name="a.pdf"),
        File(url="https://a.example/a.pdf"),
    )


def test_conformance_46_unknown_fields_items_and_keys_are_taken_as_they_come() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    asked = read(
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "x", "odd": 1}], "odd": {}},
            search,
            {"type": "compaction", "encrypted_content": "c"},
            {"role": "assistant", "content": "found", "phase": "final_answer"},
        ],
        odd_field=[1],
    )

    assert asked.extra["openai"]["odd_field"] == [1]
    written = openai_responses.write_request(asked)["input"]
    assert written[1:3] == [search, {"type": "compaction", "encrypted_content": "c"}]
    assert written[3]["phase"] == "final_answer"
    assert [part["text"] for part in openai_chat.write_request(asked)["messages"] if "text" in part] == []


def test_probabilities_are_asked_for_in_the_words_of_each_protocol() -> None:
    asked = read(input="x", include=["message.output_text.logprobs"], top_logprobs=2)
    unasked = read(input="x", top_logprobs=2)

    assert openai_responses.write_request(asked)["include"] == ["message.output_text.logprobs"]
    chat = openai_chat.write_request(asked)
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 2)
    assert not {"logprobs", "top_logprobs"} & openai_chat.write_request(unasked).keys()
    back = openai_responses.write_request(openai_chat.read_request({**CHAT, "logprobs": True, "top_logprobs": 2}))
    assert (back["include"], back["top_logprobs"]) == (["message.output_text.logprobs"], 2)
    assert "logprobs" not in back


def test_instructions_are_the_first_message_and_no_part_of_the_conversation() -> None:
    asked = read(input="x", instructions="be brief")

    assert [(message.role, message.text) for message in asked.messages] == [("system", "be brief"), ("user", "x")]
    assert openai_responses.write_request(asked)["instructions"] == "be brief"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": []}, "input"),
        ({"input": "x", "conversation": "conv_1"}, "conversation"),
        ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
        ({"input": "x", "model": 7}, "model"),
        ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
        ({"input": "x", "store": "yes"}, "store"),
        ({"input": "x", "include": "all"}, "include"),
        ({"input": "x", "reasoning": {"effort": "mighty"}}, "reasoning.effort"),
        ({"input": "x", "text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"input": "x", "text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
        ({"input": "x", "tools": [{"type": "namespace", "name": "n", "tools": [{}]}]}, "tools[0].tools[0].name"),
        ({"input": "x", "tool_choice": "perhaps"}, "tool_choice"),
        ({"input": "x", "tool_choice": "required"}, "tool_choice"),
        ({"input": "x", "tool_choice": {"type": "function", "name": "gone"}}, "tool_choice"),
        ({"input": [{}]}, "input[0].type"),
        ({"input": ["x"]}, "input[0]"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
        ({"input": [{"role": "user", "content": [{"type": "smell"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "user", "content": 7}]}, "input[0].content"),
        ({"input": [{"type": "function_call", "name": "w"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "gone", "output": ""}]}, "input[0].call_id"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], param: str) -> None:
    error = refused(**body)

    assert error.param == param
    assert param in str(error)


def test_conformance_25_results_may_answer_calls_of_an_earlier_response() -> None:
    output = {"type": "function_call_output", "call_id": "c1", "output": "x"}

    assert read(input=[output], previous_response_id="resp_1").messages[0].results[0].call_id == "c1"


def test_an_unknown_reference_to_a_thought_is_passed_over() -> None:
    assert told({"type": "item_reference", "id": "rs_1"}, {"role": "user", "content": "x"}) == (user("x"),)
