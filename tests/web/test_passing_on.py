"""What a client asks of an answer reaches the model of a transparent brain, and what the model says of it the client."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain import Brain, Chat, Flow, Model, Turn, agent
from bigbrain.errors import ContextTooLong
from bigbrain.messages import JSON
from tests.raw_upstream import Raw, chat_frames, message_frames, raw
from tests.upstream import Upstream
from tests.web.site import BOTH, CHAT, MESSAGES, asking, serving

WEIGHTS = [{"token": "Hi", "logprob": -0.25, "bytes": [72, 105], "top_logprobs": []}]
WEIGHED = chat_frames(
    {"delta": {"role": "assistant", "content": ""}, "logprobs": None},
    {"delta": {"content": "Hi"}, "logprobs": {"content": WEIGHTS, "refusal": None}},
    {"delta": {}, "finish_reason": "stop"},
)
SAID = message_frames(
    {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 0}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)


def before(up: Raw, provider: Any = "openai") -> Brain:
    url = f"{up.url}/v1" if provider == "openai" else up.url
    return Brain("b", Flow(model=Model("m", provider=provider, base_url=url, api_key="k", retries=0)))


def test_log_probabilities_are_asked_for_and_told() -> None:
    with raw(WEIGHED) as up, serving(before(up)) as site:
        document = site.client.post(CHAT, json=asking(logprobs=True, top_logprobs=2)).json

    assert (up.bodies[0]["logprobs"], up.bodies[0]["top_logprobs"]) == (True, 2)
    assert document["choices"][0]["logprobs"] == {"content": WEIGHTS, "refusal": None}


def test_where_there_are_none_they_are_null() -> None:
    @agent
    def talk(turn: Turn, chat: Chat) -> None:
        turn.reply("Hi")

    with raw(SAID) as up:
        for brain in (Brain("b", Flow(talk)), before(up, "anthropic")):
            with serving(brain) as site:
                choice = site.client.post(CHAT, json=asking(logprobs=True)).json["choices"][0]
                assert (choice["message"]["content"], choice["logprobs"]) == ("Hi", None)
        assert "logprobs" not in up.bodies[0]


@pytest.mark.parametrize(
    ("path", "fields"),
    [(CHAT, {"stop": ["END", "\n\n"]}), (CHAT, {"stop": "END"}), (MESSAGES, {"stop_sequences": ["END"]})],
)
def test_stop_texts_reach_the_model(path: str, fields: dict[str, JSON]) -> None:
    with raw(WEIGHED) as up, serving(before(up)) as site:
        assert site.client.post(path, json=asking(**fields)).status_code == 200

    (asked,) = fields.values()
    assert up.bodies[0]["stop"] == ([asked] if isinstance(asked, str) else asked)


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize(("provider", "answer"), [("openai", WEIGHED), ("anthropic", SAID)])
def test_an_answer_that_the_client_has_begun_is_the_last_thing_the_model_reads(
    path: str, provider: str, answer: list[bytes]
) -> None:
    history = [{"role": "user", "content": "Say hi."}, {"role": "assistant", "content": "Well, "}]
    with raw(answer) as up, serving(before(up, provider)) as site:
        assert site.client.post(path, json=asking(messages=history)).status_code == 200

    last = up.bodies[0]["messages"][-1]
    assert last["role"] == "assistant"
    assert "Well," in str(last["content"])


def test_knobs_of_chance_are_the_brains_own() -> None:
    with raw(WEIGHED) as up, serving(before(up)) as site:
        site.client.post(CHAT, json=asking(temperature=0.5, top_p=0.9, seed=1, reasoning_effort="low", user="u"))

    assert not {"temperature", "top_p", "seed", "reasoning_effort", "user"} & up.bodies[0].keys()


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_how_much_too_long_a_conversation_is_reaches_the_client(path: str, stream: bool) -> None:
    """Claude Code reads these numbers to know how much it has to drop."""
    with Upstream() as up, serving(Brain("b", Flow(model=Model("too-long", base_url=up.openai)))) as site:
        response = site.client.post(path, json=asking(stream=stream))

    assert response.status_code == 400
    assert response.json["error"]["message"] == "prompt is too long: 250000 tokens > 200000 maximum"
    if path == CHAT:
        assert response.json["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("prompt is too long: 9 tokens > 8 maximum", "prompt is too long: 9 tokens > 8 maximum"),
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "prompt is too long: 9000 tokens > 8192 maximum",
        ),
        ("the key sk-1 of 12 tokens is bad", ContextTooLong.safe),
    ],
)
def test_of_a_servers_words_only_the_numbers_are_told(words: str, told: str) -> None:
    assert ContextTooLong(words).public == told
