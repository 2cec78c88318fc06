"""Both providers against a real server on loopback."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable

import pytest

from bigbrain.errors import (
    ModelRefused,
)
from bigbrain.messages import Message as Said
from bigbrain.messages import Request, Text, Thinking, ToolCall, ToolResult, ToolSpec, Usage, assistant, user
from bigbrain.models import Asks, Model, connect
from bigbrain.settings import Settings
from tests.contracts.model import ModelContract
from tests.models.asking import KEY, Spoken, answer, asks, spec
from tests.upstream import Upstream
from tests.upstream_answers import Answer, words


class OverTheWire(ModelContract):
    provider: Spoken

    @pytest.fixture
    def speaking(self, up: Upstream) -> Callable[[str], Asks]:
        def speaking(text: str) -> Asks:
            return asks(up, self.provider, f"text:{text}")

        return speaking

    @pytest.fixture
    def calling(self, up: Upstream) -> Asks:
        return asks(up, self.provider, "tools")

    @pytest.fixture
    def endless(self, up: Upstream) -> Asks:
        return asks(up, self.provider, "tokens:10000@50")


class TestOpenAI(OverTheWire):
    provider = "openai"


class TestResponses(OverTheWire):
    provider = "responses"


class TestAnthropic(OverTheWire):
    provider = "anthropic"


def test_every_token_comes_once_in_order_and_is_counted(up: Upstream, provider: Spoken) -> None:
    got = answer(asks(up, provider, "tokens:500"))

    assert got.text == "".join(words(500))
    assert got.usage == Usage(input=7, output=500)


def test_the_model_goes_out_with_its_knobs_and_always_streams(up: Upstream, provider: Spoken) -> None:
    knobs = spec(up, provider).having(temperature=0.5, max_tokens=99, stop=("END",), extra={"service_tier": "auto"})
    answer(connect(knobs, Settings()))
    body = up.requests[0].body

    assert (body["model"], body["stream"], body["temperature"], body["service_tier"]) == ("echo", True, 0.5, "auto")
    assert 99 in (body.get("max_tokens"), body.get("max_completion_tokens"), body.get("max_output_tokens"))
    if provider != "responses":  # which has no stop texts
        assert body.get("stop", body.get("stop_sequences")) in ("END", ["END"])


def test_a_conversation_with_tools_goes_round(up: Upstream, provider: Spoken) -> None:
    asked = asks(up, provider, "tools:2")
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in ("one", "two"))
    first = answer(asked, Request(messages=(user("go"),), tools=tools))
    results = Said("tool", tuple(ToolResult(call.id, (Text("fine"),)) for call in first.calls))
    second = answer(asked, Request(messages=(user("go"), first.message, results), tools=tools))

    assert [call.name for call in first.calls] == ["one", "two"]
    assert second.text == "the tools have answered"


def test_thinking_comes_before_the_text(up: Upstream, provider: Spoken) -> None:
    got = answer(asks(up, provider, "reasoning"))

    assert [type(part) for part in got.parts] == [Thinking, Text]
    assert (got.parts[0].text, got.text) == ("let me see", "done")


def test_the_token_limit_is_told(up: Upstream, provider: Spoken) -> None:
    assert answer(asks(up, provider, "length")).stop == "length"


def test_characters_cut_by_chunks_stay_whole(up: Upstream, provider: Spoken) -> None:
    assert answer(asks(up, provider, "bytes")).text == "fox 🦊 北"


def test_a_last_chunk_with_usage_and_no_choices_is_read() -> None:
    with Upstream() as up:
        got = answer(asks(up, "openai", "empty-choices"))

    assert (got.text, got.usage.total) == ("ok", 8)


def test_missing_counts_are_zero_and_never_guessed(up: Upstream, provider: Spoken) -> None:
    assert answer(asks(up, provider, "no-usage")).usage == Usage()


def test_two_calls_with_one_index_stay_two() -> None:
    with Upstream() as up:
        got = answer(asks(up, "openai", "parallel-index0"))

    assert got.calls == (ToolCall("call_a", "w", '{"c":"Oslo"}'), ToolCall("call_b", "w", '{"c":"Rome"}'))


def test_a_server_that_does_not_stream_is_understood(up: Upstream, provider: Spoken) -> None:
    got = answer(asks(up, provider, "json"))

    assert (got.text, got.stop, got.usage) == ("ok", "end", Usage(input=7, output=1))


def test_large_token_limits_are_not_refused_on_our_side(up: Upstream, provider: Spoken) -> None:
    big = spec(up, provider, "text:fine").having(max_tokens=10_000_000)

    assert answer(connect(big, Settings())).text == "fine"


def test_two_providers_live_in_one_process_with_their_own_keys(up: Upstream) -> None:
    settings = Settings(
        api_key="openai-key", base_url=up.openai, anthropic_api_key="anthropic-key", anthropic_base_url=up.anthropic
    )
    one = answer(connect(Model("text:one"), settings))
    two = answer(connect(Model("text:two", provider="anthropic"), settings))

    assert (one.text, two.text) == ("one", "two")
    assert [(request.path, request.key) for request in up.requests] == [
        ("/v1/chat/completions", "openai-key"),
        ("/v1/messages", "anthropic-key"),
    ]


def test_a_key_stands_in_no_error_even_if_the_server_repeats_it(up: Upstream, provider: Spoken) -> None:
    asked = asks(up, provider, "status:401")
    with pytest.raises(ModelRefused) as caught:
        answer(asked)

    assert "Incorrect API key provided: [key]" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in repr(asked)


def test_a_model_that_is_heated_is_asked_by_the_version_that_has_temperature(up: Upstream) -> None:
    answer(connect(spec(up, "anthropic").having(temperature=0.5), Settings()))
    answer(connect(spec(up, "anthropic"), Settings()))
    heated, plain = up.requests

    assert (heated.headers["anthropic-version"], heated.headers["x-api-key"]) == ("2023-06-01", KEY)
    assert "authorization" not in heated.headers
    assert (plain.headers["anthropic-version"], plain.key) == ("2026-10-21", KEY)


def test_a_history_with_an_empty_text_beside_a_call_is_sent_without_it(up: Upstream) -> None:
    said = Said("assistant", (Text(""), ToolCall("c1", "w", "{}")))
    history = (user("hi"), said, Said("tool", (ToolResult("c1"),)), assistant(""), user("go"))
    answer(asks(up, "anthropic", "echo"), Request(messages=history, tools=(ToolSpec("w", "", {"type": "object"}),)))
    texts = [
        block
        for message in up.requests[0].body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "text"
    ]

    assert all(block["text"].strip() for block in texts)


def test_many_calls_at_once_share_one_client(up: Upstream, provider: Spoken) -> None:
    asked = asks(up, provider, "tokens:20@100")
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(answer(asked).text)) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert texts == ["".join(words(20))] * 24


def test_scripted_answers_reach_the_model(up: Upstream, provider: Spoken) -> None:
    up.script(Answer(status=503), Answer(("scripted",)))

    assert answer(asks(up, provider, "echo", retries=1)).text == "scripted"


def test_nothing_of_a_conversation_stays_with_a_server_of_the_responses_api(up: Upstream) -> None:
    answer(asks(up, "responses", "echo"))
    answer(connect(spec(up, "responses").having(extra={"store": True}), Settings()))
    first, second = up.requests

    assert (first.path, first.body["store"], second.body["store"]) == ("/v1/responses", False, True)


def test_a_sealed_thought_goes_back_to_its_server_as_it_came(up: Upstream) -> None:
    asked = asks(up, "responses", "reasoning")
    first = answer(asked)
    answer(asked, Request(messages=(user("go"), first.message, user("on"))))

    assert up.requests[1].body["input"][1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "let me see"}],
        "encrypted_content": "QUJD",
    }
