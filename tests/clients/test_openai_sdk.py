"""OpenAI's SDK for Python, unmodified, in every way it asks for chat completions."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from tests.stack.deployment import Deployment

pytestmark = pytest.mark.slow

HELLO = "Hello from the model."
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Cat(BaseModel):
    name: str
    lives: int


WEATHER = openai.pydantic_function_tool(Cat, name="find_cat", description="a cat")


def test_a_document_and_its_request_id(chat: openai.OpenAI, model: str) -> None:
    answer = chat.chat.completions.create(model=model, messages=HI, max_completion_tokens=100)

    assert answer.choices[0].message.content == HELLO
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None and answer.usage.total_tokens > 0
    assert answer.id == f"chatcmpl-{answer._request_id}"


def test_a_stream_with_its_usage_last(chat: openai.OpenAI, model: str) -> None:
    options = {"include_usage": True}
    chunks = list(chat.chat.completions.create(model=model, messages=HI, stream=True, stream_options=options))

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == HELLO
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None


def test_the_stream_helper_reads_a_forced_call(chat: openai.OpenAI, model: str) -> None:
    with chat.chat.completions.stream(model=model, messages=HI, tools=[WEATHER], tool_choice="required") as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_completion().choices[0].message

    assert "tool_calls.function.arguments.done" in kinds
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.parsed_arguments == Cat(name="xxxxx", lives=1)


def test_a_loop_of_tools_comes_to_its_end(chat: openai.OpenAI, model: str) -> None:
    first = chat.chat.completions.create(model=model, messages=HI, tools=[WEATHER]).choices[0].message
    assert first.tool_calls is not None
    results = [{"role": "tool", "tool_call_id": call.id, "content": "found"} for call in first.tool_calls]
    second = chat.chat.completions.create(model=model, messages=[*HI, first, *results], tools=[WEATHER])

    assert second.choices[0].message.content == HELLO


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_parsed(chat: openai.OpenAI, model: str, streamed: bool) -> None:
    if streamed:
        with chat.chat.completions.stream(model=model, messages=HI, response_format=Cat) as stream:
            parsed = stream.get_final_completion().choices[0].message.parsed
    else:
        parsed = chat.chat.completions.parse(model=model, messages=HI, response_format=Cat).choices[0].message.parsed

    assert parsed == Cat(name="xxxxx", lives=1)


def test_json_without_a_shape(chat: openai.OpenAI, model: str) -> None:
    answer = chat.chat.completions.create(model=model, messages=HI, response_format={"type": "json_object"})

    assert json.loads(answer.choices[0].message.content or "") == {}


def test_several_choices_are_the_one_answer(chat: openai.OpenAI, model: str) -> None:
    answer = chat.chat.completions.create(model=model, messages=HI, n=3)

    assert [(choice.index, choice.message.content) for choice in answer.choices] == [(n, HELLO) for n in range(3)]


def test_functions_in_their_old_form(chat: openai.OpenAI, model: str) -> None:
    function = {"name": "find", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    first = chat.chat.completions.create(model=model, messages=HI, functions=[function]).choices[0]
    assert first.message.function_call is not None
    result = {"role": "function", "name": "find", "content": "found"}
    second = chat.chat.completions.create(model=model, messages=[*HI, first.message, result], functions=[function])

    assert (first.finish_reason, first.message.function_call.name) == ("function_call", "find")
    assert second.choices[0].message.content == HELLO


def test_parts_of_every_kind(chat: openai.OpenAI, model: str) -> None:
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ]
    answer = chat.chat.completions.create(model=model, messages=[{"role": "user", "content": parts}])

    assert answer.choices[0].message.content == HELLO


def test_every_parameter_there_is(chat: openai.OpenAI, model: str) -> None:
    answer = chat.chat.completions.create(
        model=model,
        messages=[{"role": "developer", "content": "be brief"}, *HI],
        max_completion_tokens=100,
        reasoning_effort="low",
        verbosity="low",
        service_tier="auto",
        seed=1,
        stop=["ZZZ"],
        temperature=0.5,
        top_p=0.9,
        presence_penalty=0,
        frequency_penalty=0,
        logit_bias={},
        n=1,
        user="u",
        safety_identifier="s",
        prompt_cache_key="k",
        store=False,
        metadata={"a": "b"},
        logprobs=True,
        top_logprobs=1,
        modalities=["text"],
        parallel_tool_calls=True,
        tools=[WEATHER],
        tool_choice="none",
        extra_body={"novel": [1]},
    )

    assert answer.choices[0].message.content == HELLO
    assert answer.service_tier == "default"


def test_thinking_is_shown_beside_the_answer(chat: openai.OpenAI) -> None:
    for name in ("thinker", "thinker-claude"):
        answer = chat.chat.completions.create(model=name, messages=HI).choices[0].message
        assert (answer.content, answer.model_extra["reasoning_content"]) == ("done", "let me see")  # type: ignore[index]


def test_the_async_client_reads_both(stack: Deployment, model: str) -> None:
    async def both() -> tuple[str | None, str]:
        async with openai.AsyncOpenAI(base_url=stack.openai, api_key="k") as client:
            whole = await client.chat.completions.create(model=model, messages=HI)
            text = ""
            async for chunk in await client.chat.completions.create(model=model, messages=HI, stream=True):
                text += chunk.choices[0].delta.content or ""
            return whole.choices[0].message.content, text

    assert asyncio.run(both()) == (HELLO, HELLO)


def test_a_busy_model_is_asked_again_by_the_sdk(stack: Deployment) -> None:
    with openai.OpenAI(base_url=stack.openai, api_key="k", max_retries=2) as client:
        answer = client.chat.completions.create(model="busy", messages=[{"role": "user", "content": "openai"}])

    assert answer.choices[0].message.content == "recovered"


def test_the_models_are_listed_and_found(chat: openai.OpenAI) -> None:
    assert next(iter(chat.models.list())).id == "stub-model"
    assert chat.models.retrieve("stub-claude").id == "stub-claude"
    with pytest.raises(openai.NotFoundError):
        chat.models.retrieve("nothing")


def test_what_is_wrong_is_the_exception_that_says_so(chat: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        chat.chat.completions.create(model="stub-model", messages=[])
    with pytest.raises(openai.BadRequestError) as unsupported:
        chat.chat.completions.create(model="stub-model", messages=HI, modalities=["text", "audio"])

    assert wrong.value.param == "messages"
    assert unsupported.value.code == "unsupported_value"
    assert wrong.value.request_id
