"""The official SDKs against `bigbrain up`, with a model server that behaves in each way that real ones do."""

from __future__ import annotations

import asyncio

import anthropic
import httpx2
import openai
import pytest

from tests.stack.deployment import Deployment

pytestmark = pytest.mark.slow

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
SHAPES = ["{}", "anthropic:{}", "responses:{}"]
"""The model server is asked in each protocol, whatever the client speaks."""


@pytest.fixture(scope="module")
def chat(stack: Deployment):
    with openai.OpenAI(base_url=stack.openai, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def claude(stack: Deployment):
    with anthropic.Anthropic(base_url=stack.url, api_key="k", max_retries=0) as client:
        yield client


def hi(text: str = "hi") -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_chat_completion_comes_whole_with_its_usage(chat: openai.OpenAI, shape: str) -> None:
    answer = chat.chat.completions.create(model=shape.format("text:hello world"), messages=hi())

    assert answer.choices[0].message.content == "hello world"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_chat_completion_streams_with_its_usage(chat: openai.OpenAI, shape: str) -> None:
    chunks = list(
        chat.chat.completions.create(
            model=shape.format("text:hello world"), messages=hi(), stream=True, stream_options={"include_usage": True}
        )
    )

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "hello world"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_comes_whole_with_its_usage(claude: anthropic.Anthropic, shape: str) -> None:
    answer = claude.messages.create(model=shape.format("text:hello world"), messages=hi(), max_tokens=50)

    assert [block.text for block in answer.content] == ["hello world"]
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_streams_with_its_usage(claude: anthropic.Anthropic, shape: str) -> None:
    with claude.messages.stream(model=shape.format("text:hello world"), messages=hi(), max_tokens=50) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()

    assert text == "hello world"
    assert final.usage.output_tokens > 0


def test_the_async_clients_stream_as_well(stack: Deployment) -> None:
    async def both() -> tuple[str, str]:
        async with (
            openai.AsyncOpenAI(base_url=stack.openai, api_key="k") as chat,
            anthropic.AsyncAnthropic(base_url=stack.url, api_key="k") as claude,
        ):
            stream = await chat.chat.completions.create(model="text:one two", messages=hi(), stream=True)
            first = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
            async with claude.messages.stream(model="text:one two", messages=hi(), max_tokens=9) as events:
                second = "".join([piece async for piece in events.text_stream])
            return first, second

    assert asyncio.run(both()) == ("one two", "one two")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bare_agent_passes_a_tool_call_down_and_its_result_up(chat: openai.OpenAI, shape: str) -> None:
    model = shape.format("tools")
    first = chat.chat.completions.create(model=model, messages=hi(), tools=[TOOL])
    [call] = first.choices[0].message.tool_calls or []
    assert (first.choices[0].finish_reason, call.function.name) == ("tool_calls", "weather")

    second = chat.chat.completions.create(
        model=model,
        tools=[TOOL],
        messages=[
            *hi(),
            first.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "sunny"},
        ],
    )

    assert second.choices[0].finish_reason == "stop"
    assert second.choices[0].message.content


