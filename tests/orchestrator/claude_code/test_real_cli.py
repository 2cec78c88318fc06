"""The real Claude Code CLI in the loop, its model played by our test server. Skipped where npm cannot install it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bigbrain.errors import (
    BrainError,
    ContextTooLong,
    ModelBroke,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    RunCancelled,
)
from bigbrain.messages import Usage
from bigbrain.orchestrator import Cancellation, Orchestrator, TaskResult
from bigbrain.orchestrator.claude_code import ClaudeCode
from bigbrain.scope import Scope
from tests.orchestrator.claude_code.cli import Cli, ask, conversation
from tests.orchestrator.claude_code.real_cli import real_cli
from tests.orchestrator.users import DESCRIBE, FINISH, RETRIEVE, Desk
from tests.upstream import Recorded, Upstream
from tests.upstream_answers import Answer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    one = Cli(str(real_cli()), tmp_path)
    yield one
    assert one.left() == []


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture
def backend(cli: Cli, up: Upstream) -> ClaudeCode:
    return session(cli, up)


def session(cli: Cli, up: Upstream, name: str = "", **options: Any) -> ClaudeCode:
    return cli.backend(
        name or str(uuid.uuid4()), **{"model": "echo", "api_key": "sk-meant", "server_url": up.anthropic, **options}
    )


def said(request: Recorded) -> list[tuple[str, str]]:
    """Who said what, in a request of the CLI, without what the CLI tells about the machine."""
    found = []
    for message in request.body["messages"]:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [block.get("text", "") for block in content]
        if message["role"] != "system":
            found.append((message["role"], "".join(texts)))
    return found


def test_the_second_task_on_a_session_knows_the_first(backend: ClaudeCode, up: Upstream) -> None:
    up.script(Answer(("hello ", "Ada")), Answer(("you are Ada",)))

    first = ask(backend, "my name is Ada")
    second = ask(backend, "who am I?")

    assert first.pieces == ["hello ", "Ada"]
    assert second.text == "you are Ada"
    assert said(up.requests[0]) == [("user", "my name is Ada")]
    assert said(up.requests[1]) == [("user", "my name is Ada"), ("assistant", "hello Ada"), ("user", "who am I?")]


def test_its_tokens_come_while_it_still_writes(backend: ClaudeCode, up: Upstream) -> None:
    up.script(Answer(("first ", "second"), hang_after=1))
    scope, pieces = Scope(), []

    def told(piece: str) -> None:
        pieces.append(piece)
        scope.cancel(RunCancelled("seen"))

    with pytest.raises(RunCancelled):
        _ask(backend, told, scope)

    assert pieces == ["first "]


def test_cancelled_in_mid_call_no_process_is_left_and_the_session_goes_on(
    backend: ClaudeCode, cli: Cli, up: Upstream
) -> None:
    up.script(Answer(("half ", "whole"), hang_after=1), Answer(("yes",)))
    scope = Scope()

    with pytest.raises(RunCancelled, match="enough"):
        _ask(backend, lambda _: scope.cancel(RunCancelled("enough")), scope)

    assert cli.left() == []
    assert up.until(lambda stats: stats.cancelled == 1, 10)
    assert ask(backend, "are you there?").text == "yes"
    assert said(up.requests[-1])[0] == ("user", "the first question")


def test_when_time_is_over_no_process_is_left(backend: ClaudeCode, cli: Cli, up: Upstream) -> None:
    up.script(Answer((), wait=float("inf")))

    with pytest.raises(ModelTimeout):
        ask(backend, within=4)

    assert cli.left() == []


def test_it_has_no_tools_and_is_told_our_instructions(backend: ClaudeCode, up: Upstream) -> None:
    ask(backend, system="You are a router. " + "é" * 150_000)

    assert up.requests[0].body.get("tools", []) == []
    assert "You are a router. é" in json.dumps(up.requests[0].body["system"], ensure_ascii=False)


def test_it_leaves_nothing_in_the_temporary_folder(
    backend: ClaudeCode, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.home / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(cli.home / "tmp"))

    ask(backend)

    assert list((cli.home / "tmp").iterdir()) == []
    assert list((cli.home / ".local").rglob("scratch")) == []


def test_instructions_that_have_changed_reach_a_session_that_goes_on(backend: ClaudeCode, up: Upstream) -> None:
    ask(backend, system="one agent")
    ask(backend, system="two agents")

    assert "two agents" in json.dumps(up.requests[1].body["system"])


@pytest.mark.parametrize(
    "text", ["read @{file} for me", 'read @"{file}" for me', "/context", "/nothing of the kind", "!ls"]
)
def test_a_prompt_is_text_and_nothing_else(backend: ClaudeCode, up: Upstream, tmp_path: Path, text: str) -> None:
    file = tmp_path / "secret.txt"
    file.write_text("what the file says")
    prompt = text.format(file=file)

    ask(backend, prompt)

    [(role, told)] = said(up.requests[0])
    assert role == "user"
    assert told in (prompt, f"Message:\n{prompt}")


def test_what_the_user_has_set_up_stays_out(cli: Cli, up: Upstream, tmp_path: Path) -> None:
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hooked; echo from the hook"}]}
    settings = {"hooks": {"UserPromptSubmit": [hook], "SessionStart": [hook]}, "env": {"ANTHROPIC_API_KEY": "sk-other"}}
    helper = {"command": "touch", "args": [f"{tmp_path}/helped"]}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
    (tmp_path / ".claude" / "CLAUDE.md").write_text("from the memory")
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"helper": helper}}))

    ask(session(cli, up))

    assert said(up.requests[0]) == [("user", "hello")]
    assert "from the memory" not in json.dumps(up.requests[0].body)
    assert not (tmp_path / "hooked").exists()
    assert not (tmp_path / "helped").exists()
    assert up.requests[0].key == "sk-meant"


def test_no_key_is_taken_from_our_environment(cli: Cli, up: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ours")

    with pytest.raises(ModelRefused, match=r"[Ll]og"):
        ask(session(cli, up, api_key=None))

    assert up.requests == []


def test_what_it_cost_is_what_the_server_says(backend: ClaudeCode, up: Upstream) -> None:
    up.script(Answer(("one ", "two ", "three"), input_tokens=11))

    assert ask(backend).spent == [Usage(input=11, output=3)]


def test_a_session_that_only_the_cli_knows_is_resumed(cli: Cli, backend: ClaudeCode, up: Upstream) -> None:
    ask(backend, "first")
    _forget(cli)

    ask(backend, "second")

    assert [text for _, text in said(up.requests[-1])] == ["first", "first", "second"]


def test_a_session_that_the_cli_has_forgotten_is_begun_again(cli: Cli, backend: ClaudeCode, up: Upstream) -> None:
    ask(backend, "first")
    [transcript] = (cli.home / ".claude" / "projects").rglob(f"{backend.session_id}.jsonl")
    transcript.unlink()

    assert ask(backend, "second").text == "second"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(status=401), ModelRefused),
        (Answer(status=404), ModelRefused),
        (Answer(status=529, headers={"x-should-retry": "false"}), ModelOverloaded),
        (
            Answer(status=400, message="prompt is too long: 250000 tokens > 200000 maximum", headers={}),
            ContextTooLong,
        ),
    ],
)
def test_what_the_server_refuses_keeps_its_kind(
    backend: ClaudeCode, up: Upstream, answer: Answer, kind: type[BrainError]
) -> None:
    up.script(*[answer] * 4)

    with pytest.raises(kind) as raised:
        ask(backend)

    assert type(raised.value) is kind
    assert "sk-meant" not in str(raised.value)


def test_an_answer_over_the_token_limit_is_one_reply(backend: ClaudeCode, up: Upstream) -> None:
    up.script(Answer(("first half, ",), stop="length"), Answer(("rest",)))

    heard = ask(backend)

    assert heard.text == "".join(heard.pieces) == "first half, rest"


def test_an_answer_that_broke_off_and_comes_again_alike_is_told_once(backend: ClaudeCode, up: Upstream) -> None:
    words = ("one ", "two ", "three ", "four")
    up.script(Answer(words, rate=30, truncate_after=2), Answer(words))

    heard = ask(backend)

    assert heard.text == "".join(heard.pieces) == "one two three four"


def test_an_answer_that_comes_again_otherwise_is_an_error(backend: ClaudeCode, up: Upstream) -> None:
    up.script(Answer(("one ", "two ", "three"), rate=30, truncate_after=2), Answer(("different",)))

    with pytest.raises(ModelBroke, match="began its answer anew"):
        ask(backend)


def test_two_tasks_of_orchestrators_on_one_session(cli: Cli, up: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(cli.home))
    name = str(uuid.uuid4())
    up.script(*(Answer(tuple(reply)) for reply in (DESCRIBE, RETRIEVE, FINISH, FINISH)))

    def task(prompt: str, shown: list[str]) -> TaskResult:
        one = Orchestrator(
            Desk().agents,
            backend="claude_code",
            session_id=name,
            cli_path=cli.path,
            model="echo",
            api_key="sk-meant",
            server_url=up.anthropic,
        )
        return one.execute_task(prompt, on_token=shown.append)

    shown: list[str] = []
    first = task("When was User 1 born?", shown)
    second = task("Say that again.", [])

    assert (first.status, first.answer) == ("success", "User 1 was born in 2001.")
    assert "".join(shown) == first.answer
    assert len(shown) > 5
    assert [trace.result for trace in first.tool_traces] == [Desk().retrieve("User 1")]
    assert second.answer == first.answer
    told = said(up.requests[-1])
    assert told[0] == ("user", "When was User 1 born?")
    assert [text for role, text in told if role == "assistant"] == [DESCRIBE, RETRIEVE, FINISH]
    assert told[-1] == ("user", "Say that again.")


def test_a_task_that_is_cancelled_in_mid_call_leaves_no_process(
    cli: Cli, up: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(cli.home))
    up.script(Answer(tuple(FINISH), hang_after=len(FINISH) - 5))
    stop = Cancellation()
    result = Orchestrator(
        Desk().agents,
        backend="claude_code",
        session_id=str(uuid.uuid4()),
        cli_path=cli.path,
        model="echo",
        api_key="sk-meant",
        server_url=up.anthropic,
        cancellation=stop,
    ).execute_task("go", on_token=lambda _: stop.cancel("enough"))

    assert (result.status, result.answer) == ("error", "enough")
    assert cli.left() == []


ASKING = """
import sys
from tests.orchestrator.claude_code.cli import Cli, ask
from pathlib import Path
path, home, session, url, text = sys.argv[1:]
print(ask(Cli(path, Path(home)).backend(session, model="echo", api_key="sk-meant", server_url=url), text, within=120).text)
"""


def test_two_processes_on_one_session_ask_one_after_the_other(cli: Cli, up: Upstream) -> None:
    name = str(uuid.uuid4())
    up.script(*[Answer(("answer",), wait=1.0)] * 3)
    command = [sys.executable, "-c", ASKING, cli.path, str(cli.home), name, up.anthropic]
    both = [subprocess.Popen([*command, text], stdout=subprocess.PIPE, text=True) for text in ("one", "two")]
    most = 0
    while any(process.poll() is None for process in both):
        most = max(most, up.stats.open)
        time.sleep(0.01)

    assert [process.communicate()[0].strip() for process in both] == ["answer", "answer"]
    assert most == 1
    ask(session(cli, up, name), "three")
    texts = [text for _, text in said(up.requests[-1])]
    assert sorted(texts[:4]) == ["answer", "answer", "one", "two"]
    assert texts[4:] == ["three"]


def test_many_sessions_at_once_do_not_disturb_each_other(cli: Cli, up: Upstream) -> None:
    results: dict[int, str] = {}

    def asking(number: int) -> None:
        one = session(cli, up)
        ask(one, f"number {number}", within=120)
        results[number] = ask(one, f"again {number}", within=120).text

    threads = [threading.Thread(target=asking, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == {number: f"again {number}" for number in range(4)}


def _ask(backend: ClaudeCode, told: Any, scope: Scope) -> None:
    backend.ask(
        conversation("the first question"),
        told=told,
        spent=lambda _: None,
        scope=scope,
        deadline=time.monotonic() + 60,
    )


def _forget(cli: Cli) -> None:
    for file in (cli.home / ".local" / "state" / "bigbrain").rglob("known"):
        file.unlink()
