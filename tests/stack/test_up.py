"""`bigbrain up` and `bigbrain serve` as a stranger meets them: the demo brain, keys, Flower, the end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anthropic
import httpx2
import openai
import psutil
import pytest

from tests.bench.targets import free_port
from tests.stack.deployment import Deployment, deployed, until

pytestmark = pytest.mark.slow

MESSAGES = [{"role": "user", "content": "hello"}]


def said(url: str) -> list[str]:
    """What the brain at `url` says in both protocols, streamed and not."""
    chat = openai.OpenAI(base_url=f"{url}/v1", api_key="k")
    claude = anthropic.Anthropic(base_url=url, api_key="k")
    with chat, claude:
        whole = chat.chat.completions.create(model="any", messages=MESSAGES).choices[0].message.content
        chunks = chat.chat.completions.create(model="any", messages=MESSAGES, stream=True)
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        message = claude.messages.create(model="any", messages=MESSAGES, max_tokens=100).content[0].text
        with claude.messages.stream(model="any", messages=MESSAGES, max_tokens=100) as stream:
            live = "".join(stream.text_stream)
    return [whole or "", streamed, message, live]


def test_the_demo_brain_answers_both_protocols_without_a_key(tmp_path: Path) -> None:
    with deployed("up", "--port", "0", data=tmp_path) as deployment:
        answers = said(deployment.url)

    assert len(set(answers)) == 1
    assert answers[0].startswith("At your service.")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_end_leaves_no_process_and_no_socket(tmp_path: Path, how: signal.Signals) -> None:
    with deployed("up", "--port", "0", data=tmp_path) as deployment:
        processes = deployment.processes()
        assert {"gunicorn", "worker", "beat", "valkey"} <= {
            mark for mark in ("gunicorn", "worker", "beat", "valkey") for line in processes.values() if mark in line
        }
        port = int(deployment.url.rpartition(":")[2])
        status = deployment.stop(how)

    assert status == 0
    assert [pid for pid in processes if psutil.pid_exists(pid)] == []
    assert list(tmp_path.glob("*.sock")) == []
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{port}/healthz")


def test_a_killed_launcher_leaves_its_data_to_the_next_one(tmp_path: Path) -> None:
    first = Deployment(("up", "--port", "0"), {}, tmp_path)
    run_id = httpx2.post(f"{first.url}/v1/chat/completions", json={"messages": MESSAGES}, timeout=30).headers[
        "x-run-id"
    ]
    children = set(first.processes())
    first.stop(signal.SIGKILL)

    with deployed("up", "--port", "0", data=tmp_path) as second:
        with second.redis() as redis:
            assert redis.exists(f"bb:run:open:{run_id}")
        left = {pid for pid in children if psutil.pid_exists(pid) and "valkey" not in psutil.Process(pid).name()}
        assert until(lambda: not {pid for pid in left if psutil.pid_exists(pid)}, 40)


def test_one_process_serves_what_a_deployment_does(tmp_path: Path) -> None:
    with deployed("serve", "--port", str(free_port()), data=tmp_path) as deployment:
        answers = said(deployment.url)
        workers = deployment.pids("celery")

    assert len(set(answers)) == 1
    assert workers == []


def test_keys_guard_every_route_but_health(tmp_path: Path) -> None:
    with deployed("up", "--port", "0", data=tmp_path, BIG_BRAIN_KEYS="first,second") as deployment:
        url = deployment.url
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=f"{url}/v1", api_key="wrong").models.list()
        with pytest.raises(anthropic.AuthenticationError):
            anthropic.Anthropic(base_url=url, api_key="wrong").messages.create(
                model="any", messages=MESSAGES, max_tokens=9
            )
        open_routes = [httpx2.get(f"{url}/{path}").status_code for path in ("healthz", "readyz", "v1/models")]
        right = openai.OpenAI(base_url=f"{url}/v1", api_key="second").models.list().data[0].id
        other = httpx2.get(f"{url}/v1/models", headers={"x-api-key": "first"}).status_code

    assert open_routes == [200, 401, 401]
    assert (right, other) == ("demo", 200)


def test_flower_lists_steps_with_flow_agent_and_run(tmp_path: Path) -> None:
    with deployed("up", "--port", "0", "--flower", data=tmp_path, FLOWER_UNAUTHENTICATED_API="true") as deployment:
        flower = deployment.wait_for(r"Flower is at (http://\S+)")[1]
        assert until(lambda: _status(f"{flower}/api/tasks") == 200, 30)
        answer = httpx2.post(f"{deployment.url}/v1/chat/completions", json={"messages": MESSAGES}, timeout=30)
        run_id = answer.headers["x-run-id"]

        def shown() -> list[str]:
            tasks = httpx2.get(f"{flower}/api/tasks").json().values()
            return [task["args"] for task in tasks if task["name"] == "workers.tasks.step" and run_id in task["args"]]

        assert until(lambda: bool(shown()), 15)
        [args] = shown()

    assert "flow demo/talk" in args
    assert "agent model" in args


def _status(url: str) -> int:
    try:
        return httpx2.get(url).status_code
    except httpx2.HTTPError:
        return 0


def test_a_port_that_others_reach_needs_keys(tmp_path: Path) -> None:
    deployment = Deployment(("up", "--host", "0.0.0.0", "--port", "0"), {}, tmp_path)
    deployment.wait_for("BIG_BRAIN_KEYS")

    assert deployment.stop(signal.SIGTERM) != 0
    assert os.listdir(tmp_path) == [] or not list(tmp_path.glob("*.sock"))  # noqa: PTH208
