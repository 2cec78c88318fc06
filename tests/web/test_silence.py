"""A brain that says nothing for longer than its clients wait between two bytes keeps them all."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import anthropic
import openai
import pytest

from bigbrain import Brain, Flow
from tests.web.site import Pausing, listening, serving

pytestmark = pytest.mark.slow

HI = [{"role": "user", "content": "hi"}]
PATIENCE = 1.0
"""Seconds that these clients wait for a byte: 600 by default."""
SILENCE = 3.0


@pytest.fixture
def url() -> Iterator[str]:
    """A server whose brain is silent for longer than that, and shows every 100 ms that it lives."""
    model = Pausing("")
    timer = threading.Timer(SILENCE, model.may_go_on.set)
    timer.start()
    with serving(Brain("b", Flow(model=model)), heartbeat=0.1) as site, listening(site.app) as url:
        yield url
    timer.join()


@pytest.mark.parametrize("stream", [False, True])
def test_openais_sdk_waits_for_a_silent_brain(url: str, stream: bool) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0, timeout=PATIENCE) as client:
        if stream:
            reasons = [
                chunk.choices[0].finish_reason
                for chunk in client.chat.completions.create(model="b", messages=HI, stream=True)
            ]
            assert reasons[-1] == "stop"
        else:
            assert client.chat.completions.create(model="b", messages=HI).choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_sdk_waits_for_a_silent_brain(url: str, stream: bool) -> None:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=PATIENCE) as client:
        if stream:
            with client.messages.stream(model="b", max_tokens=9, messages=HI) as told:
                assert told.get_final_message().stop_reason == "end_turn"
        else:
            assert client.messages.create(model="b", max_tokens=9, messages=HI).stop_reason == "end_turn"
