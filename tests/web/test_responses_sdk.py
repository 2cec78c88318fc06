"""OpenAI's SDK with the Responses API of a real server: what it accepts is right."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import ResponseCompletedEvent, ResponseFunctionToolCall, ResponseReasoningItem
from pydantic import BaseModel

from bigbrain.brain import Brain
from bigbrain.errors import ContextTooLong, ModelBusy, ModelRefused
from bigbrain.events import Event, replay
from bigbrain.flows import Flow
from bigbrain.messages import ForcedTool, Part, Request, Response, Text, Thinking, ToolCall, Usage
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from tests.web.site import Pausing, listening, serving

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}


class Place(BaseModel):
    city: str


class Scripted:
    """A model that calls the client's tools, tells what one said, answers in a shape, fails on demand, or greets."""

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        match request.messages[-1].text:
            case "busy":
                raise ModelBusy
            case "refuse":
                raise ModelRefused
            case "long":
                raise ContextTooLong
            case said:
                parts = tuple(self._parts(request, said))
        calls = any(isinstance(part, ToolCall) for part in parts)
        yield from replay(Response(parts=parts, stop="calls" if calls else "end", usage=Usage(9, 4)))

    def _parts(self, request: Request, said: str) -> Iterator[Part]:
        results = request.messages[-1].results
        if said == "think":
            yield Thinking("let me see")
        if results:
            yield Text(f"seen: {results[0].text}")
        elif request.schema:
            yield Text('{"city":"Oslo"}')
        elif said == "no":
            yield Text("I will not.", refusal=True)
        elif request.tools and request.tool_choice != "none":
            forced = request.tool_choice.name if isinstance(request.tool_choice, ForcedTool) else request.tools[0].name
            yield Text("Let me see.")
            yield ToolCall("call_1", forced, '{"n": 1}')
            if request.parallel_calls is not False:
                yield ToolCall("call_2", forced, "{}")
        else:
            yield Text("fox 🦊 北")


@pytest.fixture
def url() -> Iterator[str]:
    with serving(Brain("b", Flow(model=Scripted())), Settings(keys=("k",))) as site, listening(site.app) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        yield client


def test_a_whole_answer_is_read(client: OpenAI) -> None:
    got = client.responses.create(model="b", input="hi")

    assert (got.output_text, got.status, got.error) == ("fox 🦊 北", "completed", None)
    assert got.usage is not None
    assert got.usage.total_tokens == 13
    assert got.id == f"resp_{got._request_id}"


def test_a_stream_is_read(client: OpenAI) -> None:
    events = list(client.responses.create(model="b", input="hi", stream=True))
    last = events[-1]

    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "fox 🦊 北"
    assert isinstance(last, ResponseCompletedEvent)
    assert last.response.output_text == "fox 🦊 北"


def test_the_stream_helper_gathers_an_answer(client: OpenAI) -> None:
    with client.responses.stream(model="b", input="think", tools=[LOOK]) as stream:
        for _ in stream:
            pass
        got = stream.get_final_response()
    thought, message, *calls = got.output

    assert isinstance(thought, ResponseReasoningItem)
    assert thought.summary[0].text == "let me see"
    assert message.type == "message"
    assert [call.arguments for call in calls if isinstance(call, ResponseFunctionToolCall)] == ['{"n": 1}', "{}"]


def test_the_async_client_reads_both(url: str) -> None:
    async def both() -> tuple[str, str]:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
            whole = await client.responses.create(model="b", input="hi")
            async with client.responses.stream(model="b", input="hi") as stream:
                async for _ in stream:
                    pass
                return whole.output_text, (await stream.get_final_response()).output_text

    assert asyncio.run(both()) == ("fox 🦊 北", "fox 🦊 北")


def test_conformance_16_an_answer_is_parsed_as_a_type(client: OpenAI) -> None:
    got = client.responses.parse(model="b", input="where?", text_format=Place)
    with client.responses.stream(model="b", input="where?", text_format=Place) as stream:
        streamed = stream.get_final_response()

    assert got.output_parsed == streamed.output_parsed == Place(city="Oslo")


