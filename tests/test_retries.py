"""By what a request is known to be one that was sent before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import fakeredis
import pytest
from msgspec.structs import replace

from bigbrain.messages import Message, Request, Text, ToolCall, ToolResult, user
from bigbrain.retries import COUNT, SESSION, Mark, Retries, Trust, mark_of, patience_of

ASKED = Request("b", (user("hi"),))
TURN = replace(ASKED, extra={"openai": {"client_metadata": {"turn_id": "t1", "thread_id": "x"}}})
ROUND = (
    Message("assistant", (ToolCall("c1", "w", "{}"),)),
    Message("tool", (ToolResult("c1", (Text("ok"),)),)),
)


def of(headers: dict[str, str]) -> Callable[[str], str]:
    return lambda name: headers.get(name, "")


@pytest.mark.parametrize(
    ("headers", "trust"), [({}, "guess"), ({COUNT: "0"}, "guess"), ({COUNT: "1"}, "sure"), ({COUNT: "2"}, "sure")]
)
def test_an_sdk_that_counts_its_tries_is_believed(headers: dict[str, str], trust: Trust) -> None:
    assert mark_of(ASKED, "b", of(headers)).trust == trust
    assert mark_of(ASKED, "b", of(headers)).digest == mark_of(ASKED, "b", of({})).digest


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"stream": True}, True),
        ({"extra": {"anthropic": {"thinking": {"type": "adaptive", "display": "omitted"}}}}, True),
        ({"think": True}, True),
        ({"max_tokens": 21333}, True),
        ({"messages": (user("ho"),)}, False),
        ({"messages": (user("hi"), Message("assistant", (Text("well"),)))}, False),
    ],
)
def test_claude_code_repeats_itself_in_other_words(fields: dict[str, Any], same: bool) -> None:
    headers = {SESSION: "s1"}
    first, again = mark_of(ASKED, "b", of(headers)), mark_of(replace(ASKED, **fields), "b", of(headers))

    assert (first == again) is same
    assert first.trust == "likely"
    assert mark_of(ASKED, "b", of({SESSION: "s2"})) != first


def test_codex_appends_what_it_has_got_until_its_tools_have_answered() -> None:
    grown = replace(TURN, messages=(*TURN.messages, Message("assistant", (Text("Let me"), ToolCall("c1", "w")))))
    answered = replace(TURN, messages=(*TURN.messages, *ROUND))

    assert mark_of(TURN, "b", of({})) == mark_of(grown, "b", of({}))
    assert mark_of(TURN, "b", of({})).trust == "likely"
    assert mark_of(answered, "b", of({})) != mark_of(TURN, "b", of({}))


@pytest.mark.parametrize(
    ("trust", "status", "lost", "joins"),
    [
        ("sure", "running", False, True),
        ("sure", "failed", False, True),
        ("likely", "running", False, False),
        ("likely", "failed", True, True),
        ("guess", "running", False, False),
        ("guess", "failed", True, False),
        ("guess", "queued", True, True),
    ],
)
def test_less_sure_is_joined_less_often(trust: Trust, status: str, lost: bool, joins: bool) -> None:
    client = fakeredis.FakeRedis()
    retries, mark = Retries(client), Mark("d" * 64, trust)
    client.hset("bb:run:a:1", "status", status)
    retries.earlier(mark, "a", "a:1")
    if lost:
        retries.lost("a:1")

    assert (retries.earlier(mark, "a", "a:2") == "a:1") is joins


def test_of_two_that_ask_the_same_whoever_lost_its_answer_finds_its_own_run() -> None:
    client = fakeredis.FakeRedis()
    retries, first, again = Retries(client), Mark("d" * 64, "guess"), Mark("d" * 64, "sure")
    for run_id in ("a:1", "a:2"):
        client.hset(f"bb:run:{run_id}", "status", "running")
        assert retries.earlier(first, "a", run_id) is None

    retries.lost("a:1", "a", first)

    assert retries.earlier(again, "a", "a:3") == "a:1"


def test_a_run_that_is_being_stopped_is_no_guess() -> None:
    client = fakeredis.FakeRedis()
    retries, mark = Retries(client), Mark("d" * 64, "guess")
    client.hset("bb:run:a:1", mapping={"status": "running", "stop": "1"})
    retries.earlier(mark, "a", "a:1")
    retries.lost("a:1")

    assert retries.earlier(mark, "a", "a:2") is None


@pytest.mark.parametrize(("seconds", "joins"), [(290, True), (310, False)])
def test_a_run_is_asked_for_again_until_minutes_after_its_end(seconds: int, joins: bool) -> None:
    client = fakeredis.FakeRedis()
    retries, mark = Retries(client), Mark("d" * 64, "sure")
    retries.earlier(mark, "a", "a:1")
    ended = (client.time()[0] - seconds) * 1000
    client.hset("bb:run:a:1", mapping={"status": "done", "ended": ended})

    assert (retries.earlier(mark, "a", "a:2") == "a:1") is joins


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-stainless-timeout": "600"}, 600.0),
        ({"x-stainless-timeout": "600", "x-stainless-read-timeout": "20.5"}, 20.5),
        ({}, math.inf),
        ({"x-stainless-timeout": "0"}, math.inf),
        ({"x-stainless-timeout": "NOT_GIVEN"}, math.inf),
        ({"x-stainless-timeout": "nan"}, math.inf),
    ],
)
def test_an_sdk_says_how_long_it_waits(headers: dict[str, str], seconds: float) -> None:
    assert patience_of(of(headers)) == seconds


def test_a_request_is_forgotten_after_an_hour_and_two_scopes_never_meet() -> None:
    client = fakeredis.FakeRedis()
    retries, mark = Retries(client), Mark("d" * 64, "sure")
    client.hset("bb:run:a:1", "status", "running")

    assert retries.earlier(mark, "a", "a:1") is None
    assert retries.earlier(mark, "b", "b:2") is None
    assert retries.earlier(mark, "a", "a:3") == "a:1"
    assert retries.earlier(mark, "a", "a:4") == "a:1"
    assert all(0 < client.ttl(key) <= 3600 for key in client.scan_iter("bb:asked:*"))


def test_a_run_that_is_gone_is_not_asked_for_again() -> None:
    client = fakeredis.FakeRedis()
    retries, mark = Retries(client), Mark("d" * 64, "sure")

    assert retries.earlier(mark, "a", "a:1") is None
    assert retries.earlier(mark, "a", "a:2") is None
