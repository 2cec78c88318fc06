"""Thinking that comes from a model of one dialect goes to a client of any, and back unchanged to the model."""

from __future__ import annotations

from typing import Any

import pytest

from bigbrain.events import collect, replay
from bigbrain.messages import JSON, Message, Request, Response, Text, Thinking, user
from bigbrain.wire import Dialect, anthropic, openai_chat, sse
from tests.contracts.dialect import stream, wired

ASKED = Request("m", (user("hi"),), stream=True)
SIGNED = Thinking("plan b", {"anthropic": {"signature": "QUJDREVG"}})
SILENT = Thinking("", {"anthropic": {"signature": "QUJD"}})
REDACTED = Thinking("", {"anthropic": {"redacted": "eHg="}})
OPEN = Thinking("hm", {"openai": {"field": "reasoning_content"}})
NAMED_OTHERWISE = Thinking("hm", {"openai": {"field": "reasoning"}})
ENCRYPTED = Thinking("", {"openai": {"encrypted_content": "gAAA", "id": "rs_1"}})
KEPT_BY_CHAT = [SIGNED, SILENT, REDACTED, OPEN, ENCRYPTED]
ALL = [*KEPT_BY_CHAT, NAMED_OTHERWISE]


def told(dialect: Dialect, response: Response, *, streamed: bool) -> Response:
    """The answer as the dialect's client has it."""
    if streamed:
        return collect(dialect.read_events(sse.read(stream(dialect, replay(response), ASKED))))
    return dialect.read_response(wired(dialect.write_response(response, ASKED)))


def sent_back(dialect: Dialect, message: JSON) -> tuple[Any, ...]:
    """The parts of the client's next request that the model thought."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, message]}
    (_, answer) = dialect.read_request(wired(body)).messages
    return tuple(part for part in answer.parts if isinstance(part, Thinking))


@pytest.mark.parametrize("thinking", ALL)
def test_a_messages_client_gives_every_kind_back_as_the_model_gave_it(thinking: Thinking) -> None:
    response = Response("a", "m", 1, (thinking, Text("ok")), "end")
    message = {"role": "assistant", "content": anthropic.write_response(response, ASKED)["content"]}

    assert sent_back(anthropic, message) == (thinking,)


@pytest.mark.parametrize("thinking", ALL)
def test_a_messages_stream_has_the_same_blocks_as_the_document(thinking: Thinking) -> None:
    response = Response("a", "m", 0, (thinking, Text("ok")), "end")

    assert told(anthropic, response, streamed=True).parts == told(anthropic, response, streamed=False).parts
    assert told(anthropic, response, streamed=True).parts == response.parts


@pytest.mark.parametrize("thinking", KEPT_BY_CHAT)
def test_a_chat_client_gives_back_what_the_model_has_signed_or_encrypted(thinking: Thinking) -> None:
    response = Response("a", "m", 1, (thinking, Text("ok")), "end")
    message = openai_chat.write_response(response, ASKED)["choices"][0]["message"]

    assert sent_back(openai_chat, message) == (thinking,)


def test_several_signed_thoughts_keep_their_order_and_their_signatures() -> None:
    thoughts = (SIGNED, REDACTED, Thinking("more", {"anthropic": {"signature": "eHl6"}}))
    message = openai_chat.write_response(Response("a", "m", 1, thoughts, "end"), ASKED)["choices"][0]["message"]

    assert [detail["index"] for detail in message["reasoning_details"]] == [0, 1, 2]
    assert sent_back(openai_chat, message) == thoughts


def test_what_anthropic_has_signed_goes_up_again_byte_for_byte() -> None:
    history = (user("hi"), Message("assistant", (SIGNED, REDACTED, Text("ok"))), user("go"))
    blocks = anthropic.write_request(Request("m", history))["messages"][1]["content"]

    assert blocks[:2] == [
        {"type": "thinking", "thinking": "plan b", "signature": "QUJDREVG"},
        {"type": "redacted_thinking", "data": "eHg="},
    ]


def test_open_thoughts_go_up_again_where_they_came_from_and_nowhere_else() -> None:
    history = (user("hi"), Message("assistant", (OPEN, Text("ok"))), user("go"))

    assert openai_chat.write_request(Request("m", history))["messages"][1]["reasoning_content"] == "hm"
    assert anthropic.write_request(Request("m", history))["messages"][1]["content"] == [{"type": "text", "text": "ok"}]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_wants_to_see_no_thoughts_gets_their_signature_only(streamed: bool) -> None:
    request = Request("m", (user("hi"),), extra={"anthropic": {"thinking": {"type": "adaptive", "display": "omitted"}}})
    response = Response("a", "m", 0, (SIGNED, Text("ok")), "end")
    if streamed:
        seen = collect(anthropic.read_events(sse.read(stream(anthropic, replay(response), request))))
    else:
        seen = anthropic.read_response(wired(anthropic.write_response(response, request)))

    assert seen.parts == (Thinking("", SIGNED.vendor), Text("ok"))


@pytest.mark.parametrize(
    "signature", ["bigbrain.", "bigbrain.%%%", "bigbrain.bnVsbA==", "bigbrain.eyJhbnRocm9waWMiOnt9fQ=="]
)
def test_a_forged_signature_of_ours_carries_nothing(signature: str) -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": signature}

    assert sent_back(anthropic, {"role": "assistant", "content": [block]}) == (Thinking("hm"),)