def test_conformance_15_calls_go_down_and_their_results_come_up(client: OpenAI) -> None:
    question = {"role": "user", "content": "look"}
    first = client.responses.create(model="b", input=[question], tools=[LOOK])
    calls = [item for item in first.output if isinstance(item, ResponseFunctionToolCall)]
    outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
    items = [item.model_dump(exclude_none=True) for item in first.output]
    sent = client.responses.create(model="b", input=[question, *items, *outputs], tools=[LOOK])
    named = client.responses.create(model="b", input=outputs, tools=[LOOK], previous_response_id=first.id)

    assert [(call.call_id, call.name) for call in calls] == [("call_1", "look"), ("call_2", "look")]
    assert sent.output_text == named.output_text == "seen: sunny"


def test_conformance_12_one_call_at_a_time_when_that_is_asked(client: OpenAI) -> None:
    got = client.responses.create(model="b", input="look", tools=[LOOK], parallel_tool_calls=False)

    assert [item.type for item in got.output] == ["message", "function_call"]


def test_conformance_13_a_tool_that_is_forced_is_called(client: OpenAI) -> None:
    other = {**LOOK, "name": "other"}
    choice = {"type": "function", "name": "other"}
    got = client.responses.create(model="b", input="look", tools=[LOOK, other], tool_choice=choice)

    assert {item.name for item in got.output if isinstance(item, ResponseFunctionToolCall)} == {"other"}


def test_conformance_14_no_tool_is_called_when_none_is_wanted(client: OpenAI) -> None:
    got = client.responses.create(model="b", input="look", tools=[LOOK], tool_choice="none")

    assert got.output_text == "fox 🦊 北"


def test_conformance_32_a_refusal_is_a_part_of_its_own(client: OpenAI) -> None:
    got = client.responses.create(model="b", input="no")
    streamed = list(client.responses.create(model="b", input="no", stream=True))

    assert got.output[0].content[0].refusal == "I will not."
    assert [event.refusal for event in streamed if event.type == "response.refusal.done"] == ["I will not."]


@pytest.mark.parametrize(
    ("said", "kind"),
    [("busy", openai.RateLimitError), ("refuse", openai.InternalServerError), ("long", openai.BadRequestError)],
)
@pytest.mark.parametrize("stream", [False, True])
def test_conformance_34_errors_come_as_the_sdks_classes(
    client: OpenAI, said: str, kind: type[openai.APIStatusError], stream: bool
) -> None:
    with pytest.raises(kind):
        client.responses.create(model="b", input=said, stream=stream)


def test_conformance_34_a_wrong_key_and_a_wrong_field_come_as_the_sdks_classes(client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").responses.create(model="b", input="x")
    with pytest.raises(openai.BadRequestError) as wrong:
        client.responses.create(model="b", input=[{"role": "wizard", "content": "x"}])
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_gone")

    assert wrong.value.param == "input[0].role"


def test_a_response_in_the_background_is_retrieved_stopped_and_deleted() -> None:
    model = Pausing()
    with (
        serving(Brain("b", Flow(model=model))) as site,
        listening(site.app) as url,
        OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        begun = client.responses.create(model="b", input="x", background=True)
        model.reached.wait(5)
        shown = client.responses.retrieve(begun.id)
        stopped = client.responses.cancel(begun.id)
        client.responses.delete(begun.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(begun.id)

    assert (begun.status, shown.status, stopped.status) == ("queued", "in_progress", "cancelled")


def test_a_stream_is_taken_up_where_it_was_left(client: OpenAI) -> None:
    events = list(client.responses.create(model="b", input="hi", stream=True))
    first = events[0].response
    with client.responses.retrieve(first.id, stream=True, starting_after=3) as rest:
        again = list(rest)
    with client.responses.stream(response_id=first.id, starting_after=2) as helper:
        helped = helper.get_final_response()

    assert [event.sequence_number for event in again] == [event.sequence_number for event in events[4:]]
    assert again[-1] == events[-1]
    assert helped.output_text == "fox 🦊 北"


def test_what_was_asked_is_listed(client: OpenAI) -> None:
    got = client.responses.create(model="b", input="hi")
    items = list(client.responses.input_items.list(got.id))

    assert [(item.type, item.content[0].text) for item in items] == [("message", "hi")]
    assert client.responses.input_tokens.count(model="b", input="hi").input_tokens > 0
