"""Anthropic's SDK for Python, unmodified, in every way it asks for messages."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam
from pydantic import BaseModel

from tests.stack.deployment import Deployment

pytestmark = pytest.mark.slow

HELLO = "Hello from the model."
HI: list[MessageParam] = [{"role": "user", "content": "hi"}]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL: ToolParam = {"name": "get_weather", "description": "weather", "input_schema": CITY}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Cat(BaseModel):
    name: str
    lives: int


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def test_a_document_and_its_request_id(claude: anthropic.Anthropic, model: str) -> None:
    message = claude.messages.create(model=model, max_tokens=99, system="be brief", messages=HI)

    assert text_of(message) == HELLO
    assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
    assert message.id == f"msg_{message._request_id}"


def test_a_stream_and_its_helper(claude: anthropic.Anthropic, model: str) -> None:
    kinds = [event.type for event in claude.messages.create(model=model, max_tokens=99, messages=HI, stream=True)]
    with claude.messages.stream(model=model, max_tokens=99, messages=HI) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()

    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert text == text_of(final) == HELLO
    assert final.usage.output_tokens > 0


@pytest.mark.parametrize("streamed", [False, True])
def test_a_forced_call_is_made_and_answered(claude: anthropic.Anthropic, model: str, streamed: bool) -> None:
    asked: Any = {"model": model, "max_tokens": 99, "tools": [TOOL], "messages": HI}
    if streamed:
        with claude.messages.stream(**asked, tool_choice={"type": "any"}) as stream:
            message = stream.get_final_message()
    else:
        message = claude.messages.create(**asked, tool_choice={"type": "tool", "name": "get_weather"})
    (call,) = [block for block in message.content if block.type == "tool_use"]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]}
    history = [*HI, {"role": "assistant", "content": message.content}, result]

    assert (message.stop_reason, call.input) == ("tool_use", {"city": "xxxxx"})
    assert text_of(claude.messages.create(**{**asked, "messages": history})) == HELLO


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_parsed(claude: anthropic.Anthropic, model: str, streamed: bool) -> None:
    if streamed:
        with claude.messages.stream(model=model, max_tokens=99, messages=HI, output_format=Cat) as stream:
            parsed = stream.get_final_message().parsed_output
    else:
        parsed = claude.messages.parse(model=model, max_tokens=99, messages=HI, output_format=Cat).parsed_output

    assert parsed == Cat(name="xxxxx", lives=1)


def test_the_tool_runner_keeps_its_conversation(claude: anthropic.Anthropic, model: str) -> None:
    asked: list[str] = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"sunny in {city}"

    runner = claude.beta.messages.tool_runner(model=model, max_tokens=99, tools=[get_weather], messages=HI)

    assert text_of(runner.until_done()) == HELLO
    assert asked == ["xxxxx"]


def test_the_async_client_its_helper_and_its_tool_runner(stack: Deployment, model: str) -> None:
    asked: list[str] = []

    @anthropic.beta_async_tool
    async def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"sunny in {city}"

    async def all_three() -> tuple[str, str, str]:
        async with anthropic.AsyncAnthropic(base_url=stack.url, api_key="k") as client:
            whole = await client.messages.create(model=model, max_tokens=99, messages=HI)
            async with client.messages.stream(model=model, max_tokens=99, messages=HI) as stream:
                streamed = "".join([text async for text in stream.text_stream])
            runner = client.beta.messages.tool_runner(model=model, max_tokens=99, tools=[get_weather], messages=HI)
            return text_of(whole), streamed, text_of(await runner.until_done())

    assert asyncio.run(all_three()) == (HELLO, HELLO, HELLO)
    assert asked == ["xxxxx"]


@pytest.mark.parametrize("name", ["thinker", "thinker-claude"])
@pytest.mark.parametrize("streamed", [False, True])
def test_thinking_comes_signed_and_goes_back(claude: anthropic.Anthropic, name: str, streamed: bool) -> None:
    asked: Any = {"model": name, "max_tokens": 3000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    if streamed:
        with claude.messages.stream(**asked, messages=HI) as stream:
            message = stream.get_final_message()
    else:
        message = claude.messages.create(**asked, messages=HI)
    thought = message.content[0]
    again = claude.messages.create(
        **asked, messages=[*HI, {"role": "assistant", "content": message.content}, {"role": "user", "content": "more"}]
    )

    assert thought.type == "thinking"
    assert (thought.thinking, bool(thought.signature)) == ("let me see", True)
    assert text_of(message) == text_of(again) == "done"


def test_pictures_documents_and_every_parameter_there_is(claude: anthropic.Anthropic, model: str) -> None:
    content: Any = [
        {"type": "text", "text": "what", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "doc"}},
    ]
    message = claude.messages.create(
        model=model,
        max_tokens=3000,
        system=[{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        messages=[{"role": "user", "content": content}, {"role": "system", "content": "mid"}],
        metadata={"user_id": "u"},
        service_tier="auto",
        stop_sequences=["ZZ"],
        thinking={"type": "adaptive", "display": "summarized"},
        output_config={"effort": "low"},
        tools=[TOOL],
        tool_choice={"type": "none"},
        extra_body={"temperature": 0.5, "top_p": 0.9, "top_k": 5, "novel": 1},
        extra_headers={"anthropic-beta": "novel-2031-01-01"},
    )

    assert text_of(message) == HELLO


def test_the_beta_namespace(claude: anthropic.Anthropic, model: str) -> None:
    betas = ["context-management-2025-06-27", "interleaved-thinking-2025-05-14"]

    assert text_of(claude.beta.messages.create(model=model, max_tokens=99, messages=HI, betas=betas)) == HELLO
    assert claude.beta.messages.count_tokens(model=model, messages=HI).input_tokens > 0


def test_tokens_are_counted(claude: anthropic.Anthropic, model: str) -> None:
    few = claude.messages.count_tokens(model=model, messages=HI).input_tokens
    many = claude.messages.count_tokens(model=model, messages=HI, system="x " * 500, tools=[TOOL]).input_tokens

    assert 0 < few < many


def test_either_header_holds_a_key_and_the_cache_may_be_filled(stack: Deployment, model: str) -> None:
    with anthropic.Anthropic(base_url=stack.url, auth_token="tok", api_key=None) as client:
        assert text_of(client.messages.create(model=model, max_tokens=9, messages=HI)) == HELLO
        assert client.messages.create(model=model, max_tokens=0, messages=HI).content == []


def test_a_busy_model_is_asked_again_by_the_sdk(stack: Deployment) -> None:
    with anthropic.Anthropic(base_url=stack.url, api_key="k", max_retries=2) as client:
        hi: list[MessageParam] = [{"role": "user", "content": "anthropic"}]
        assert text_of(client.messages.create(model="busy", max_tokens=9, messages=hi)) == "recovered"


def test_the_models_are_listed_page_by_page_and_found(claude: anthropic.Anthropic) -> None:
    assert [one.id for one in claude.models.list(limit=2)][:2] == ["stub-model", "stub-claude"]
    assert claude.models.retrieve("stub-claude").display_name == "stub-claude"
    with pytest.raises(anthropic.NotFoundError):
        claude.models.retrieve("nothing")


def test_what_is_wrong_is_the_exception_that_says_so(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError) as wrong:
        claude.messages.create(model="stub-model", max_tokens=-1, messages=HI)

    assert "max_tokens" in str(wrong.value)
    assert wrong.value.request_id
