"""Requests of the Messages API in the forms that clients send them."""

from __future__ import annotations

import pytest

from bigbrain.errors import WireError
from bigbrain.events import Failed
from bigbrain.messages import (
    JSON,
    AnswerSchema,
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
from bigbrain.wire import anthropic

MARK = {"cache_control": {"type": "ephemeral"}}
SHAPE = {"type": "object", "properties": {"a": {"type": "integer"}}}
HI = {"role": "user", "content": "hi"}


def asked(**fields: JSON) -> Request:
    """The request that says no more than `hi` beside these fields."""
    return anthropic.read_request({"model": "m", "messages": [HI], **fields})


def parts_of(*blocks: JSON, role: str = "user") -> tuple[Part, ...]:
    message = anthropic.read_request({"model": "m", "messages": [{"role": role, "content": list(blocks)}]}).messages[0]
    return message.parts


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a", **MARK}, Text("a", vendor={"anthropic": MARK})),
        ({"type": "text", "text": "a", "citations": None}, Text("a")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            Image(data="aGk=", media_type="image/png"),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://a.example/x"}}, Image(url="https://a.example/x")),
        (
            {"type": "image", "source": {"type": "file", "file_id": "f1"}, "transformations": {}},
            Image(file_id="f1", vendor={"anthropic": {"transformations": {}}}),
        ),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
            File(data="JVBERg==", media_type="application/pdf"),
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "words"},
                "title": "t",
                "context": "c",
            },
            File(text="words", name="t", vendor={"anthropic": {"context": "c"}}),
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://a.example/x"}},
            File(url="https://a.example/x"),
        ),
        ({"type": "document", "source": {"type": "file", "file_id": "f1"}}, File(file_id="f1")),
        (
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "in it"}]}},
            File(
                text="in it",
                vendor={"anthropic": {"source": {"type": "content", "content": [{"type": "text", "text": "in it"}]}}},
            ),
        ),
        (
            {"type": "tool_result", "tool_use_id": "c1", "content": "done", "is_error": True, **MARK},
            ToolResult("c1", (Text("done"),), True, {"anthropic": MARK}),
        ),
        ({"type": "tool_result", "tool_use_id": "c1"}, ToolResult("c1")),
        (
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image", "source": {"type": "url", "url": "https://a.example/x"}},
                ],
            },
            ToolResult("c1", (Text("see"), Image(url="https://a.example/x"))),
        ),
    ],
)
def test_a_block_of_the_user_is_a_part_and_comes_out_the_same(block: dict[str, JSON], part: Part) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "w", "input": {}}
    body = {
        "model": "m",
        "messages": [HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}],
    }
    request = anthropic.read_request(body)
    written = anthropic.write_request(request)["messages"][-1]["content"][-1]

    assert request.messages[-1].parts == (part,)
    if part == ToolResult("c1", (Text("done"),), True, {"anthropic": MARK}):
        block = {**block, "content": [{"type": "text", "text": "done"}]}
    assert written == {name: value for name, value in block.items() if value is not None}


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"type": "thinking", "thinking": "hm", "signature": "QQ=="},
            Thinking("hm", {"anthropic": {"signature": "QQ=="}}),
        ),
        (
            {"type": "thinking", "thinking": "", "signature": "QQ=="},
            Thinking("", {"anthropic": {"signature": "QQ=="}}),
        ),
        ({"type": "redacted_thinking", "data": "eHg="}, Thinking("", {"anthropic": {"redacted": "eHg="}})),
        (
            {"type": "tool_use", "id": "c1", "name": "w", "input": {"a": [1, "ü"]}, **MARK},
            ToolCall("c1", "w", '{"a":[1,"ü"]}', {"anthropic": MARK}),
        ),
        (
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}},
            Thinking(
                "",
                {
                    "anthropic": {
                        "block": {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}}
                    }
                },
            ),
        ),
    ],
)
def test_a_block_of_the_assistant_is_a_part_and_comes_out_the_same(block: dict[str, JSON], part: Part) -> None:
    request = anthropic.read_request({"model": "m", "messages": [HI, {"role": "assistant", "content": [block]}]})

    assert request.messages[1].parts == (part,)
    assert anthropic.write_request(request)["messages"][1]["content"] == [block]


