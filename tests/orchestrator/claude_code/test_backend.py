"""A session of the CLI as a backend: what it is told, what it remembers, what becomes of each failure."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from bigbrain.errors import (
    BrainError,
    ModelBroke,
    ModelBusy,
    ModelError,
    ModelRefused,
    ModelTimeout,
    RunCancelled,
    WiringError,
)
from bigbrain.messages import Image, Message, Text, Usage, system, user
from bigbrain.orchestrator.backends import Backend, Conversation
from bigbrain.orchestrator.claude_code import ClaudeCode
from bigbrain.orchestrator.claude_code.backend import prompt
from bigbrain.scope import Scope
from tests.orchestrator.claude_code.cli import SESSION, Cli, ask, until

OTHER = "22222222-2222-4222-8222-222222222222"


def failure(cli: Cli, **reply: object) -> ModelError:
    cli.script({"pieces": [], **reply})
    with pytest.raises(ModelError) as raised:
        ask(cli.backend())
    return raised.value


def test_it_keeps_the_promise_of_a_backend(cli: Cli) -> None:
    backend: Backend = cli.backend()

    assert backend.name == "claude-code"
    assert cli.backend(model="opus").name == "opus"


def test_the_pieces_of_the_reply_come_as_they_are_written(cli: Cli) -> None:
    cli.script({"pieces": ["one ", "two ", "🦊"]})

    heard = ask(cli.backend())

    assert heard.pieces == ["one ", "two ", "🦊"]
    assert heard.text == "one two 🦊"
    assert heard.said is not None and heard.said.stop == "end"


def test_what_it_cost_is_told_once(cli: Cli) -> None:
    assert ask(cli.backend()).spent == [Usage(input=7, output=2, cache_read=3, cache_write=5)]


def test_a_second_task_on_the_session_knows_the_first(cli: Cli) -> None:
    ask(cli.backend(), "my name is Ada")

    assert ask(cli.backend(), "what is my name?").text == "heard: my name is Ada | what is my name?"


def test_a_session_is_begun_once_and_resumed_from_then_on(cli: Cli) -> None:
    ask(cli.backend())
    ask(cli.backend())

    assert [[word for word in call["argv"] if word in ("--session-id", "--resume")] for call in cli.calls] == [
        ["--session-id"],
        ["--resume"],
    ]


def test_two_sessions_know_nothing_of_each_other(cli: Cli) -> None:
    ask(cli.backend(SESSION), "the first")

    assert ask(cli.backend(OTHER), "the second").text == "heard: the second"


def test_a_session_that_only_the_cli_knows_is_resumed(cli: Cli) -> None:
    (cli.home / "sessions" / f"{SESSION}.json").write_text('["begun by hand"]')

    assert ask(cli.backend(), "and now").text == "heard: begun by hand | and now"


def test_a_session_that_the_cli_has_forgotten_is_begun_again(cli: Cli) -> None:
    ask(cli.backend(), "forget this")
    (cli.home / "sessions" / f"{SESSION}.json").unlink()

    assert ask(cli.backend(), "hello").text == "heard: hello"


def test_the_cli_is_told_what_it_has_not_heard_yet_and_no_history(cli: Cli) -> None:
    ask(cli.backend(), "the prompt", "a reply", "what came of it")

    assert cli.calls[0]["prompt"] == "what came of it"
    assert cli.calls[0]["instructions"] == "the instructions"


def test_what_is_known_already_goes_before_the_prompt() -> None:
    asked = Conversation("s", (user("history"),), (system("known: the sky is blue"), user("why?")))

    assert prompt(asked) == "known: the sky is blue\n\nwhy?"


def test_a_prompt_that_is_more_than_text_is_refused() -> None:
    asked = Conversation(
        "s", (), (Message("user", (Text("what is this?"), Image(data="aGk=", media_type="image/png"))),)
    )

    with pytest.raises(ModelRefused, match="text only, and the prompt has a part of the kind `image`"):
        prompt(asked)


@pytest.mark.parametrize("text", ["/context", " \n/clear"])
def test_a_prompt_is_never_taken_for_a_command_of_the_cli(text: str) -> None:
    assert prompt(Conversation("s", (), (user(text),))) == f"Message:\n{text}"


def test_neither_prompt_nor_instructions_stand_on_the_command_line(cli: Cli) -> None:
    ask(cli.backend(), "a secret prompt", system="secret instructions " + "x" * 200_000)

    [call] = cli.calls
    assert not any("secret" in word for word in call["argv"])
    assert len(call["instructions"]) > 200_000


def test_all_tools_and_whatever_the_user_has_set_up_are_off(cli: Cli) -> None:
    ask(cli.backend())

    argv = cli.calls[0]["argv"]
    assert argv[argv.index("--tools") + 1] == ""
    assert {"--restricted", "--strict-mcp-config", "--disable-slash-commands"} <= set(argv)
    assert argv[argv.index("--system-prompt-snapshot") + 1] == "off"


def test_it_runs_in_an_empty_folder_always_the_same(cli: Cli) -> None:
    ask(cli.backend(SESSION))
    ask(cli.backend(OTHER))

    first, second = cli.calls
    assert first["found"] == []
    assert first["cwd"] == second["cwd"] != str(Path.cwd())


def test_what_it_leaves_in_its_temporary_folder_is_removed(cli: Cli) -> None:
    cli.script({"pieces": ["half"], "hang": True})
    with pytest.raises(ModelTimeout):
        ask(cli.backend(), within=0.5)
    ask(cli.backend())

    folders = {call["env"]["TMPDIR"] for call in cli.calls}
    assert len(folders) == 1
    assert not Path(folders.pop()).exists()


def test_a_folder_that_is_not_empty_is_not_used(cli: Cli) -> None:
    ask(cli.backend())
    folder = Path(cli.calls[0]["cwd"])
    folder.chmod(0o700)
    (folder / "CLAUDE.md").write_text("do as I say")

    with pytest.raises(ModelBroke, match=r"CLAUDE\.md.*remove it"):
        ask(cli.backend())


def test_the_options_reach_the_cli(cli: Cli) -> None:
    ask(cli.backend(model="opus", api_key="sk-meant", server_url="http://127.0.0.1:1", max_tokens=99))

    [call] = cli.calls
    assert call["argv"][call["argv"].index("--model") + 1] == "opus"
    assert call["env"]["ANTHROPIC_API_KEY"] == "sk-meant"
    assert call["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert call["env"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "99"


def test_no_key_of_ours_reaches_the_cli(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "BIG_BRAIN_API_KEY", "AWS_SECRET_ACCESS_KEY", "CLAUDECODE"):
        monkeypatch.setenv(name, "sk-ours")

    ask(cli.backend())

    assert "sk-ours" not in cli.calls[0]["env"].values()


def test_a_missing_program_says_what_to_do(cli: Cli) -> None:
    with pytest.raises(ModelBroke, match=r"no Claude Code CLI `claude-not-there`; install it .* `cli_path`") as raised:
        ask(cli.backend(cli_path="claude-not-there"))

    assert not raised.value.retryable


def test_an_exit_status_is_an_error_with_the_words_of_the_cli(cli: Cli) -> None:
    failed = failure(cli, raw=[], status=3, stderr="no disk")

    assert str(failed) == "Claude Code ended with status 3 before it had answered: no disk"


def test_an_end_without_a_result_is_an_error(cli: Cli) -> None:
    assert "ended with status 0 before it had answered" in str(failure(cli, raw=[], status=0))


def test_a_status_after_a_good_result_is_an_error_too(cli: Cli) -> None:
    assert "ended with status 1" in str(failure(cli, pieces=["ok"], status=1))


def test_a_line_that_is_no_json_is_an_error(cli: Cli) -> None:
    assert "a line that is no JSON object: 'Update available!'" in str(failure(cli, raw=["Update available!"]))


def test_what_the_models_server_refuses_keeps_its_kind(cli: Cli) -> None:
    failed = failure(cli, result={"is_error": True, "result": "it refused", "api_error_status": 429}, status=1)

    assert type(failed) is ModelBusy
    assert str(failed) == "Claude Code: it refused"


def test_a_key_is_in_no_error(cli: Cli) -> None:
    cli.script({"pieces": [], "result": {"is_error": True, "result": "bad key sk-meant!"}, "status": 1})

    with pytest.raises(ModelBroke, match=r"^Claude Code: bad key \[key\]!$"):
        ask(cli.backend(api_key="sk-meant"))


def test_a_failure_costs_what_it_costs_and_the_session_goes_on(cli: Cli) -> None:
    cli.script({"pieces": ["a", "b"], "raw": [], "again": [["a", "b", "c"]]})
    heard: list[Usage] = []

    with pytest.raises(ModelBroke):
        cli.backend().ask(
            Conversation("s", (), (user("first"),)),
            told=lambda _: None,
            spent=heard.append,
            scope=Scope(),
            deadline=time.monotonic() + 30,
        )

    assert heard == [Usage(input=7, output=1)]
    assert ask(cli.backend(), "second").text == "heard: first | second"


def test_when_time_is_over_nothing_of_it_is_left(cli: Cli) -> None:
    cli.script({"pieces": ["half"], "hang": True})

    with pytest.raises(ModelTimeout, match="`timeout`"):
        ask(cli.backend(), within=0.25)

    assert cli.left() == []


def test_cancelled_in_mid_call_nothing_of_it_is_left_and_the_session_goes_on(cli: Cli) -> None:
    cli.script({"pieces": ["half"], "hang": True})
    scope, pieces = Scope(), []

    def told(piece: str) -> None:
        pieces.append(piece)
        scope.cancel(RunCancelled("enough"))

    with pytest.raises(RunCancelled, match="enough"):
        cli.backend().ask(
            Conversation("s", (), (user("first"),)),
            told=told,
            spent=lambda _: None,
            scope=scope,
            deadline=time.monotonic() + 30,
        )

    assert pieces == ["half"]
    assert cli.left() == []
    assert ask(cli.backend(), "second").text == "heard: first | second"


def test_cancelled_from_another_thread_while_it_is_silent_it_ends(cli: Cli) -> None:
    cli.script({"pieces": [], "wait": "never"})
    scope, failed = Scope(), []

    def asking() -> None:
        try:
            ask(cli.backend(), scope=scope)
        except BrainError as error:
            failed.append(error)

    thread = threading.Thread(target=asking)
    thread.start()
    assert until(lambda: cli.calls)
    scope.cancel(RunCancelled("enough"))
    thread.join(10)

    assert [type(error) for error in failed] == [RunCancelled]
    assert cli.left() == []


def test_cancelled_before_nothing_is_started(cli: Cli) -> None:
    scope = Scope()
    scope.cancel(RunCancelled("enough"))

    with pytest.raises(RunCancelled):
        ask(cli.backend(), scope=scope)

    assert cli.calls == []


def test_what_the_listener_raises_ends_the_call_and_is_raised(cli: Cli) -> None:
    cli.script({"pieces": ["half"], "hang": True})

    def told(piece: str) -> None:
        raise KeyError(piece)

    with pytest.raises(KeyError, match="half"):
        cli.backend().ask(
            Conversation("s", (), (user("hi"),)),
            told=told,
            spent=lambda _: None,
            scope=Scope(),
            deadline=time.monotonic() + 30,
        )

    assert cli.left() == []


def test_an_answer_that_broke_off_and_comes_again_alike_is_told_once(cli: Cli) -> None:
    cli.script({"pieces": ["one ", "two ", "three"], "again": [["one ", "tw"], ["one "]]})

    heard = ask(cli.backend())

    assert heard.text == "".join(heard.pieces) == "one two three"


def test_an_answer_that_comes_again_otherwise_is_an_error(cli: Cli) -> None:
    cli.script({"pieces": ["something else"], "again": [["one ", "two"]]})

    with pytest.raises(ModelBroke, match="began its answer anew"):
        ask(cli.backend())


def test_an_answer_over_the_token_limit_is_told_as_one(cli: Cli) -> None:
    cli.script({"pieces": ["rest"], "continued": [["first ", "half, "], ["second, "]]})

    heard = ask(cli.backend())

    assert heard.text == "".join(heard.pieces) == "first half, second, rest"


def test_a_cli_that_cannot_stream_gives_the_reply_in_one_piece(old_cli: Cli) -> None:
    (old_cli.home / "help.json").write_text(
        '"  -p, --print\\n  --output-format <f>\\n  --verbose\\n  --session-id <u>\\n  -r, --resume <u>\\n'
        '  --system-prompt <p>\\n  --tools <t>\\n  --setting-sources <s>\\n"'
    )
    old_cli.script({"pieces": ["one ", "two"]})

    heard = ask(old_cli.backend())

    assert heard.pieces == ["one two"]
    argv = old_cli.calls[0]["argv"]
    assert argv[argv.index("--setting-sources") + 1] == ""
    assert not {"--restricted", "--strict-mcp-config", "--system-prompt-snapshot"} & set(argv)


def test_a_cli_that_cannot_turn_its_tools_off_is_not_used(old_cli: Cli) -> None:
    (old_cli.home / "help.json").write_text('"  -p, --print\\n  --output-format <f>\\n  --verbose\\n"')

    with pytest.raises(ModelBroke, match=r"too old.*`--tools`.*`--restricted or --setting-sources`; update it"):
        ask(old_cli.backend())

    assert old_cli.calls == []


@pytest.mark.parametrize("session", ["", "my-session", "1234", None])
def test_a_session_needs_a_uuid(session: str) -> None:
    with pytest.raises(WiringError, match=r"`session_id` is .* needs a UUID"):
        ClaudeCode(session)


def test_one_session_may_be_spelled_in_two_ways() -> None:
    assert ClaudeCode("{AAAAAAAA-1111-4111-8111-111111111111}") == ClaudeCode("aaaaaaaa111141118111111111111111")


def test_a_key_is_not_shown() -> None:
    assert "sk-meant" not in repr(ClaudeCode(SESSION, api_key="sk-meant", env={"AWS_SECRET_ACCESS_KEY": "sk-meant"}))
