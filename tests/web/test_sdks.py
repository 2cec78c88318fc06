"""The official SDKs as clients of a real server: what they accept is right."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator

import anthropic
import openai
import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

from bigbrain.brain import Brain
from bigbrain.errors import ContextTooLong, ModelBusy, ModelRefused
from bigbrain.events import Event, replay
from bigbrain.flows import Flow
from bigbrain.messages import Request, Response, Text, ToolCall, Usage
from bigbrain.scope import Scope
from bigbrain.settings import Limits, Settings
from tests.web.site import Pausing, listening, serving

CHAT_TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
HI = [{"role": "user", "content": "hi"}]


class Scripted:
    """A model that calls the client's tool if it has one, tells what the tool said, fails on demand, or greets."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        last = request.messages[-1]
        match last.text:
            case "busy":
                raise ModelBusy
            case "refuse":
                raise ModelRefused
            case "long":
                raise ContextTooLong
            case _:
                yield from replay(self._answer(request))

    def _answer(self, request: Request) -> Response:
        results = request.messages[-1].results
        if results:
            return Response(parts=(Text(f"seen: {results[0].text}"),), stop="end", usage=Usage(9, 4))
        if request.tools:
            calls = (ToolCall("call_1", "look", '{"n": 1}'), ToolCall("call_2", "look", "{}"))
            return Response(parts=(Text("Let me see."), *calls), stop="calls", usage=Usage(9, 4))
        return Response(parts=(Text("fox 🦊 北"),), stop="end", usage=Usage(9, 4))


@pytest.fixture
def url() -> Iterator[str]:
    brain = Brain("b", Flow(model=Scripted()))
    settings = Settings(keys=("k",), limits=Limits(max_body=100_000))
    with serving(brain, settings) as site, listening(site.app) as url:
        yield url


@pytest.fixture
def chat(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(url: str) -> Iterator[Anthropic]:
    with Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        yield client


def test_openai_reads_a_document(chat: OpenAI) -> None:
    answer = chat.chat.completions.create(model="b", messages=HI)

    assert answer.choices[0].message.content == "fox 🦊 北"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 13
    assert answer.id == f"chatcmpl-{answer._request_id}"


def test_openai_reads_a_stream(chat: OpenAI) -> None:
    options = {"include_usage": True}
    with chat.chat.completions.create(model="b", messages=HI, stream=True, stream_options=options) as stream:
        chunks = list(stream)

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "fox 🦊 北"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 13
    assert len({chunk.id for chunk in chunks}) == 1


def test_openais_stream_helper_reads_two_calls_and_the_client_answers_them(chat: OpenAI) -> None:
    with chat.chat.completions.stream(model="b", messages=HI, tools=[CHAT_TOOL]) as stream:
        message = stream.get_final_completion().choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "5 °C"} for call in message.tool_calls]
    history = [*HI, message.model_dump(exclude={"parsed"}, exclude_none=True), *results]
    answer = chat.chat.completions.create(model="b", messages=history, tools=[CHAT_TOOL])

    assert [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls] == [
        ("call_1", "look", '{"n": 1}'),
        ("call_2", "look", "{}"),
    ]
    assert answer.choices[0].message.content == "seen: 5 °C"


def test_openai_reads_the_calls_of_a_document(chat: OpenAI) -> None:
    choice = chat.chat.completions.create(model="b", messages=HI, tools=[CHAT_TOOL]).choices[0]

    assert choice.finish_reason == "tool_calls"
    assert [call.id for call in choice.message.tool_calls] == ["call_1", "call_2"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("text", "error"),
    [("busy", openai.RateLimitError), ("long", openai.BadRequestError), ("refuse", openai.InternalServerError)],
)
def test_openai_raises_the_right_error(chat: OpenAI, stream: bool, text: str, error: type[openai.APIError]) -> None:
    with pytest.raises(error) as caught:
        chat.chat.completions.create(model="b", messages=[{"role": "user", "content": text}], stream=stream)

    assert type(caught.value) is error
    assert len(caught.value.response.headers["x-run-id"]) == 32


