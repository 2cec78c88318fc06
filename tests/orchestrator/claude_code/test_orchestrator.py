"""Tasks whose replies the Claude Code CLI writes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from bigbrain import Brain, Flow
from bigbrain.messages import Usage, assistant, user
from bigbrain.orchestrator import Orchestrator, TaskResult
from bigbrain.testing import Client
from tests.orchestrator.claude_code.cli import SESSION, Cli
from tests.orchestrator.users import DESCRIBE, FINISH, RETRIEVE, Desk

ANSWER = "User 1 was born in 2001."


@pytest.fixture(autouse=True)
def at_home(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(cli.home))


def orchestrator(cli: Cli, **options: Any) -> Orchestrator:
    return Orchestrator(
        Desk().agents, backend="claude_code", **{"session_id": SESSION, "cli_path": cli.path, **options}
    )


def test_a_task_runs_over_the_session(cli: Cli) -> None:
    cli.script({"pieces": [DESCRIBE]}, {"pieces": [RETRIEVE]}, {"pieces": list(FINISH)})
    logged: list[str] = []
    given: list[str] = []

    result = orchestrator(cli).execute_task(
        "When was User 1 born?",
        history=[user("never"), assistant("sent")],
        log_callback=logged.append,
        on_token=given.append,
    )

    assert (result.status, result.answer, result.steps) == ("success", ANSWER, 3)
    assert given == list(ANSWER)
    assert "".join(logged) == f"{DESCRIBE}[[END]]{RETRIEVE}[[END]]{FINISH}[[END]]"
    assert result.usage == Usage(input=21, output=6, cache_read=9, cache_write=15)
    prompts = [call["prompt"] for call in cli.calls if "prompt" in call]
    assert prompts[0] == "When was User 1 born?"
    assert prompts[1].startswith('Result of describe "user-agent"')
    assert not any("never" in prompt for prompt in prompts)


def test_the_same_session_goes_on_in_another_orchestrator(cli: Cli) -> None:
    cli.script({"pieces": [FINISH]}, {"pieces": [FINISH]})
    orchestrator(cli).execute_task("first")
    orchestrator(cli).execute_task("second")

    held = json.dumps(json.loads((cli.home / "sessions" / f"{SESSION}.json").read_text()))
    assert "first" in held
    assert "second" in held


def failed(result: TaskResult) -> str:
    assert result.status == "error"
    return result.answer


def test_every_failure_is_a_result(cli: Cli) -> None:
    assert "nowhere" in failed(orchestrator(cli, cli_path="/nowhere/claude").execute_task("go"))
    cli.script({"raw": ["no JSON at all"], "status": 0})
    assert failed(orchestrator(cli).execute_task("go"))
    cli.script({"pieces": [], "raw": [], "status": 3, "stderr": "out of luck"})
    assert failed(orchestrator(cli).execute_task("go"))


def test_a_reply_that_never_ends_is_ended(cli: Cli) -> None:
    cli.script({"pieces": ['{"action": '], "hang": True})

    assert "`timeout`" in failed(orchestrator(cli, timeout=0.3).execute_task("go"))


def test_it_is_served_as_a_model_and_needs_none(cli: Cli) -> None:
    cli.script({"pieces": [FINISH]})

    with Client(Brain("b", Flow(orchestrator(cli)).named("desk").durable())) as client:
        answer = client.chat("go")

    assert answer.text == ANSWER
    assert answer.usage.output == 2


def test_a_session_that_is_given_as_a_uuid_in_another_spelling_is_the_same(cli: Cli) -> None:
    cli.script({"pieces": [FINISH]})

    result = orchestrator(cli, session_id=uuid.UUID(SESSION).hex).execute_task("go")

    assert result.ok
