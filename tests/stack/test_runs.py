"""The API of runs before a whole deployment with two web processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import msgspec
import pytest

from tests.stack.deployment import Deployment
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


@contextmanager
def asked(stack: Deployment, run_id: str, model: str) -> Iterator[httpx2.Response]:
    """A streamed answer that is under way."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    url = f"{stack.openai}/chat/completions"
    with httpx2.stream("POST", url, json=body, headers={"X-Run-Id": run_id}, timeout=30) as response:
        assert response.status_code == 200
        yield response


def entries(stack: Deployment, run_id: str, after: str = "0") -> Iterator[tuple[str, str]]:
    """The id and the data of each entry of a run's log, over a connection of its own."""
    url = f"{stack.openai}/runs/{run_id}/events"
    with httpx2.stream("GET", url, headers={"Last-Event-ID": after}, timeout=30) as response:
        assert response.status_code == 200
        entry = ""
        for line in response.iter_lines():
            if line.startswith("id: "):
                entry = line[4:]
            elif line.startswith("data: "):
                yield entry, line[6:]


def text_of(told: list[tuple[str, str]]) -> str:
    events = [event for _, data in told for event in msgspec.json.decode(data)]
    return "".join(event["text"] for event in events if event["type"] == "delta")


def test_a_stream_that_was_cut_goes_on_over_other_connections_without_loss(stack: Deployment) -> None:
    words = " ".join(f"w{number}" for number in range(100))
    with asked(stack, "cut", "tokens:100@50") as response:
        told = list[tuple[str, str]]()
        # each connection reads a little and is cut; gunicorn gives them to either process
        for _ in range(8):
            cut = len(told) + 5
            for entry in entries(stack, "cut", told[-1][0] if told else "0"):
                told.append(entry)
                if len(told) == cut:
                    break
        told += entries(stack, "cut", told[-1][0])
        response.read()
    whole = list(entries(stack, "cut"))

    assert told == whole
    assert text_of(whole).strip() == words


def test_the_same_request_again_is_the_same_run_in_any_process(stack: Deployment, upstream: Upstream) -> None:
    before = upstream.stats.requests
    with asked(stack, "same", "tokens:40@40") as one, asked(stack, "same", "tokens:40@40") as other:
        bodies = [response.read() for response in (one, other)]
    with asked(stack, "same", "tokens:40@40") as later:
        replayed = b"".join(later.iter_bytes())

    def text(body: bytes) -> str:
        frames = [msgspec.json.decode(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
        return "".join(frame["choices"][0]["delta"].get("content") or "" for frame in frames)

    assert text(bodies[0]) == text(bodies[1]) == text(replayed)
    assert upstream.stats.requests == before + 1


def test_cancelling_a_run_stops_its_model_within_a_second(stack: Deployment, upstream: Upstream) -> None:
    before = upstream.stats.cancelled
    with asked(stack, "stop", "tokens:1000@20") as response:
        lines = response.iter_lines()
        next(lines)
        begun = time.monotonic()
        answer = httpx2.post(f"{stack.openai}/runs/stop/cancel", timeout=30)
        assert upstream.until(lambda stats: stats.cancelled == before + 1, 1.0 - (time.monotonic() - begun))
        rest = "".join(lines)

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert "cancelled" in rest
