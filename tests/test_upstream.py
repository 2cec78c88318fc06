from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.upstream import Upstream
from tests.upstream_answers import Answer, words

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
HI = [{"role": "user", "content": "hi there"}]


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


def post(up: Upstream, path: str, model: str, **body: Any) -> httpx2.Response:
    return httpx2.post(up.url + path, json={"model": model, "messages": HI, "max_tokens": 9, **body}, timeout=5)


def openai_client(up: Upstream) -> openai.OpenAI:
    return openai.OpenAI(base_url=up.openai, api_key="k1", max_retries=0)


def anthropic_client(up: Upstream) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=up.anthropic, api_key="k2", max_retries=0)


def test_openais_own_client_reads_a_stream(up: Upstream) -> None:
    with openai_client(up) as client:
        stream = client.chat.completions.create(
            model="tokens:4", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "w0 w1 w2 w3 "
    assert chunks[-1].usage.total_tokens == 11


def test_openais_own_client_reads_a_document_with_calls(up: Upstream) -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("a", "b")]
    with openai_client(up) as client:
        answer = client.chat.completions.create(model="tools:2", messages=HI, tools=tools)

    assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["a", "b"]
    assert answer.choices[0].finish_reason == "tool_calls"


def test_anthropics_own_client_reads_a_stream(up: Upstream) -> None:
    with (
        anthropic_client(up) as client,
        client.messages.stream(model="reasoning", messages=HI, max_tokens=9) as stream,
    ):
        message = stream.get_final_message()

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[0].thinking == "let me see"
    assert message.usage.input_tokens == 7


def test_anthropics_own_client_reads_streamed_calls(up: Upstream) -> None:
    tools = [{"name": "w", "input_schema": {"type": "object"}}]
    with (
        anthropic_client(up) as client,
        client.messages.stream(model="tools", messages=HI, max_tokens=9, tools=tools) as stream,
    ):
        message = stream.get_final_message()

    assert (message.content[0].name, message.content[0].input) == ("w", {"n": 0})
    assert message.stop_reason == "tool_use"


def test_requests_are_recorded_with_their_keys(up: Upstream) -> None:
    with openai_client(up) as one, anthropic_client(up) as other:
        one.chat.completions.create(model="echo", messages=HI)
        other.messages.create(model="echo", messages=HI, max_tokens=9)

    assert [(request.path, request.key) for request in up.requests] == [(CHAT, "k1"), (MESSAGES, "k2")]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_an_echo_answers_with_the_last_user_text(up: Upstream, path: str) -> None:
    assert "hi there" in post(up, path, "echo").text


def test_scripted_answers_come_first_and_once(up: Upstream) -> None:
    up.script(Answer(("one",)), Answer(status=503))

    assert "one" in post(up, CHAT, "text:three").text
    assert post(up, CHAT, "text:three").status_code == 503
    assert "three" in post(up, CHAT, "text:three").text


def test_a_refusal_has_its_headers_and_its_providers_shape(up: Upstream) -> None:
    refused = post(up, MESSAGES, "status:429:retry-after=2")

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert post(up, CHAT, "too-long").json()["error"]["code"] == "context_length_exceeded"


def test_failing_names_recover_and_count_apart(up: Upstream) -> None:
    got = [post(up, CHAT, name).status_code for name in ("fail:2:status:500",) * 3 + ("fail:2:status:500#b",)]

    assert got == [500, 500, 200, 500]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_reset_connection_is_reset(up: Upstream, path: str) -> None:
    with pytest.raises(httpx2.ReadError):
        post(up, path, "reset:before")
    with pytest.raises(httpx2.ReadError):
        post(up, path, "reset:after:3", stream=True)

    assert up.until(lambda stats: stats.broken == 2)


@pytest.mark.parametrize(("model", "clean"), [("truncate:3", True), ("cut:3", False)])
def test_a_truncated_body_ends_cleanly_and_a_cut_one_does_not(up: Upstream, model: str, clean: bool) -> None:
    try:
        text = post(up, MESSAGES, model, stream=True).text
    except httpx2.RemoteProtocolError:
        assert not clean
    else:
        assert clean
        assert "w2" in text
        assert "w3" not in text
        assert "message_stop" not in text


def test_an_error_comes_in_the_stream_after_its_tokens(up: Upstream) -> None:
    text = post(up, MESSAGES, "error-in-stream:overloaded:2", stream=True).text

    assert text.count("text_delta") == 2
    assert text.rstrip().endswith('"error":{"type":"overloaded_error","message":"injected overloaded"}}')


def test_every_byte_is_a_chunk_of_its_own(up: Upstream) -> None:
    body = {"model": "bytes", "messages": HI, "stream": True}
    with httpx2.stream("POST", up.url + CHAT, json=body) as response:
        chunks = list(response.iter_raw())

    assert {len(chunk) for chunk in chunks} == {1}
    assert "🦊 北".encode() in b"".join(chunks)


def test_tokens_keep_their_pace(up: Upstream) -> None:
    started = time.monotonic()
    text = post(up, CHAT, "tokens:6@50", stream=True).text

    assert 0.1 <= time.monotonic() - started < 1
    assert text.count('"content":"w') == 6


@pytest.mark.parametrize("model", ["hang", "hang:after:2", "tokens:100@1"])
def test_a_client_that_leaves_is_noticed_between_tokens(up: Upstream, model: str) -> None:
    with socket.create_connection(("127.0.0.1", int(up.url.rpartition(":")[2]))) as client:
        body = json.dumps({"model": model, "messages": HI, "stream": True}).encode()
        client.sendall(
            b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (CHAT.encode(), len(body), body)
        )
        assert up.until(lambda stats: stats.open == 1)
    left = time.monotonic()

    assert up.until(lambda stats: stats.cancelled == 1 and stats.open == 0)
    assert time.monotonic() - left < 0.05


def test_many_streams_run_at_once(up: Upstream) -> None:
    with openai_client(up) as client:
        texts: list[str] = []

        def read() -> None:
            stream = client.chat.completions.create(model="tokens:20@100", messages=HI, stream=True)
            texts.append("".join(chunk.choices[0].delta.content or "" for chunk in stream))

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert texts == ["".join(words(20))] * 8


def test_it_runs_as_a_process_with_its_counters_on_a_route() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.upstream", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[1]
            with urllib.request.urlopen(url + "/stats", timeout=5) as response:
                stats = json.load(response)
        finally:
            os.kill(process.pid, signal.SIGTERM)

    assert (stats["requests"], stats["open"]) == (0, 0)
