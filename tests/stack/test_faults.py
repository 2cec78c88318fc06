"""What a client sees, and what the run's record says, when the model's server fails."""

from __future__ import annotations

import httpx2
import msgspec
import pytest

from tests.stack.deployment import Deployment, until

pytestmark = pytest.mark.slow

BEFORE = [
    ("status:401", 502, "model_refused", False),
    ("status:429:retry-after=2", 429, "model_busy", True),
    ("status:500", 502, "model_broke", True),
    ("status:529", 529, "model_overloaded", True),
    ("hang", 504, "model_timeout", True),
    ("reset:before", 502, "model_broke", True),
    ("truncate:0", 502, "model_broke", True),
    ("too-long", 400, "context_length_exceeded", False),
    ("error-in-stream:overloaded_error", 529, "model_overloaded", True),
]
"""Faults before the first token: model name, status, code, whether to retry."""

AFTER = ["reset:after:3", "truncate:3", "cut:3", "hang:after:3", "error-in-stream:overloaded_error:3"]
"""Faults after three tokens."""


def ask(stack: Deployment, path: str, model: str, *, stream: bool) -> httpx2.Response:
    body = {"model": model, "max_tokens": 50, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    return httpx2.post(f"{stack.openai}/{path}", json=body, timeout=30)


def record(stack: Deployment, run_id: str) -> dict[str, bytes]:
    """The record of a run that is over."""
    with stack.redis() as client:
        key = f"bb:run:open:{run_id}"
        assert until(lambda: client.hget(key, "status") not in (b"queued", b"running"))
        return {name.decode(): value for name, value in client.hgetall(key).items()}


@pytest.mark.parametrize("provider", ["", "anthropic:"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "status", "code", "retry"), BEFORE)
def test_a_fault_before_the_first_token_has_its_status(
    stack: Deployment, provider: str, name: str, status: int, code: str, retry: bool, stream: bool
) -> None:
    answer = ask(stack, "chat/completions", provider + name, stream=stream)

    assert answer.status_code == (503 if status == 529 else status)
    assert answer.json()["error"]["code"] == ("rate_limit_exceeded" if status == 429 else code)
    assert answer.headers["x-should-retry"] == str(retry).lower()
    failed = record(stack, answer.headers["x-run-id"])
    assert (failed["status"], msgspec.json.decode(failed["error"])["code"]) == (b"failed", code)


@pytest.mark.parametrize(("name", "status", "code", "retry"), BEFORE)
def test_an_anthropic_client_gets_the_fault_in_its_own_shape(
    stack: Deployment, name: str, status: int, code: str, retry: bool
) -> None:
    answer = ask(stack, "messages", name, stream=True)

    assert answer.status_code == status
    assert answer.json()["type"] == "error"
    assert answer.headers["x-should-retry"] == str(retry).lower()


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
@pytest.mark.parametrize("name", AFTER)
def test_a_fault_after_the_first_token_is_the_protocols_own_error_event(
    stack: Deployment, path: str, name: str
) -> None:
    answer = ask(stack, path, name, stream=True)

    assert answer.status_code == 200
    frames = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert "error" in msgspec.json.decode(frames[-1])
    assert "[DONE]" not in answer.text
    assert "message_stop" not in answer.text
    assert "w0 w1 w2" in "".join(_texts(frames))


def _texts(frames: list[str]) -> list[str]:
    out = []
    for frame in map(msgspec.json.decode, frames):
        if frame.get("choices"):
            out.append(frame["choices"][0]["delta"].get("content") or "")
        elif frame.get("delta"):
            out.append(frame["delta"].get("text", ""))
    return out


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
@pytest.mark.parametrize("name", AFTER)
def test_a_fault_in_mid_answer_fails_a_whole_answer(stack: Deployment, path: str, name: str) -> None:
    answer = ask(stack, path, name, stream=False)

    assert answer.status_code >= 500
    assert "error" in answer.json()


def test_the_words_of_the_model_server_stay_inside(stack: Deployment) -> None:
    answer = ask(stack, "chat/completions", "status:500", stream=False)

    told = msgspec.json.decode(record(stack, answer.headers["x-run-id"])["error"])
    assert "500" in told["detail"]
    assert "500" not in answer.json()["error"]["message"]
    assert answer.json()["error"]["message"] == told["message"]
