"""The Anthropic SDK for Python."""

from __future__ import annotations

import asyncio

import anthropic
from asking import BASE, HI, KEY, MODEL, ask_all

client = anthropic.Anthropic(base_url=BASE, api_key=KEY)


def messages() -> object:
    return client.messages.create(model=MODEL, max_tokens=200, messages=HI).content[0].text


def stream() -> object:
    with client.messages.stream(model=MODEL, max_tokens=200, messages=HI) as answer:
        return answer.get_final_text()


async def _messages() -> object:
    other = anthropic.AsyncAnthropic(base_url=BASE, api_key=KEY)
    return (await other.messages.create(model=MODEL, max_tokens=200, messages=HI)).content[0].text


ask_all({"anthropic": messages, "anthropic stream": stream, "anthropic async": lambda: asyncio.run(_messages())})
