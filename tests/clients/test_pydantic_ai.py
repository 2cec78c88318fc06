"""pydantic-ai, which checks every field of what it is answered, over chat completions, responses and messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput, ToolOutput
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.stack.deployment import Deployment

pytestmark = pytest.mark.slow

HELLO = "Hello from the model."


class Cat(BaseModel):
    name: str
    lives: int


@asynccontextmanager
async def over_chat(stack: Deployment, name: str) -> AsyncIterator[Model]:
    async with openai.AsyncOpenAI(base_url=stack.openai, api_key="k") as client:
        yield OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def over_responses(stack: Deployment, name: str) -> AsyncIterator[Model]:
    async with openai.AsyncOpenAI(base_url=stack.openai, api_key="k") as client:
        yield OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def over_messages(stack: Deployment, name: str) -> AsyncIterator[Model]:
    async with anthropic.AsyncAnthropic(base_url=stack.url, api_key="k") as client:
        yield AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


Opening = Callable[[], AbstractAsyncContextManager[Model]]


@pytest.fixture(params=[over_chat, over_responses, over_messages])
def opening(request: pytest.FixtureRequest, stack: Deployment, model: str) -> Opening:
    """Opens the model inside the event loop that uses it."""
    return lambda: request.param(stack, model)


def run(opening: Opening, use: Callable[[Model], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        async with opening() as model:
            return await use(model)

    return asyncio.run(inside())


def test_a_text(opening: Opening) -> None:
    answer = run(opening, lambda model: Agent(model).run("hi"))

    assert answer.output == HELLO
    assert answer.usage.output_tokens > 0


def test_a_stream(opening: Opening) -> None:
    async def streamed(model: Model) -> list[str]:
        async with Agent(model).run_stream("hi") as answer:
            return [text async for text in answer.stream_text(delta=True, debounce_by=None)]

    assert "".join(run(opening, streamed)) == HELLO


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_of_its_own(opening: Opening, streamed: bool) -> None:
    cities: list[str] = []

    def get_weather(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return "sunny"

    async def loop(model: Model) -> str:
        agent = Agent(model, tools=[get_weather])
        if not streamed:
            return (await agent.run("hi")).output
        async with agent.run_stream("hi") as answer:
            return await answer.get_output()

    assert run(opening, loop) == HELLO
    assert cities == ["xxxxx"]


def test_an_answer_of_a_type(opening: Opening) -> None:
    answer = run(opening, lambda model: Agent(model, output_type=ToolOutput(Cat)).run("hi"))

    assert answer.output == Cat(name="xxxxx", lives=1)


def test_an_answer_of_a_type_in_the_protocols_own_way(stack: Deployment, model: str) -> None:
    """It asks Anthropic's models so only by names that it knows."""
    answer = run(lambda: over_chat(stack, model), lambda model: Agent(model, output_type=NativeOutput(Cat)).run("hi"))

    assert answer.output == Cat(name="xxxxx", lives=1)


def test_a_picture(opening: Opening) -> None:
    picture = BinaryContent(data=b"\x89PNG", media_type="image/png")

    assert run(opening, lambda model: Agent(model).run(["what is this?", picture])).output == HELLO