def test_openai_raises_the_right_error_for_its_own_faults(chat: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        chat.with_options(api_key="wrong").chat.completions.create(model="b", messages=HI)
    with pytest.raises(openai.BadRequestError) as bad:
        chat.chat.completions.create(model="b", messages=3)
    with pytest.raises(openai.NotFoundError):
        chat.models.retrieve("nobody")
    with pytest.raises(openai.APIStatusError) as big:
        chat.chat.completions.create(model="b", messages=[{"role": "user", "content": "x" * 200_000}])

    assert bad.value.param == "messages"
    assert big.value.status_code == 413


def test_openai_lists_the_models(chat: OpenAI) -> None:
    assert [model.id for model in chat.models.list()] == ["b"]
    assert chat.models.retrieve("b").id == "b"


def test_openai_sees_a_failure_in_midstream() -> None:
    model = Pausing(error=ModelBusy())
    with (
        serving(Brain("b", Flow(model=model))) as site,
        listening(site.app) as url,
        OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        stream = client.chat.completions.create(model="b", messages=HI, stream=True)
        begun = next(stream)
        model.may_go_on.set()
        with pytest.raises(openai.APIError, match="over its limits"):
            list(stream)

    assert begun.choices[0].delta.role == "assistant"


def test_async_openai_reads_both(url: str) -> None:
    async def ask() -> tuple[str | None, str]:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            whole = await client.chat.completions.create(model="b", messages=HI)
            stream = await client.chat.completions.create(model="b", messages=HI, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            return whole.choices[0].message.content, "".join(pieces)

    assert asyncio.run(ask()) == ("fox 🦊 北", "fox 🦊 北")


def test_anthropic_reads_a_document(claude: Anthropic) -> None:
    answer = claude.messages.create(model="b", max_tokens=9, messages=HI)

    assert (answer.content[0].text, answer.stop_reason) == ("fox 🦊 北", "end_turn")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 4)
    assert answer.id == f"msg_{answer._request_id}"


def test_anthropics_stream_helper_reads_a_stream(claude: Anthropic) -> None:
    with claude.messages.stream(model="b", max_tokens=9, messages=HI) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()

    assert text == "fox 🦊 北"
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 4)


@pytest.mark.parametrize("stream", [False, True])
def test_anthropic_reads_calls_and_answers_them(claude: Anthropic, stream: bool) -> None:
    asked = {"model": "b", "max_tokens": 9, "tools": [TOOL]}
    if stream:
        with claude.messages.stream(messages=HI, **asked) as opened:
            message = opened.get_final_message()
    else:
        message = claude.messages.create(messages=HI, **asked)
    calls = [block for block in message.content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "5 °C"} for call in calls]
    said = [
        block.model_dump(exclude_none=True, include={"type", "id", "name", "input", "text"})
        for block in message.content
    ]
    history = [*HI, {"role": "assistant", "content": said}, {"role": "user", "content": results}]
    answer = claude.messages.create(messages=history, **asked)

    assert message.stop_reason == "tool_use"
    assert [(call.id, call.name, call.input) for call in calls] == [
        ("call_1", "look", {"n": 1}),
        ("call_2", "look", {}),
    ]
    assert answer.content[0].text == "seen: 5 °C"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("busy", anthropic.RateLimitError),
        ("long", anthropic.BadRequestError),
        ("refuse", anthropic.InternalServerError),
    ],
)
def test_anthropic_raises_the_right_error(
    claude: Anthropic, stream: bool, text: str, error: type[anthropic.APIStatusError]
) -> None:
    with pytest.raises(error) as caught:
        claude.messages.create(model="b", max_tokens=9, messages=[{"role": "user", "content": text}], stream=stream)

    assert type(caught.value) is error
    assert len(caught.value.request_id) == 32


def test_anthropic_raises_the_right_error_for_its_own_faults(claude: Anthropic) -> None:
    with pytest.raises(anthropic.AuthenticationError):
        claude.with_options(api_key="wrong").messages.create(model="b", max_tokens=9, messages=HI)
    with pytest.raises(anthropic.BadRequestError, match="messages"):
        claude.messages.create(model="b", max_tokens=9, messages=3)
    with pytest.raises(anthropic.NotFoundError):
        claude.models.retrieve("nobody")
    with pytest.raises(anthropic.RequestTooLargeError):
        claude.messages.create(model="b", max_tokens=9, messages=[{"role": "user", "content": "x" * 200_000}])


def test_anthropic_lists_the_models_and_counts_tokens(claude: Anthropic) -> None:
    assert [model.id for model in claude.models.list(limit=1)] == ["b"]
    assert claude.models.retrieve("b").display_name == "b"
    assert claude.messages.count_tokens(model="b", messages=HI).input_tokens > 0


def test_async_anthropic_reads_both(url: str) -> None:
    async def ask() -> tuple[str, str]:
        async with AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
            whole = await client.messages.create(model="b", max_tokens=9, messages=HI)
            async with client.messages.stream(model="b", max_tokens=9, messages=HI) as stream:
                streamed = await stream.get_final_text()
            return whole.content[0].text, streamed

    assert asyncio.run(ask()) == ("fox 🦊 北", "fox 🦊 北")