@pytest.mark.parametrize(
    ("block", "readable"),
    [
        (
            {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
            File(text="found", name="t"),
        ),
        ({"type": "novelty", "content": [{"type": "text", "text": "inside"}]}, Text("inside")),
        ({"type": "container_upload", "file_id": "f1"}, Text('{"type":"container_upload","file_id":"f1"}')),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_block_without_a_part_stays_readable_and_goes_on_unchanged(
    block: dict[str, JSON], readable: Text | File, inside: bool
) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [block]}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "w", "input": {}}]}
    sent = {"role": "user", "content": [result if inside else block]}
    request = anthropic.read_request({"model": "m", "messages": [HI, *([call] if inside else []), sent]})
    part = request.messages[-1].results[0].parts[0] if inside else request.messages[-1].parts[0]
    content = anthropic.write_request(request)["messages"][-1]["content"][-1]

    assert isinstance(part, (Text, File))
    assert part.text == readable.text
    assert type(part) is type(readable)
    assert (content["content"][0] if inside else content) == block


@pytest.mark.parametrize("name", ["block", "redacted", "signature"])
def test_a_client_cannot_set_the_notes_that_are_ours(name: str) -> None:
    block = {"type": "text", "text": "a", name: {"type": "tool_result", "tool_use_id": "c1"}}

    assert parts_of(block) == (Text("a"),)


def test_results_and_text_of_one_message_become_two_messages_results_first() -> None:
    content = [{"type": "text", "text": "and now"}, {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]
    request = anthropic.read_request({"model": "m", "messages": [{"role": "user", "content": content}]})

    assert request.messages == (Message("tool", (ToolResult("c1", (Text("ok"),)),)), user("and now"))


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ({}, "{}"),
        (None, "{}"),
        ("", "{}"),
        ("  ", "{}"),
        ([], "[]"),
        ('{"a":1}', '{"a":1}'),
        ('{"a":1', '{"a":1'),
        (7, "7"),
    ],
)
def test_an_input_that_is_no_object_is_kept_for_the_call_to_judge(value: JSON, arguments: str) -> None:
    (call,) = parts_of({"type": "tool_use", "id": "c1", "name": "w", "input": value}, role="assistant")

    assert call == ToolCall("c1", "w", arguments)


def test_system_texts_stand_in_front_and_at_their_places() -> None:
    billing = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli"}
    request = asked(
        system=[billing, {"type": "text", "text": "be brief", **MARK}],
        messages=[HI, {"role": "system", "content": "# Environment"}],
    )

    marked = Text("be brief", vendor={"anthropic": MARK})
    assert request.messages == (Message("system", (marked,)), user("hi"), system("# Environment"))
    assert asked(system="be brief").messages[0] == system("be brief")
    assert asked(system=[billing]).messages == (user("hi"),)


