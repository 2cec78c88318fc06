"""OpenAI's agents SDK, over both of its models."""

from __future__ import annotations

import asyncio

import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from asking import KEY, MODEL, OPENAI, ask_all

set_tracing_disabled(disabled=True)
KINDS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


def agent(name: str) -> Agent:
    return Agent(name="a", model=KINDS[name](MODEL, openai.AsyncOpenAI(base_url=OPENAI, api_key=KEY)))


async def whole(name: str) -> object:
    return (await Runner.run(agent(name), "hi")).final_output


async def stream(name: str) -> object:
    answer = Runner.run_streamed(agent(name), "hi")
    async for _ in answer.stream_events():
        pass
    return answer.final_output


ways = {}
for name in KINDS:
    ways[f"agents {name}"] = lambda name=name: asyncio.run(whole(name))
    ways[f"agents {name} stream"] = lambda name=name: asyncio.run(stream(name))
ask_all(ways)