@pytest.mark.parametrize("shape", SHAPES)
def test_a_bare_agent_streams_a_tool_call_to_an_anthropic_client(claude: anthropic.Anthropic, shape: str) -> None:
    tool = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
    model = shape.format("tools")
    with claude.messages.stream(model=model, messages=hi(), max_tokens=50, tools=[tool]) as stream:
        first = stream.get_final_message()
    [call] = [block for block in first.content if block.type == "tool_use"]
    assert (first.stop_reason, call.name) == ("tool_use", "weather")

    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    second = claude.messages.create(
        model=model,
        max_tokens=50,
        tools=[tool],
        messages=[
            *hi(),
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
            {"role": "user", "content": [result]},
        ],
    )

    assert second.stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bytes", "fox 🦊 北"),
        ("empty-choices", "ok"),
        ("no-usage", "ok"),
        ("anthropic:bytes", "fox 🦊 北"),
        ("json", None),
    ],
)
def test_whatever_a_model_server_does_to_its_stream_the_text_is_exact(
    chat: openai.OpenAI, claude: anthropic.Anthropic, name: str, text: str | None
) -> None:
    whole = chat.chat.completions.create(model=name, messages=hi()).choices[0].message.content
    chunks = chat.chat.completions.create(model=name, messages=hi(), stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    with claude.messages.stream(model=name, messages=hi(), max_tokens=50) as stream:
        message = "".join(stream.text_stream)

    assert text in (None, whole)
    assert whole == streamed == message


def test_a_server_that_reports_no_usage_is_not_guessed_for(chat: openai.OpenAI) -> None:
    usage = chat.chat.completions.create(model="no-usage", messages=hi()).usage

    assert usage is not None
    assert usage.total_tokens == 0


def test_parallel_calls_that_share_an_index_stay_two(chat: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    name = "parallel-index0"
    whole = chat.chat.completions.create(model=name, messages=hi(), tools=[TOOL]).choices[0].message.tool_calls or []
    tool = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
    with claude.messages.stream(model=name, messages=hi(), max_tokens=50, tools=[tool]) as stream:
        blocks = [block for block in stream.get_final_message().content if block.type == "tool_use"]
    indices = set()
    for chunk in chat.chat.completions.create(model=name, messages=hi(), tools=[TOOL], stream=True):
        for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            indices.add(call.index)

    assert len({call.id for call in whole}) == 2
    assert len({block.id for block in blocks}) == 2
    assert indices == {0, 1}


def test_what_a_model_thinks_reaches_the_client_apart_from_its_text(
    chat: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    message = chat.chat.completions.create(model="reasoning", messages=hi()).choices[0].message
    answer = claude.messages.create(model="anthropic:reasoning", messages=hi(), max_tokens=50)

    assert message.content == "done"
    assert message.model_dump()["reasoning_content"] == "let me see"
    assert [block.type for block in answer.content] == ["thinking", "text"]


def test_stages_stream_and_come_whole_with_the_same_text(chat: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    whole = chat.chat.completions.create(model="stages", messages=hi()).choices[0].message.content
    with claude.messages.stream(model="stages", messages=hi(), max_tokens=50) as stream:
        streamed = "".join(stream.text_stream)

    assert whole == streamed == "first\n\nsecond"


def test_work_that_keeps_a_processor_busy_runs_in_its_own_worker(chat: openai.OpenAI) -> None:
    assert chat.chat.completions.create(model="cpu", messages=hi()).choices[0].message.content == "499500"


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_choice_decides_which_steps_the_workers_get(chat: openai.OpenAI, side: str) -> None:
    assert chat.chat.completions.create(model="choice", messages=hi(side)).choices[0].message.content == side


def test_a_choice_that_is_not_there_is_an_error_and_no_misroute(chat: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as wrong:
        chat.chat.completions.create(model="choice", messages=hi("up"))

    assert wrong.value.code == "select_error"


def test_the_members_of_a_spread_group_come_together_from_several_workers(chat: openai.OpenAI) -> None:
    said = chat.chat.completions.create(model="spread", messages=hi()).choices[0].message.content or ""

    assert len(said.split("\n\n")) == 3


def test_the_models_are_listed_for_both_sdks(chat: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    names = ["relay", "stages", "lasting", "hops", "cpu", "counting", "choice", "spread"]
    assert [model.id for model in chat.models.list()] == names
    assert [model.id for model in claude.models.list()] == names
    assert chat.models.retrieve("stages").id == claude.models.retrieve("stages").id == "stages"


def test_a_wrong_field_is_named(chat: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        chat.chat.completions.create(model="echo", messages=hi(), max_tokens=-1)
    with pytest.raises(anthropic.BadRequestError) as mistaken:
        claude.messages.create(model="echo", messages=hi(), max_tokens=-1)

    assert wrong.value.param == "max_tokens"
    assert "max_tokens" in mistaken.value.message


def test_an_unknown_path_is_not_found_in_the_protocols_shape(chat: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    with pytest.raises(openai.NotFoundError):
        chat.embeddings.create(model="x", input="y")
    with pytest.raises(anthropic.NotFoundError):
        claude.messages.batches.list()


def test_a_body_over_the_cap_is_refused_in_the_protocols_shape(stack: Deployment) -> None:
    body = b'{"messages":[{"role":"user","content":"' + b"x" * (33 * 1024 * 1024) + b'"}]}'
    headers = {"content-type": "application/json"}

    chat = httpx2.post(f"{stack.openai}/chat/completions", content=body, headers=headers)
    chunked = httpx2.post(f"{stack.openai}/messages", content=iter([body]), headers=headers)

    assert (chat.status_code, chat.json()["error"]["code"]) == (413, "request_too_large")
    assert (chunked.status_code, chunked.json()["error"]["type"]) == (413, "request_too_large")