@pytest.mark.parametrize("content", ["", [], None, [{"type": "text", "text": ""}]])
def test_an_empty_message_is_a_message_without_parts(content: JSON) -> None:
    assert asked(messages=[HI, {"role": "assistant", "content": content}]).messages[1] == Message("assistant")


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"max_tokens": 0}, "max_tokens", 0),
        ({"stop_sequences": ["a", "b"]}, "stop", ("a", "b")),
        ({"temperature": 0}, "temperature", 0),
        ({"top_k": 4}, "top_k", 4),
        ({"stream": True}, "stream", True),
        ({"stream": None}, "stream", False),
        ({"metadata": {"user_id": "u"}}, "user", "u"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, "think", 2048),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, "think", True),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, "think", "xhigh"),
        ({"thinking": {"type": "between_tools"}}, "think", True),
        ({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}, "think", False),
        ({"output_config": {"effort": "max"}}, "think", "max"),
        ({"output_config": {"effort": "colossal"}}, "think", None),
        ({"output_config": {"format": {"type": "json_schema", "schema": SHAPE}}}, "schema", AnswerSchema(schema=SHAPE)),
        ({"output_format": {"type": "json_schema", "schema": SHAPE}}, "schema", AnswerSchema(schema=SHAPE)),
        ({"tools": [{"name": "w"}], "tool_choice": {"type": "any"}}, "tool_choice", "any"),
        ({"tools": [{"name": "w"}], "tool_choice": {"type": "tool", "name": "w"}}, "tool_choice", ForcedTool("w")),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "parallel_calls", False),
        ({"tools": [{"name": "w"}]}, "tools", (ToolSpec("w"),)),
        (
            {"tools": [{"type": "custom", "name": "w", "input_schema": SHAPE, "strict": True, **MARK}]},
            "tools",
            (ToolSpec("w", "", SHAPE, True, {"anthropic": MARK}),),
        ),
        (
            {"tools": [{"type": "bash_20250124", "name": "bash"}]},
            "tools",
            (ToolSpec("bash", vendor={"anthropic": {"type": "bash_20250124", "name": "bash"}}),),
        ),
    ],
)
def test_a_field_has_its_place(fields: dict[str, JSON], name: str, value: object) -> None:
    assert getattr(asked(**fields), name) == value


def test_other_fields_are_kept_word_for_word() -> None:
    fields = {
        "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": []},
        "service_tier": "auto",
        "cache_control": {"type": "ephemeral"},
    }
    shape = {"format": {"type": "json_schema", "schema": SHAPE}, "effort": "low"}

    assert asked(**fields, output_config=shape, speed=None, mcp_servers=[]).extra == {
        "anthropic": {**fields, "output_config": {"effort": "low"}}
    }


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": 5}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["hi"]}, "messages.0"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, "messages.0.content.0.type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content.0.text"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages.0.content.0.source.type"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_use"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}, "messages.0.content.0.id"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_result"}]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "system", "content": [{"type": "image"}]}]}, "messages.0.content.0.type"),
        ({"system": 5}, "system"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [{"name": "w"}], "tool_choice": {"type": "tool", "name": "v"}}, "tool_choice.name"),
        ({"system": [{"type": "text", "text": 5}]}, "system.0.text"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "100"}, "max_tokens"),
        ({"max_tokens": 1e3}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream": "yes"}, "stream"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stop_sequences": [5]}, "stop_sequences"),
        ({"tools": [{"description": "nameless"}]}, "tools.0.name"),
        ({"tools": [{"name": "w", "input_schema": "object"}]}, "tools.0.input_schema"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"thinking": {"type": "hard"}}, "thinking.type"),
        ({"output_config": {"effort": 5}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type"),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"mcp_servers": [{"url": "https://a.example"}]}, "mcp_servers"),
        ({"thread": {"type": "create"}}, "thread"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, JSON], param: str) -> None:
    with pytest.raises(WireError) as caught:
        asked(**fields)

    assert caught.value.param == param
    assert f"`{param}`" in str(caught.value)


def test_threads_are_refused_in_the_way_that_makes_clients_send_everything() -> None:
    with pytest.raises(anthropic.ThreadUnsupported) as caught:
        asked(thread={"type": "continue", "previous_message_id": "msg_1"})
    status, _, body = anthropic.write_error(Failed.of(caught.value), "run_1")

    assert (status, body["error"]["details"]) == (400, {"error_code": "thread_unsupported_request"})


def test_the_count_of_tokens_grows_with_everything_that_is_sent() -> None:
    least = anthropic.count_tokens(asked(tools=[]))
    more = [
        {"system": "be brief"},
        {"tools": [{"name": "w", "input_schema": SHAPE}]},
        {"messages": [HI, {"role": "assistant", "content": "北京" * 20}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]}]},
        {"thinking": {"type": "adaptive"}, "output_config": {"format": {"type": "json_schema", "schema": SHAPE}}},
    ]

    assert least > 0
    assert all(anthropic.count_tokens(asked(**fields)) > least for fields in more)
    assert 900 < anthropic.count_tokens(asked(system="four" * 1000)) < 1100
