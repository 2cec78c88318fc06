"""The Responses API of `bigbrain up`, by OpenAI's SDK, with workers and web processes that die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem
from pydantic import BaseModel

from tests.stack.deployment import Deployment

pytestmark = pytest.mark.slow

TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
SHAPES = ["{}", "anthropic:{}", "responses:{}"]


@pytest.fixture(scope="module")
def client(stack: Deployment) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=stack.openai, api_key="k", max_retries=0) as client:
        yield client


def over(client: openai.OpenAI, response_id: str, within: float = 60.0) -> Any:
    """The response once it is neither queued nor in progress."""
    end = time.monotonic() + within
    while (got := client.responses.retrieve(response_id)).status in ("queued", "in_progress"):
        assert time.monotonic() < end, f"{response_id} is still {got.status}"
        time.sleep(0.05)
    return got


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_comes_whole_and_streamed_and_is_stored(client: openai.OpenAI, shape: str) -> None:
    model = shape.format("text:hello world")
    whole = client.responses.create(model=model, input="hi")
    with client.responses.stream(model=model, input="hi") as stream:
        streamed = stream.get_final_response()

    assert whole.output_text == streamed.output_text == "hello world"
    assert whole.usage is not None
    assert whole.usage.output_tokens > 0
    assert client.responses.retrieve(streamed.id).output_text == "hello world"
    assert client.responses.retrieve(whole.id) == whole


def test_the_async_client_streams_as_well(stack: Deployment) -> None:
    async def ask() -> str:
        async with (
            openai.AsyncOpenAI(base_url=stack.openai, api_key="k") as client,
            client.responses.stream(model="text:one two", input="hi") as stream,
        ):
            return (await stream.get_final_response()).output_text

    assert asyncio.run(ask()) == "one two"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tool_goes_round_by_the_response_before(client: openai.OpenAI, shape: str) -> None:
    model = shape.format("tools")
    with client.responses.stream(model=model, input="hi", tools=[TOOL]) as stream:
        first = stream.get_final_response()
    [call] = [item for item in first.output if isinstance(item, ResponseFunctionToolCall)]
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = client.responses.create(model=model, input=[output], tools=[TOOL], previous_response_id=first.id)

    assert call.name == "weather"
    assert second.output_text == "the tools have answered"


def test_an_answer_is_parsed_as_a_type(client: openai.OpenAI) -> None:
    class Place(BaseModel):
        city: str

    got = client.responses.parse(model='text:{"city":"Oslo"}', input="where?", text_format=Place)

    assert got.output_parsed == Place(city="Oslo")


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_model_thinks_is_an_item_of_its_own_and_goes_back(
    client: openai.OpenAI, stack: Deployment, upstream: Any, shape: str
) -> None:
    model = shape.format("reasoning")
    first = client.responses.create(model=model, input="hi")
    thought, message = first.output
    assert isinstance(thought, ResponseReasoningItem)
    assert (thought.summary[0].text, first.output_text) == ("let me see", "done")

    items = [item.model_dump(exclude_none=True) for item in (thought, message)]
    question = {"role": "user", "content": "hi"}
    client.responses.create(model=model, input=[question, *items, question], store=False)
    sent = json.dumps(upstream.requests[-1].body)

    # in each protocol's form: its text, and what the model's server signed or sealed
    assert "let me see" in sent
    assert ("QUJD" in sent) == (shape != "{}")


def test_a_response_in_the_background_is_answered_without_its_client(client: openai.OpenAI) -> None:
    begun = client.responses.create(model="tokens:40@40", input="hi", background=True)
    got = over(client, begun.id)

    assert (begun.status, got.status) == ("queued", "completed")
    assert got.output_text.split() == [f"w{number}" for number in range(40)]


def test_a_response_in_the_background_is_stopped_and_deleted(client: openai.OpenAI) -> None:
    begun = client.responses.create(model="tokens:4000@40", input="hi", background=True)
    stopped = client.responses.cancel(begun.id)
    client.responses.delete(begun.id)

    assert stopped.status == "cancelled"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(begun.id)


def test_a_stream_that_was_cut_is_taken_up_and_misses_nothing(client: openai.OpenAI) -> None:
    seen: list[Any] = []
    with client.responses.create(model="tokens:60@60", input="hi", stream=True, background=True) as stream:
        for event in stream:
            seen.append(event)
            if len(seen) == 20:
                break
    with client.responses.retrieve(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number) as rest:
        seen += rest

    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    text = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
    assert text == seen[-1].response.output_text
    assert text.split() == [f"w{number}" for number in range(60)]


def test_a_durable_response_in_the_background_outlives_its_worker(client: openai.OpenAI, stack: Deployment) -> None:
    begun = client.responses.create(model="lasting", input="hi", background=True)
    with client.responses.retrieve(begun.id, stream=True) as stream:
        killed = False
        events = []
        for event in stream:
            events.append(event)
            if not killed and len([one for one in events if one.type == "response.output_text.delta"]) == 10:
                for pid in stack.pids("celery"):
                    os.kill(pid, signal.SIGKILL)
                killed = True
    got = over(client, begun.id)

    assert killed
    assert got.status == "completed"
    numbers = [event.sequence_number for event in events]
    # the silence after the death may bring heartbeats, under the number of the frame before them
    assert numbers == sorted(numbers)
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert events[-1].response.output_text == got.output_text
