"""pydantic-ai, over its three models."""

from __future__ import annotations

import asyncio

from asking import BASE, KEY, MODEL, OPENAI, ask_all
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def agent(name: str) -> Agent:
    # each its own, because a client belongs to one event loop
    if name == "anthropic":
        return Agent(AnthropicModel(MODEL, provider=AnthropicProvider(base_url=BASE, api_key=KEY)))
    kind = OpenAIChatModel if name == "chat" else OpenAIResponsesModel
    return Agent(kind(MODEL, provider=OpenAIProvider(base_url=OPENAI, api_key=KEY)))


async def whole(name: str) -> object:
    return (await agent(name).run("hi")).output


async def stream(name: str) -> object:
    async with agent(name).run_stream("hi") as answer:
        return "".join([text async for text in answer.stream_text(delta=True)])


ways = {}
for name in ("chat", "responses", "anthropic"):
    ways[f"pydantic-ai {name}"] = lambda name=name: asyncio.run(whole(name))
    ways[f"pydantic-ai {name} stream"] = lambda name=name: asyncio.run(stream(name))
ask_all(ways)
