"""OpenAI's SDK for Python, unmodified, in every way it asks for responses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.stack.deployment import Deployment

pytestmark = pytest.mark.slow

HELLO = "Hello from the model."
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "name": "get_weather", "parameters": CITY, "strict": True}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Cat(BaseModel):
    name: str
    lives: int


def test_a_document(chat: openai.OpenAI, model: str) -> None:
    answer = chat.responses.create(model=model, input="hi", instructions="be brief", max_output_tokens=100)

    assert (answer.status, answer.output_text) == ("completed", HELLO)
    assert answer.usage is not None and answer.usage.total_tokens > 0


def test_a_stream_has_every_number_and_agrees_with_its_end(chat: openai.OpenAI, model: str) -> None:
    events = list(chat.responses.create(model=model, input="hi", stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last = events[-1]

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, last.type) == ("response.created", "response.completed")
    assert last.type == "response.completed" and last.response.output_text == text == HELLO


def test_the_stream_helper_reads_a_forced_call(chat: openai.OpenAI, model: str) -> None:
    with chat.responses.stream(model=model, input="hi", tools=[TOOL], tool_choice="required") as stream:
        for _ in stream:
            pass
        answer = stream.get_final_response()
    (call,) = [item for item in answer.output if item.type == "function_call"]

    assert json.loads(call.arguments) == {"city": "xxxxx"}


def test_a_loop_of_tools_comes_to_its_end(chat: openai.OpenAI, model: str) -> None:
    first = chat.responses.create(model=model, input="hi", tools=[TOOL])
    (call,) = [item for item in first.output if item.type == "function_call"]
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    sent = chat.responses.create(
        model=model, input=[{"role": "user", "content": "hi"}, *first.output, result], tools=[TOOL]
    )
    known = chat.responses.create(model=model, input=[result], previous_response_id=first.id, tools=[TOOL])

    assert sent.output_text == known.output_text == HELLO


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_is_parsed(chat: openai.OpenAI, model: str, streamed: bool) -> None:
    if streamed:
        with chat.responses.stream(model=model, input="hi", text_format=Cat) as stream:
            for _ in stream:
                pass
            parsed = stream.get_final_response().output_parsed
    else:
        parsed = chat.responses.parse(model=model, input="hi", text_format=Cat).output_parsed

    assert parsed == Cat(name="xxxxx", lives=1)


def test_a_picture(chat: openai.OpenAI, model: str) -> None:
    content: Any = [
        {"type": "input_text", "text": "what"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
    ]

    assert chat.responses.create(model=model, input=[{"role": "user", "content": content}]).output_text == HELLO


@pytest.mark.parametrize("name", ["thinker", "thinker-claude"])
def test_thinking_is_an_item_and_goes_back(chat: openai.OpenAI, name: str) -> None:
    asked: Any = {
        "model": name,
        "reasoning": {"summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }
    first = chat.responses.create(input="hi", **asked)
    again = chat.responses.create(
        input=[{"role": "user", "content": "hi"}, *first.output, {"role": "user", "content": "more"}], **asked
    )

    assert [item.type for item in first.output] == ["reasoning", "message"]
    assert first.output_text == again.output_text == "done"


def test_the_async_client_reads_both(stack: Deployment, model: str) -> None:
    async def both() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=stack.openai, api_key="k") as client:
            whole = await client.responses.create(model=model, input="hi")
            async with client.responses.stream(model=model, input="hi") as stream:
                async for _ in stream:
                    pass
                return whole.output_text, (await stream.get_final_response()).output_text

    assert asyncio.run(both()) == (HELLO, HELLO)


def test_a_response_in_the_background_is_asked_for_later(chat: openai.OpenAI, model: str) -> None:
    answer = chat.responses.create(model=model, input="hi", background=True)
    for _ in range(200):
        if answer.status not in ("queued", "in_progress"):
            break
        answer = chat.responses.retrieve(answer.id)

    assert (answer.status, answer.output_text) == ("completed", HELLO)
