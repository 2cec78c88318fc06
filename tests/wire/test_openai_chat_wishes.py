"""What a request wishes of the form of its answer, told alike whole and streamed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from bigbrain.events import collect, replay
from bigbrain.messages import Request, Response, Text, ToolCall, ToolSpec, Usage, user
from bigbrain.wire import openai_chat, sse
from bigbrain.wire.openai_chat import read_events, read_request, read_response, write_request, write_response
from tests.contracts.dialect import stream, wired

SPEC = {"name": "w", "parameters": {"type": "object"}}
CALLS = Response("c", "m", 1, (Text("See."), ToolCall("c1", "w", '{"n":1}'), ToolCall("c2", "w", "{}")), "calls")


def asked(**fields: Any) -> Request:
    return read_request({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields})


def chunks(response: Response, request: Request) -> list[dict[str, Any]]:
    frames = sse.read(stream(openai_chat, replay(response), request))
    return [msgspec.json.decode(frame.data) for frame in frames if frame.data != b"[DONE]"]


def deltas(told: Iterable[dict[str, Any]], index: int = 0) -> list[dict[str, Any]]:
    return [choice for chunk in told for choice in chunk["choices"] if choice["index"] == index]


def test_n_choices_are_the_one_answer_n_times_and_paid_once() -> None:
    response = Response("c", "m", 1, (Text("hello"),), "end", usage=Usage(7, 3))
    whole = write_response(response, asked(n=3))
    told = chunks(response, asked(n=3, stream=True, stream_options={"include_usage": True}))

    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    assert {choice["message"]["content"] for choice in whole["choices"]} == {"hello"}
    assert whole["usage"]["completion_tokens"] == 3
    for index in range(3):
        ours = deltas(told, index)
        assert ours[0]["delta"]["role"] == "assistant"
        assert "".join(choice["delta"].get("content") or "" for choice in ours) == "hello"
        assert [choice["finish_reason"] for choice in ours if choice["finish_reason"]] == ["stop"]
    assert [chunk["usage"]["completion_tokens"] for chunk in told if chunk.get("usage")] == [3]


def test_who_sends_functions_is_answered_with_one_function_call() -> None:
    request = asked(functions=[SPEC])
    choice = write_response(CALLS, request)["choices"][0]

    assert request.parallel_calls is False
    assert request.tools == (ToolSpec("w", schema={"type": "object"}),)
    assert choice["message"]["function_call"] == {"name": "w", "arguments": '{"n":1}'}
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "function_call"


def test_who_sends_functions_gets_the_same_in_a_stream() -> None:
    told = deltas(chunks(CALLS, asked(functions=[SPEC], stream=True)))
    called = [choice["delta"]["function_call"] for choice in told if "function_call" in choice["delta"]]

    assert called[0] == {"name": "w", "arguments": ""}
    assert "".join(piece["arguments"] for piece in called) == '{"n":1}'
    assert told[-1]["finish_reason"] == "function_call"
    assert not any("tool_calls" in choice["delta"] for choice in told)


def test_the_deprecated_form_is_not_sent_on() -> None:
    body = write_request(asked(functions=[SPEC]))

    assert "functions" not in body
    assert body["tools"] == [{"type": "function", "function": SPEC}]
    assert body["parallel_tool_calls"] is False


@pytest.mark.parametrize("field", ["content", "refusal"])
def test_log_probabilities_pass_whole_and_streamed(field: str) -> None:
    tokens = [{"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": []} for token in ("he", "llo")]
    weights = {"content": None, "refusal": None, field: tokens}
    message = {"role": "assistant", "content": None, "refusal": None, field: "hello"}
    choice = {"index": 0, "message": message, "logprobs": weights, "finish_reason": "stop"}
    sent = [
        {"choices": [{"index": 0, "delta": {field: token["token"]}, "logprobs": {field: [token]}}]} for token in tokens
    ]
    frames = [*(b"data: %b\n\n" % msgspec.json.encode(chunk) for chunk in sent), b"data: [DONE]\n\n"]

    whole = read_response({"id": "c", "choices": [choice]})
    streamed = collect(read_events(sse.read(frames)))

    for response in (whole, streamed):
        assert write_response(response, asked(logprobs=True))["choices"][0]["logprobs"] == weights
        told = [choice["logprobs"] for choice in deltas(chunks(response, asked(logprobs=True, stream=True)))]
        assert [each for each in told if each] == [weights]


def test_without_any_there_are_no_log_probabilities() -> None:
    response = Response("c", "m", 1, (Text("hello"),), "end")

    assert write_response(response, asked(logprobs=True))["choices"][0]["logprobs"] is None


def test_metadata_comes_back() -> None:
    response = Response("c", "m", 1, (Text("hello"),), "end")

    assert write_response(response, asked(metadata={"a": "b"}))["metadata"] == {"a": "b"}
    assert "metadata" not in wired(write_response(response, Request("m", (user("hi"),))))
