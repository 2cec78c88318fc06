"""litellm, as a client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import partial

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # reads the environment while it is imported
from asking import BASE, HI, KEY, MODEL, OPENAI, ask_all

litellm.telemetry = False
litellm.suppress_debug_info = True

CLAUDE = "anthropic/claude-sonnet-4-5"
KINDS = {
    "openai": {"model": f"openai/{MODEL}", "api_base": OPENAI, "api_key": KEY},
    "anthropic": {"model": CLAUDE, "api_base": BASE, "api_key": KEY, "max_tokens": 200},
}


def _text(chunks: Iterable[object]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def whole(kind: dict[str, object]) -> object:
    return litellm.completion(messages=HI, **kind).choices[0].message.content


def stream(kind: dict[str, object]) -> object:
    return _text(litellm.completion(messages=HI, stream=True, **kind))


async def _whole(kind: dict[str, object]) -> object:
    return (await litellm.acompletion(messages=HI, **kind)).choices[0].message.content


async def _stream(kind: dict[str, object]) -> object:
    return _text([chunk async for chunk in await litellm.acompletion(messages=HI, stream=True, **kind)])


def responses() -> object:
    kind = KINDS["openai"]
    return litellm.responses(input="hi", **kind).output[0].content[0].text


def responses_stream() -> object:
    events = litellm.responses(input="hi", stream=True, **KINDS["openai"])
    # its types are an enumeration
    return "".join(event.delta for event in events if event.type.value == "response.output_text.delta")


def messages() -> object:
    answer = litellm.anthropic_messages(model=CLAUDE, api_base=BASE, api_key=KEY, max_tokens=50, messages=HI)
    return asyncio.run(answer)["content"][0]["text"]


ways = {"litellm responses": responses, "litellm responses stream": responses_stream, "litellm messages": messages}
for name, kind in KINDS.items():
    ways[f"litellm {name}"] = partial(whole, kind)
    ways[f"litellm {name} stream"] = partial(stream, kind)
    ways[f"litellm {name} async"] = lambda kind=kind: asyncio.run(_whole(kind))
    ways[f"litellm {name} async stream"] = lambda kind=kind: asyncio.run(_stream(kind))
ask_all(ways)
