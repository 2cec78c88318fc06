"""langchain-openai and langchain-anthropic."""

from __future__ import annotations

import asyncio
from functools import partial, reduce
from operator import add

from asking import BASE, KEY, MODEL, OPENAI, ask_all
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI


def _whole(model: object) -> object:
    return model.invoke("hi").text


def _async(model: object) -> object:
    return asyncio.run(model.ainvoke("hi")).text


def _stream(model: object) -> object:
    return reduce(add, model.stream("hi")).text


models = {
    "chat": ChatOpenAI(model=MODEL, base_url=OPENAI, api_key=KEY, use_responses_api=False),
    "responses": ChatOpenAI(model=MODEL, base_url=OPENAI, api_key=KEY, use_responses_api=True),
    "anthropic": ChatAnthropic(model=MODEL, base_url=BASE, api_key=KEY, max_tokens=200),
}
hows = {"whole": _whole, "async": _async, "stream": _stream}
ask_all({f"langchain {name} {how}": partial(ask, model) for name, model in models.items() for how, ask in hows.items()})
