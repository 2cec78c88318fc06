"""What a whole deployment counts and tells: web and workers together, whoever of them dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from bigbrain.messages import JSON
from tests.stack.deployment import Deployment, deployed, until
from tests.test_metrics import read

pytestmark = pytest.mark.slow

MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    data = Path(tmp_path_factory.mktemp("data"))
    with deployed("up", "tests.brains", "--port", "0", "--web", "2", "--workers", "2", data=data) as deployment:
        yield deployment


def ask(deployment: Deployment, *, stream: bool = False) -> str:
    """The id of a run that has answered."""
    body = {"model": "stages", "messages": MESSAGES, "stream": stream}
    answer = httpx2.post(f"{deployment.openai}/chat/completions", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-run-id"]


def total(deployment: Deployment, name: str, **labels: str) -> float:
    """The sum over all samples that have these labels."""
    page = httpx2.get(f"{deployment.url}/metrics", timeout=30)
    assert page.status_code == 200
    samples = read(page.content)
    return sum(number for (one, has), number in samples.items() if one == name and labels.items() <= dict(has).items())


def trace(deployment: Deployment, run: str, **query: str) -> list[dict[str, JSON]]:
    found: list[dict[str, JSON]] = httpx2.get(
        f"{deployment.openai}/diagnostics/trace", params={"run": run, **query}
    ).json()
    return found


def test_the_page_of_any_web_process_shows_all_of_web_and_workers(many: Deployment) -> None:
    before = total(many, "bigbrain_requests_total"), total(many, "bigbrain_steps_total", result="done")
    for number in range(20):
        ask(many, stream=number % 2 == 0)
    steps = before[1] + 4 * 20
    assert until(lambda: total(many, "bigbrain_steps_total", result="done") == steps)

    # whichever process answers, and whenever
    assert {total(many, "bigbrain_requests_total", protocol="openai_chat") for _ in range(10)} == {before[0] + 20}
    assert total(many, "bigbrain_request_first_token_seconds_count") >= 10
    assert total(many, "bigbrain_queue_wait_seconds_count") >= steps
    assert total(many, "bigbrain_open_streams") == 0
    assert total(many, "bigbrain_redis_up") == 1
    assert total(many, "bigbrain_queue_length", queue="io") == 0
    assert until(lambda: total(many, "bigbrain_runs_open") == 0)


def test_a_killed_worker_takes_no_count_with_it(many: Deployment) -> None:
    for _ in range(10):
        ask(many)
    assert until(lambda: total(many, "bigbrain_runs_open") == 0)
    # the count comes right after the record says so
    assert until(lambda: total(many, "bigbrain_steps_total") == 4 * total(many, "bigbrain_requests_total"))
    steps = total(many, "bigbrain_steps_total")
    victims = many.pids("io-1")
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: set(many.pids("io-1")).isdisjoint(victims) and many.pids("io-1"), 30)

    assert total(many, "bigbrain_steps_total") == steps
    ask(many)
    assert until(lambda: total(many, "bigbrain_steps_total") == steps + 4)


def test_the_open_answers_of_a_killed_web_process_are_forgotten(many: Deployment) -> None:
    master = min(many.pids("gunicorn"))
    workers = [pid for pid in many.pids("gunicorn") if pid != master]
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: len(set(many.pids("gunicorn")) - {master, *workers}) == len(workers), 30)

    def none_open() -> bool:
        try:
            return total(many, "bigbrain_open_streams") == 0
        except httpx2.HTTPError:
            return False

    assert until(none_open, 30)


def test_the_trace_of_a_run_tells_of_web_and_workers_in_order(many: Deployment) -> None:
    run, other = ask(many), ask(many)
    assert until(lambda: trace(many, run, kind="run.end"))
    events = trace(many, run)

    kinds = [event["kind"] for event in events]
    assert {event["run"] for event in events} == {f"open:{run}"}
    assert kinds.count("run.start") == 1
    assert kinds.count("step.start") == kinds.count("step.end") == 4
    assert kinds.count("flow.start") == kinds.count("flow.end") == 4
    assert kinds.count("model.call") == 2
    assert kinds[-1] == "run.end"
    assert events[-1]["detail"].items() >= {"status": "done", "code": ""}.items()
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    told = {event["kind"]: event["process"] for event in events}
    assert told["run.start"] != told["step.end"]
    assert {event["run"] for event in trace(many, other)} == {f"open:{other}"}


def test_the_counts_of_an_older_deployment_are_not_added(tmp_path: Path) -> None:
    with deployed("up", "--port", "0", data=tmp_path) as first:
        httpx2.post(f"{first.openai}/chat/completions", json={"messages": MESSAGES}, timeout=30)
        assert total(first, "bigbrain_requests_total") == 1
    with deployed("up", "--port", "0", data=tmp_path) as second:
        assert total(second, "bigbrain_requests_total") == 0


def test_one_process_counts_and_tells_what_a_deployment_does(tmp_path: Path) -> None:
    with deployed("serve", "--port", "0", data=tmp_path) as deployment:
        answer = httpx2.post(f"{deployment.openai}/chat/completions", json={"messages": MESSAGES}, timeout=30)
        run = answer.headers["x-run-id"]
        assert until(lambda: trace(deployment, run, kind="run.end"))

        assert total(deployment, "bigbrain_requests_total", status="200") == 1
        assert total(deployment, "bigbrain_steps_total", result="done") == 1
        assert total(deployment, "bigbrain_model_calls_total", outcome="ok") == 1
        assert trace(deployment, run)[0]["kind"] == "run.start"
