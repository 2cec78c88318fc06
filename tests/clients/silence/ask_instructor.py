"""instructor, over both SDKs."""

from __future__ import annotations

from functools import partial

import anthropic
import instructor
import openai
from asking import BASE, HI, KEY, MODEL, OPENAI, ask_all
from instructor import Mode
from pydantic import BaseModel


class Calendar(BaseModel):
    name: str
    n: int


ASKED = {"model": MODEL, "messages": HI, "response_model": Calendar}


def over_openai(mode: Mode) -> object:
    client = instructor.from_openai(openai.OpenAI(base_url=OPENAI, api_key=KEY), mode=mode)
    return client.chat.completions.create(**ASKED, max_retries=0)


def over_anthropic() -> object:
    client = instructor.from_anthropic(anthropic.Anthropic(base_url=BASE, api_key=KEY), mode=Mode.ANTHROPIC_TOOLS)
    return client.messages.create(**ASKED, max_tokens=500, max_retries=0)


def stream() -> object:
    client = instructor.from_openai(openai.OpenAI(base_url=OPENAI, api_key=KEY), mode=Mode.TOOLS)
    return list(client.chat.completions.create_partial(**ASKED))[-1]


ask_all(
    {
        "instructor tools": partial(over_openai, Mode.TOOLS),
        "instructor json schema": partial(over_openai, Mode.JSON_SCHEMA),
        "instructor responses tools": partial(over_openai, Mode.RESPONSES_TOOLS),
        "instructor stream": stream,
        "instructor anthropic tools": over_anthropic,
    }
)
