"""An orchestrator whose replies the CLI writes: tasks, their failures, and a brain that serves it."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest

from bigbrain import Brain, Flow
from bigbrain.errors import ModelBroke, ModelTimeout, RunCancelled
from bigbrain.messages import Usage, assistant, user
from bigbrain.orchestrator import Cancellation, Orchestrator, TaskResult, ToolTrace
from bigbrain.orchestrator.tasks import END
from bigbrain.testing import Client
from tests.orchestrator.claude_code.cli import SESSION, Cli, until
from tests.orchestrator.users import DESCRIBE, FINISH, RETRIEVE, Desk

ANSWER = "User 1 was born in 2001."


@pytest.fixture(autouse=True)
def at_home(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CLI's home is the test's own, as it is for whoever runs it."""
    monkeypatch.setenv("HOME", str(cli.home))


def orchestrator(cli: Cli, **options: Any) -> Orchestrator:
    return Orchestrator(
        Desk().agents, **{"backend": "claude_code", "session_id": SESSION, "cli_path": cli.path, **options}
    )


def replies(cli: Cli, *texts: str) -> None:
    cli.script(*({"pieces": list(text)} for text in texts))


def failed(cli: Cli, **options: Any) -> TaskResult:
    result = orchestrator(cli, **options).execute_task("When was User 1 born?")
    assert result.status == "error"
    return result


def test_a_task_goes_its_way_in_one_session(cli: Cli) -> None:
    replies(cli, DESCRIBE, RETRIEVE, FINISH)
    shown: list[str] = []
    logged: list[str] = []

    result = orchestrator(cli).execute_task("When was User 1 born?", on_token=shown.append, log_callback=logged.append)

    assert (result.status, result.answer, result.steps) == ("success", ANSWER, 3)
    assert [trace.tool for trace in result.tool_traces] == ["user-retriever"]
    assert "".join(shown) == ANSWER
    assert len(shown) > 5
    assert "".join(logged) == END.join([DESCRIBE, RETRIEVE, FINISH, ""])
    assert result.usage == Usage(input=21, output=6, cache_read=9, cache_write=15)
    prompts = [call["prompt"] for call in cli.calls]
    assert prompts[0] == "When was User 1 born?"
    assert "user-retriever" in prompts[1]
    assert "2001" in prompts[2]


def test_the_second_task_on_a_session_knows_the_first_and_is_not_told_it_again(cli: Cli) -> None:
    replies(cli, FINISH)
    orchestrator(cli).execute_task("When was User 1 born?")
    history = [user("an earlier question"), assistant("an earlier answer")]
    trace = ToolTrace("user-retriever", "User 2", "born 1999")
    orchestrator(cli, repairs=0).execute_task("And User 2?", history=history, tool_traces=[trace])

    first, second = cli.calls
    assert "--resume" in second["argv"]
    assert second["prompt"].endswith("And User 2?")
    assert "born 1999" in second["prompt"]
    assert "earlier" not in second["prompt"]
    assert first["instructions"] == second["instructions"]


def test_a_reply_outside_the_protocol_is_put_back_in_the_same_session(cli: Cli) -> None:
    replies(cli, "I would rather talk.", FINISH)

    assert orchestrator(cli).execute_task("go").answer == ANSWER
    assert "--resume" in cli.calls[1]["argv"]


def test_a_session_in_another_spelling_is_the_same(cli: Cli) -> None:
    replies(cli, FINISH, FINISH)
    orchestrator(cli).execute_task("first")
    orchestrator(cli, session_id=uuid.UUID(SESSION).hex.upper()).execute_task("second")

    assert "--resume" in cli.calls[1]["argv"]


def test_options_that_do_not_apply_do_no_harm(cli: Cli) -> None:
    replies(cli, FINISH)
    other = orchestrator(cli, enforce_json_output=True, enable_prompt_caching=True, temperature=0.7, max_tokens=5)

    assert other.execute_task("go").answer == ANSWER
    assert "CLAUDE_CODE_MAX_OUTPUT_TOKENS" not in cli.calls[0]["env"]


def test_model_key_and_server_are_handed_on(cli: Cli) -> None:
    replies(cli, FINISH)
    orchestrator(cli, model="opus", api_key="sk-meant", server_url="http://127.0.0.1:1").execute_task("go")

    [call] = cli.calls
    assert call["argv"][-2:] == ["--model", "opus"]
    assert call["env"]["ANTHROPIC_API_KEY"] == "sk-meant"
    assert call["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


def test_a_missing_program_is_an_error_of_the_task(cli: Cli) -> None:
    result = failed(cli, cli_path="/not/there/claude")

    assert isinstance(result.error, ModelBroke)
    assert "no Claude Code CLI `/not/there/claude`" in result.answer


def test_an_exit_status_is_an_error_of_the_task(cli: Cli) -> None:
    cli.script({"raw": [], "status": 2, "stderr": "no disk"})

    assert failed(cli).answer == "Claude Code ended with status 2 before it had answered: no disk"


def test_invalid_json_is_an_error_of_the_task(cli: Cli) -> None:
    cli.script({"raw": ["<html>"]})

    assert "no JSON object: '<html>'" in failed(cli).answer


def test_a_timeout_is_an_error_of_the_task(cli: Cli) -> None:
    cli.script({"pieces": ["{"], "hang": True})
    result = failed(cli, timeout=0.3)

    assert isinstance(result.error, ModelTimeout)
    assert cli.left() == []


def test_cancelling_is_an_error_of_the_task_and_the_session_goes_on(cli: Cli) -> None:
    cli.script({"pieces": [], "wait": "never"}, {"pieces": [FINISH]})
    stop = Cancellation()
    thread = threading.Thread(target=lambda: until(lambda: cli.calls) and stop.cancel("enough"))
    thread.start()
    result = failed(cli, cancellation=stop)
    thread.join()

    assert isinstance(result.error, RunCancelled)
    assert cli.left() == []
    assert orchestrator(cli).execute_task("go").answer == ANSWER


def test_a_listener_that_fails_leaves_no_process(cli: Cli) -> None:
    cli.script({"pieces": [FINISH], "hang": True})

    def shown(piece: str) -> None:
        raise KeyError(piece)

    result = orchestrator(cli).execute_task("go", on_token=shown)

    assert result.status == "error"
    assert "KeyError" in result.answer
    assert cli.left() == []


def test_a_brain_serves_it_without_a_model(cli: Cli) -> None:
    replies(cli, DESCRIBE, RETRIEVE, FINISH)
    with Client(Brain("b", Flow(orchestrator(cli)).named("desk").durable())) as client:
        answer = client.chat("When was User 1 born?")

    assert answer.text == ANSWER
    assert answer.usage == Usage(input=21, output=6, cache_read=9, cache_write=15)
