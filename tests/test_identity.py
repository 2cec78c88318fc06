"""Ids of runs: which a client may choose, how they are kept apart, when two requests are the same."""

from __future__ import annotations

from hashlib import sha256

import pytest
from msgspec.structs import replace

from bigbrain.identity import OPEN, Identity, bare, fingerprint, is_run_id, scope_of
from bigbrain.messages import Request, user
from bigbrain.wire import anthropic, openai_chat

ASKED = Request(model="b", messages=(user("hi"),))


@pytest.mark.parametrize(
    "text", ["r-7", "a", "7", "a.b.c", "_", ":x", "-", "A" * 128, "8e03978e-40d5-43dd-bc93-6894a57f9324"]
)
def test_ids_that_a_client_may_choose(text: str) -> None:
    assert is_run_id(text)
    assert bare(Identity(text).key) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        ".a",
        "a..b",
        "a/b",
        "a b",
        "a\n",
        "a\\n",
        "\x00",
        "A" * 129,
        "x" * 5000,
        "🦊",
        "ä",
        "a~b",
        "a*",
        "%2e",
    ],
)
def test_ids_that_it_may_not(text: str) -> None:
    assert not is_run_id(text)


def test_the_same_id_in_two_scopes_is_two_runs() -> None:
    one, other = (scope_of(sha256(key).digest()) for key in (b"one", b"other"))

    assert len(one) == 12
    assert len({Identity("r", scope).key for scope in (one, other, OPEN)}) == 3


def test_no_id_is_the_place_of_a_member_of_another_run() -> None:
    member_of_r = f"{Identity('r').key}.1.0"

    assert Identity("r.1.0").key != member_of_r


def test_the_same_question_has_one_fingerprint_however_it_is_delivered() -> None:
    assert len(fingerprint(ASKED, "b")) == 64
    assert fingerprint(replace(ASKED, stream=True), "b") == fingerprint(ASKED, "b")


def test_a_question_in_either_protocol_has_one_fingerprint() -> None:
    body = {"model": "b", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
    asked = [openai_chat.read_request(body), openai_chat.read_request(streamed), anthropic.read_request(body)]

    assert len({fingerprint(request, "b") for request in asked}) == 1


@pytest.mark.parametrize(
    ("request_", "flow"),
    [
        (ASKED, "other"),
        (replace(ASKED, messages=(user("ho"),)), "b"),
        (replace(ASKED, model="c"), "b"),
        (replace(ASKED, temperature=0.0), "b"),
        (replace(ASKED, extra={"openai": {"seed": 1}}), "b"),
    ],
)
def test_another_question_or_another_flow_has_another(request_: Request, flow: str) -> None:
    assert fingerprint(request_, flow) != fingerprint(ASKED, "b")
