"""Tasks in a real deployment: gunicorn, Celery workers and Redis, before a model's server that speaks its real wire."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx2
import msgspec
import openai
import pytest

from tests.stack.deployment import Deployment, deployed, until
from tests.upstream import Upstream
from tests.upstream_answers import Answer

pytestmark = pytest.mark.slow

WORDS = [f"w{number} " for number in range(30)]
FINISH = ('{"action": "finish", ', '"answer": "', *WORDS, '"}')
STEPS = (
    '{"action": "describe", "agent": "math"}',
    '{"action": "describe", "agent": "math/basic"}',
    '{"action": "call", "agent": "math/basic", "tool": "add", "input": {"a": 1, "b": 2}}',
    '{"action": "call", "agent": "notes", "tool": "note", "input": "three"}',
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("desk")) / "log"


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def desk(upstream: Upstream, log: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    data = Path(tmp_path_factory.mktemp("data"))
    arguments = ("up", "tests.orchestrator.deployed", "--port", "0", "--web", "1", "--workers", "2")
    with deployed(*arguments, data=data, UPSTREAM=upstream.url, DESK_LOG=str(log)) as deployment:
        yield deployment


@pytest.fixture(autouse=True)
def anew(log: Path, upstream: Upstream) -> None:
    log.write_text("")
    log.with_name("go").unlink(missing_ok=True)
    upstream.requests.clear()


def whole(*texts: str) -> list[Answer]:
    return [Answer(tokens=(text,)) for text in texts]


def test_five_steps_stream_their_answer_live_to_a_client_of_each_protocol(desk: Deployment, upstream: Upstream) -> None:
    upstream.script(*whole(*STEPS), Answer(tokens=FINISH, rate=20))
    moments: list[float] = []
    pieces: list[str] = []
    with openai.OpenAI(base_url=desk.openai, api_key="k", max_retries=0) as client:
        chunks = client.chat.completions.create(
            model="desk",
            messages=[{"role": "user", "content": "one and two?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        usage = None
        for chunk in chunks:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                if choice.delta.content:
                    moments.append(time.monotonic())
                    pieces.append(choice.delta.content)

    assert "".join(pieces) == "".join(WORDS)
    assert len(pieces) > 5
    assert moments[-1] - moments[0] > 0.7, "the model took 1.5 seconds to write it"
    assert len(upstream.requests) == 5
    assert usage is not None
    assert usage.prompt_tokens == 5 * 7

    upstream.script(*whole(*STEPS), Answer(tokens=FINISH))
    with (
        anthropic.Anthropic(base_url=desk.url, api_key="k", max_retries=0) as messages,
        messages.messages.stream(
            model="desk", max_tokens=500, messages=[{"role": "user", "content": "one and two?"}]
        ) as stream,
    ):
        assert "".join(stream.text_stream) == "".join(WORDS)

    upstream.script(*whole(*STEPS), Answer(tokens=FINISH))
    with openai.OpenAI(base_url=desk.openai, api_key="k", max_retries=0) as client:
        events = client.responses.create(model="desk", input="one and two?", stream=True)
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]

    assert "".join(deltas) == "".join(WORDS)
    assert len(upstream.requests) == 15


def test_the_calls_of_a_task_are_on_record(desk: Deployment, upstream: Upstream) -> None:
    upstream.script(*whole(*STEPS), Answer(tokens=FINISH))
    answer = ask(desk, "go", "on-record")

    def tools() -> list[str]:
        events = httpx2.get(f"{desk.openai}/diagnostics/trace", timeout=20).json()
        return [
            event["detail"]["tool"]
            for event in events
            if event["kind"] == "tool.call" and event["run"].endswith("on-record")
        ]

    assert answer == "".join(WORDS)
    assert until(lambda: tools() == ["math/basic/add", "notes/note"], 20), tools()


def test_a_worker_killed_between_two_calls_repeats_no_finished_one(
    desk: Deployment, upstream: Upstream, log: Path
) -> None:
    """The first call is done, the second is under way when its worker is killed."""
    first = '{"action": "call", "agent": "notes", "tool": "note", "input": "first"}'
    second = '{"action": "call", "agent": "notes", "tool": "hold", "input": "second"}'
    upstream.script(*whole(first, second, second), Answer(tokens=FINISH, rate=50))
    body = {"model": "desk", "stream": True, "messages": [{"role": "user", "content": "note both"}]}
    with httpx2.stream("POST", f"{desk.openai}/chat/completions", json=body, timeout=90) as response:
        assert until(lambda: len(lines(log)) == 2, 30), log.read_text()
        holder = lines(log)[1][1]
        os.kill(holder, signal.SIGKILL)
        log.with_name("go").touch()
        text = "".join(_texts(response))

    assert text == "".join(WORDS)
    assert [what for what, _ in lines(log)] == ["first", "second", "second"]
    assert lines(log)[2][1] != holder
    assert len(upstream.requests) == 4
    again = upstream.requests[2].body["messages"]
    assert upstream.requests[1].body["messages"] == again
    assert "noted first" in str(again[-1])


def test_stopping_the_run_stops_the_question(desk: Deployment, upstream: Upstream) -> None:
    before = upstream.stats.cancelled
    upstream.script(Answer(tokens=FINISH, rate=1))
    body = {"model": "desk", "stream": True, "messages": [{"role": "user", "content": "slowly"}]}
    with httpx2.stream(
        "POST", f"{desk.openai}/chat/completions", json=body, timeout=60, headers={"x-run-id": "slowly"}
    ) as response:
        assert upstream.until(lambda stats: stats.open > 0, 20)
        assert httpx2.post(f"{desk.openai}/runs/slowly/cancel", timeout=20).status_code == 200
        frames = list(response.iter_lines())

    assert upstream.until(lambda stats: stats.cancelled > before, 20)
    assert any("run_cancelled" in frame for frame in frames)


def lines(log: Path) -> list[tuple[str, int]]:
    """What was called, and in which process."""
    return [(what, int(pid)) for what, _, pid in (line.partition(" ") for line in log.read_text().splitlines())]


def ask(desk: Deployment, text: str, run_id: str) -> str:
    body = {"model": "desk", "messages": [{"role": "user", "content": text}]}
    answer = httpx2.post(f"{desk.openai}/chat/completions", json=body, timeout=60, headers={"x-run-id": run_id})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


def _texts(response: httpx2.Response) -> Iterator[str]:
    for line in response.iter_lines():
        if line.startswith("data: {"):
            frame = msgspec.json.decode(line[6:])
            assert "error" not in frame, frame
            yield from (choice["delta"].get("content") or "" for choice in frame["choices"])
