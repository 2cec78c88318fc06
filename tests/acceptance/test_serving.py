"""Acceptance 8.9 and 8.10: a brain behind its web tier, and tools over the wire."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import pytest
from werkzeug.test import TestResponse

from bigbrain import Brain, Chat, FixedModel, Flow, Request, ToolCall, Turn, Usage, agent, respond
from bigbrain.errors import ModelBusy, WiringError
from bigbrain.messages import ForcedTool
from bigbrain.testing import Breaks, Says, ScriptedModel
from bigbrain.tools import tool
from bigbrain.wire import Frame, sse
from tests.acceptance.making import PATIENCE, gated, saying
from tests.web.site import BOTH, CHAT, MESSAGES, asking, serving

LOOK = {"type": "object", "properties": {"n": {"type": "integer"}}}
STAGES = saying("one") >> respond >> Flow(model=FixedModel("two")) >> respond


def frames(response: TestResponse) -> list[Frame]:
    return list(sse.read([response.data]))


def posted(brain: Brain, path: str, **fields: Any) -> TestResponse:
    with serving(brain) as site:
        response = site.client.post(path, json=asking(**fields))
        response.get_data()
        return response


def text_of(path: str, response: TestResponse) -> str:
    document = response.json
    assert document is not None
    if path == CHAT:
        return document["choices"][0]["message"]["content"]
    return "".join(block.get("text", "") for block in document["content"])


def noting(seen: list[Request]) -> Brain:
    """A brain whose handler notes what the client asked."""

    @agent
    def note(turn: Turn, chat: Chat) -> None:
        seen.append(turn.request)
        turn.reply("noted")

    return Brain("b", Flow(note))


# 8.9


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("flow", [saying() >> respond, saying()])
def test_an_empty_stage_answers_with_nothing_and_not_with_the_clients_own_text(path: str, flow: Flow) -> None:
    """Inverted for a brain without any stage: the seed then gives the client its own text back."""
    assert text_of(path, posted(Brain("b", flow), path, text="my own words")) == ""


@pytest.mark.parametrize("path", BOTH)
def test_two_stages_are_joined_in_a_whole_answer(path: str) -> None:
    assert text_of(path, posted(Brain("b", STAGES), path)) == "one\n\ntwo"


def test_an_openai_stream_has_a_delta_and_done() -> None:
    data = [frame.data for frame in frames(posted(Brain("b", Flow(model=FixedModel("hi"))), CHAT, stream=True))]

    assert "hi" in [json.loads(line)["choices"][0]["delta"].get("content") for line in data[:-1]]
    assert data[-1] == b"[DONE]"


def test_an_anthropic_document_has_its_shape() -> None:
    response = posted(Brain("b", Flow(model=FixedModel("hi"))), MESSAGES)

    assert response.status_code == 200
    document = response.json
    assert document is not None
    assert (document["type"], document["role"], document["stop_reason"]) == ("message", "assistant", "end_turn")
    assert document["content"] == [{"type": "text", "text": "hi"}]
    assert set(document["usage"]) >= {"input_tokens", "output_tokens"}


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_a_flows_error_is_logged_whatever_the_protocol(
    path: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    @agent
    def fail(turn: Turn, chat: Chat) -> None:
        raise ValueError("the fuse is gone")

    with caplog.at_level(logging.WARNING):
        response = posted(Brain("b", Flow(fail)), path, stream=stream)

    assert response.status_code == 500
    assert "the fuse is gone" in caplog.text
    assert response.headers["X-Run-Id"] in caplog.text


def test_a_brain_that_is_faulty_is_not_served() -> None:
    with pytest.raises(WiringError, match="has no model"), serving(Brain("b", Flow())):
        pass


def test_renaming_the_default_changes_what_is_told_and_neither_routing_nor_a_named_flow() -> None:
    for name in ("brain", "renamed"):
        brain = Brain(name, Flow(model=FixedModel("default")))
        brain.add_flow(Flow(model=FixedModel("named")), name="acme/coder")
        with serving(brain) as site:
            listed = [one["id"] for one in site.client.get("/v1/models").json["data"]]
            answers = [site.client.post(CHAT, json=asking(model=model)).json for model in ("gpt-9", "acme/coder")]

        assert listed == [name, "acme/coder"]
        assert [one["model"] for one in answers] == [name, "acme/coder"]
        assert [one["choices"][0]["message"]["content"] for one in answers] == ["default", "named"]


def test_the_name_of_the_brain_makes_no_difference_to_which_flow_is_the_default() -> None:
    for name in ("brain", "renamed"):
        brain = Brain(name)
        brain.add_flow(Flow(model=FixedModel("unnamed")))
        brain.add_flow(Flow(model=FixedModel("last unnamed")))
        brain.add_flow(Flow(model=FixedModel("named")), name="x")

        assert text_of(CHAT, posted(brain, CHAT, model="gpt-9")) == "last unnamed"


def test_openais_parameters_reach_the_handler() -> None:
    seen: list[Request] = []
    posted(noting(seen), CHAT, max_completion_tokens=7, temperature=0.5, top_p=0.9, stop="END", reasoning_effort="low")

    [asked] = seen
    assert (asked.model, asked.max_tokens, asked.temperature, asked.top_p) == ("b", 7, 0.5, 0.9)
    assert (asked.stop, asked.think) == (("END",), "low")


def test_openais_older_token_limit_still_works() -> None:
    seen: list[Request] = []
    posted(noting(seen), CHAT, max_tokens=42)

    assert seen[0].max_tokens == 42


@pytest.mark.parametrize(
    ("thinking", "think"),
    [({"type": "enabled", "budget_tokens": 2048}, 2048), ({"type": "disabled"}, False), (None, None)],
)
def test_anthropics_thinking_reaches_the_handler_and_stays_unset_when_it_is_absent(thinking: Any, think: Any) -> None:
    """Changed: the budget is kept, where the seed knows only on and off."""
    seen: list[Request] = []
    fields = {"thinking": thinking} if thinking else {}
    posted(noting(seen), MESSAGES, **fields, top_k=5, stop_sequences=["END"])

    assert (seen[0].think, seen[0].top_k, seen[0].stop) == (think, 5, ("END",))


def test_openai_has_the_models_words_live() -> None:
    heard = threading.Event()
    model = ScriptedModel(Says(chunks=gated("begun", heard, " and done")()))
    with serving(Brain("b", Flow(model=model))) as site:
        chunks = b""
        for chunk in site.client.post(CHAT, json=asking(stream=True)).response:
            chunks += chunk
            if b"begun" in chunks:
                heard.set()

    deltas = [json.loads(frame.data)["choices"][0]["delta"] for frame in sse.read([chunks]) if frame.data != b"[DONE]"]
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["begun", " and done"]


def test_openai_gets_both_stages_deltas_and_exactly_one_end() -> None:
    data = [frame.data for frame in frames(posted(Brain("b", STAGES), CHAT, stream=True))]
    choices = [json.loads(line)["choices"][0] for line in data if line != b"[DONE]"]

    assert "".join(choice["delta"].get("content") or "" for choice in choices) == "one\n\ntwo"
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
    assert data.count(b"[DONE]") == 1


def test_anthropic_gets_both_stages_and_exactly_one_message_stop() -> None:
    told = frames(posted(Brain("b", STAGES), MESSAGES, stream=True))
    deltas = [json.loads(frame.data)["delta"] for frame in told if frame.event == "content_block_delta"]

    assert "".join(delta["text"] for delta in deltas) == "one\n\ntwo"
    assert [frame.event for frame in told].count("message_stop") == 1
    assert told[-1].event == "message_stop"


def test_anthropics_open_block_is_closed_before_an_error_in_mid_stream() -> None:
    begun = threading.Event()

    @agent
    def breaks(turn: Turn, chat: Chat) -> None:
        with turn.stream() as stream:  # type: ignore[union-attr]
            stream.write("begun")
            # so late that the client has its 200, and the failure is a frame
            assert begun.wait(PATIENCE)
        raise ModelBusy

    with serving(Brain("b", Flow(breaks))) as site:
        data = b""
        for chunk in site.client.post(MESSAGES, json=asking(stream=True)).response:
            data += chunk
            if b"begun" in data:
                begun.set()
    told = [frame.event for frame in sse.read([data]) if frame.event != "ping"]

    assert told == ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "error"]


@pytest.mark.parametrize("path", BOTH)
def test_a_client_that_does_not_stream_gets_one_document(path: str) -> None:
    response = posted(Brain("b", STAGES), path, stream=False)

    assert response.mimetype == "application/json"
    assert "Content-Length" in response.headers


def test_two_flows_of_one_name_are_told() -> None:
    brain = Brain("b", Flow(model=FixedModel("x")))
    brain.add_flow(Flow(model=FixedModel("first")), name="twice")
    brain.add_flow(Flow(model=FixedModel("second")), name="twice")

    assert any("twice" in fault for fault in brain.faults())


@pytest.mark.parametrize(("options", "usages"), [({}, 0), ({"stream_options": {"include_usage": True}}, 1)])
def test_openais_stream_has_usage_only_when_it_was_asked_for(options: dict[str, Any], usages: int) -> None:
    model = ScriptedModel(Says("hi", usage=Usage(7, 3)))
    data = [frame.data for frame in frames(posted(Brain("b", Flow(model=model)), CHAT, stream=True, **options))]
    told = [one["usage"] for one in map(json.loads, data[:-1]) if one.get("usage")]

    assert [usage["total_tokens"] for usage in told] == [10] * usages


# 8.10

CALL = ToolCall("call_1", "look", '{"n":1}')


def tools_of(path: str) -> dict[str, Any]:
    if path == CHAT:
        function = {"name": "look", "description": "sees", "parameters": LOOK}
        choice = {"type": "function", "function": {"name": "look"}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    return {
        "tools": [{"name": "look", "description": "sees", "input_schema": LOOK}],
        "tool_choice": {"type": "tool", "name": "look"},
    }


def calls_of(path: str, response: TestResponse) -> list[tuple[str, str, Any]]:
    document = response.json
    assert document is not None
    if path == CHAT:
        calls = document["choices"][0]["message"].get("tool_calls") or []
        return [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
    blocks = [block for block in document["content"] if block["type"] == "tool_use"]
    return [(block["id"], block["name"], block["input"]) for block in blocks]


def history_of(path: str) -> list[dict[str, Any]]:
    """A conversation in which the client has answered the call."""
    if path == CHAT:
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}}
        return [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "let me see", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a fox"},
        ]
    use = {"type": "tool_use", "id": "call_1", "name": "look", "input": {"n": 1}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "a fox"}
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "let me see"}, use]},
        {"role": "user", "content": [result]},
    ]


@pytest.mark.parametrize("path", BOTH)
def test_a_bare_agent_is_transparent_tools_and_choice_go_up_calls_come_down_beside_the_text(path: str) -> None:
    model = ScriptedModel(Says("let me see", calls=(CALL,)))
    response = posted(Brain("b", Flow(model=model)), path, **tools_of(path))

    assert [(one.name, one.description, one.schema) for one in model.last.tools] == [("look", "sees", LOOK)]
    assert model.last.tool_choice == ForcedTool("look")
    assert text_of(path, response) == "let me see"
    assert calls_of(path, response) == [("call_1", "look", {"n": 1})]


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_a_transcript_with_results_is_completed_and_the_answered_call_not_sent_again(path: str, stream: bool) -> None:
    model = ScriptedModel("it is a fox")
    fields = {**tools_of(path), "tool_choice": "auto" if path == CHAT else {"type": "auto"}}
    response = posted(Brain("b", Flow(model=model)), path, messages=history_of(path), stream=stream, **fields)

    assert [(one.call_id, one.text) for one in model.last.messages[-1].results] == [("call_1", "a fox")]
    assert b" fox" in response.data
    assert b"call_1" not in response.data
    if not stream:
        assert (text_of(path, response), calls_of(path, response)) == ("it is a fox", [])


@pytest.mark.parametrize("path", BOTH)
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_is_resolved_in_the_brain_never_reaches_the_client(path: str, stream: bool) -> None:
    @tool
    def look(n: int) -> str:
        """Sees."""
        return "a secret fox"

    @agent
    def resolves(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.resolve(*turn.messages, tools=[look]))

    model = ScriptedModel(Says(calls=(CALL,)), "seen")
    response = posted(Brain("b", Flow(resolves, model=model) >> respond), path, stream=stream)

    assert model.last.messages[-1].results[0].text == "a secret fox"
    assert b"seen" in response.data
    assert b"call_1" not in response.data
    assert b"a secret fox" not in response.data


@pytest.mark.parametrize("path", BOTH)
def test_streamed_calls_follow_the_text(path: str) -> None:
    model = ScriptedModel(Says("let me see", calls=(CALL,)))
    response = posted(Brain("b", Flow(model=model)), path, stream=True, **tools_of(path))

    assert b"let" in response.data
    assert response.data.rindex(b" see") < response.data.index(b"call_1")
    assert (b'"tool_calls"' if path == CHAT else b'"tool_use"') in response.data


@pytest.mark.parametrize("path", BOTH)
def test_a_stream_that_breaks_off_has_an_error_and_no_ending(path: str) -> None:
    """Inverted: where the seed's handlers read a reply to its end, a text that broke off passes for a whole one."""

    @agent
    def reads(turn: Turn, chat: Chat) -> None:
        turn.reply(chat.ask(turn.last).text)

    model = ScriptedModel(Breaks("so far"))
    response = posted(Brain("b", Flow(reads, model=model) >> respond), path, stream=True)

    assert response.status_code == 502
    assert b"so far" not in response.data
