"""The CLI below real Celery workers: one that is killed or told to stop leaves no process of it, and the run goes on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import msgspec
import psutil
import pytest

from tests.orchestrator.claude_code.cli import Cli, gone, until
from tests.stack.deployment import Deployment, deployed

pytestmark = pytest.mark.slow

ANSWER = "The answer comes word by word."
FINISH = list(f'{{"action": "finish", "answer": "{ANSWER}"}}')
BODY = {"model": "desk", "stream": True, "messages": [{"role": "user", "content": "go"}]}


@pytest.fixture
def desk(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    data = Path(tmp_path_factory.mktemp("data"))
    arguments = ("up", "tests.orchestrator.claude_code.served", "--port", "0", "--web", "1", "--workers", "2")
    with deployed(*arguments, data=data, HOME=str(cli.home), FAKE_CLI=cli.path) as deployment:
        yield deployment


def under_way(cli: Cli) -> int:
    """The process of the call that is under way, once it is."""
    assert until(lambda: cli.calls, 60)
    return int(cli.calls[-1]["pid"])


def texts(response: httpx2.Response) -> Iterator[str]:
    for line in response.iter_lines():
        if line.startswith("data: {"):
            frame = msgspec.json.decode(line[6:])
            assert "error" not in frame, frame
            yield from (choice["delta"].get("content") or "" for choice in frame["choices"])


def test_a_worker_killed_in_mid_call_leaves_no_process_and_the_run_goes_on_in_the_session(
    desk: Deployment, cli: Cli
) -> None:
    cli.script({"pieces": FINISH[:50], "hang": True, "child": True}, {"pieces": FINISH})
    with httpx2.stream("POST", f"{desk.openai}/chat/completions", json=BODY, timeout=90) as response:
        pieces = texts(response)
        text = next(piece for piece in pieces if piece)
        pid = under_way(cli)
        worker = psutil.Process(pid).parents()[1]
        assert "celery" in " ".join(worker.cmdline())
        os.kill(worker.pid, signal.SIGKILL)
        assert gone(pid)
        text += "".join(pieces)

    assert text == ANSWER
    first, second = cli.calls
    assert "--session-id" in first["argv"]
    assert "--resume" in second["argv"]
    assert first["prompt"] == "go"
    assert second["prompt"].startswith("go")
    assert f'"{ANSWER[:1]}' in second["prompt"], "it is told what the client has read"


def test_a_run_that_is_cancelled_ends_the_process(desk: Deployment, cli: Cli) -> None:
    cli.script({"pieces": FINISH[:50], "hang": True})
    headers = {"x-run-id": "mine"}
    with httpx2.stream("POST", f"{desk.openai}/chat/completions", json=BODY, timeout=90, headers=headers) as response:
        pid = under_way(cli)
        assert httpx2.post(f"{desk.openai}/runs/mine/cancel", timeout=20).status_code == 200
        frames = list(response.iter_lines())

    assert any("run_cancelled" in frame for frame in frames)
    assert gone(pid)
