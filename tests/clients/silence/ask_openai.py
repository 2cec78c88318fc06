"""The OpenAI SDK for Python."""

from __future__ import annotations

import asyncio

import openai
from asking import HI, KEY, MODEL, OPENAI, ask_all

client = openai.OpenAI(base_url=OPENAI, api_key=KEY)


def chat() -> object:
    return client.chat.completions.create(model=MODEL, messages=HI).choices[0].message.content


def chat_stream() -> object:
    chunks = client.chat.completions.create(model=MODEL, messages=HI, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def responses() -> object:
    return client.responses.create(model=MODEL, input="hi").output_text


def responses_stream() -> object:
    with client.responses.stream(model=MODEL, input="hi") as stream:
        return stream.get_final_response().output_text


async def _chat() -> object:
    answer = await openai.AsyncOpenAI(base_url=OPENAI, api_key=KEY).chat.completions.create(model=MODEL, messages=HI)
    return answer.choices[0].message.content


ask_all(
    {
        "openai chat": chat,
        "openai chat stream": chat_stream,
        "openai responses": responses,
        "openai responses stream": responses_stream,
        "openai chat async": lambda: asyncio.run(_chat()),
    }
)
