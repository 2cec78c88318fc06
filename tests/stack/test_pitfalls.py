"""Faults that public bug reports tell of, of web servers that stream: shown not to happen before a whole deployment."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.stack.deployment import ROOT, Deployment, deployed, until
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lone(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One web process and one worker before a model that is given up after 90 silent seconds only."""
    data = Path(tmp_path_factory.mktemp("data"))
    env = {"UPSTREAM": upstream.url, "UPSTREAM_TIMEOUT": "90", "BIG_BRAIN_HEARTBEAT": "1"}
    arguments = ("up", "tests.brains", "--port", "0", "--web", "1", "--workers", "1")
    with deployed(*arguments, data=data, **env) as deployment:
        yield deployment


def asking(model: str) -> dict[str, object]:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def test_b17_clients_that_leave_in_the_silence_of_their_model_take_nothing_with_them(lone: Deployment) -> None:
    async def leave(client: httpx2.AsyncClient) -> httpx2.Headers:
        async with client.stream("POST", f"{lone.openai}/chat/completions", json=asking("hang:after:0")) as response:
            # comments only: the model says nothing
            await anext(response.aiter_lines())
            return response.headers

    async def run() -> list[httpx2.Headers]:
        async with httpx2.AsyncClient(timeout=30, limits=httpx2.Limits(max_connections=40)) as client:
            return await asyncio.gather(*(leave(client) for _ in range(40)))

    with lone.redis() as redis:
        httpx2.get(f"{lone.openai}/models", timeout=10)
        before = len(redis.client_list(_type="pubsub"))
        headers = asyncio.run(run())
        answer = httpx2.get(f"{lone.openai}/models", timeout=10)

        assert answer.status_code == 200
        assert {(one["x-accel-buffering"], one["cache-control"]) for one in headers} == {("no", "no-cache")}
        assert not any("content-encoding" in one for one in headers)
        # stopped because their clients left, long before their model would have been given up
        assert until(lambda: redis.zcard("bb:due") == 0, 30)
        runs = httpx2.get(f"{lone.openai}/runs?status=cancelled&limit=100", timeout=10).json()["data"]
        assert len(runs) == 40
        # one for each process that hears of runs, and none for a client
        assert len(redis.client_list(_type="pubsub")) < before + 10


@contextmanager
def another_web_process(stack: Deployment) -> Iterator[str]:
    """The root URL of a second gunicorn before the same Redis, in no way related to the first."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"unix://{stack.data / 'redis.sock'}?db=0"
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", "web/gunicorn_conf.py", "-b", f"127.0.0.1:{port}", "web.wsgi:app"],
        cwd=ROOT,
        env={**os.environ, "BIG_BRAIN_REDIS_URL": url, "BIG_BRAIN_APP": "tests.brains"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def lives() -> bool:
        try:
            return httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
        except httpx2.TransportError:
            return False

    try:
        assert until(lives, 30)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(40)


def frames(url: str, run_id: str, after: str = "0", until_number: int = 0) -> bytes:
    """The bytes of a run's events behind one of them, without the comments that say that a stream lives.

    until_number: cuts the connection behind this one.
    """
    read = b""
    with httpx2.stream("GET", f"{url}/runs/{run_id}/events", headers={"Last-Event-ID": after}, timeout=30) as one:
        for chunk in one.iter_bytes():
            read += chunk
            if until_number and b"id: %d-" % until_number in read:
                break
    whole = read[: read.rindex(b"\n\n") + 2]
    parts = [part for part in whole.split(b"\n\n") if part and not part.startswith(b":")]
    return b"".join(part + b"\n\n" for part in parts)


def last_id(data: bytes) -> str:
    return [line[4:].decode() for line in data.split(b"\n") if line.startswith(b"id: ")][-1]


def last_number(data: bytes) -> int:
    return int(last_id(data).partition("-")[0])


def test_a_stream_begun_before_one_web_process_is_had_to_its_end_from_another_byte_for_byte(lone: Deployment) -> None:
    first = lone.openai
    with another_web_process(lone) as second:
        body = asking("tokens:60@20")
        headers = {"X-Run-Id": "two"}
        with httpx2.stream("POST", f"{first}/chat/completions", json=body, headers=headers, timeout=30) as begun:
            next(begun.iter_lines())
            head = frames(first, "two", until_number=12)
        # its own connection is cut as well, and the tail comes from a process that has never heard of it
        tail = frames(second, "two", after=last_id(head))
        uncut = frames(first, "two")

    assert 12 <= last_number(head) < last_number(uncut)
    assert head + tail == uncut
    assert uncut.endswith(b"\n\n")
    assert b'"finished"' in tail
