"""The CLI finds what it needs in its environment, and nothing that was not meant for it."""

from __future__ import annotations

from pathlib import Path

from bigbrain.orchestrator.claude_code.environment import CLOSED, QUIET, environment, state_folder

OURS = {
    "HOME": "/home/ada",
    "PATH": "/bin",
    "HTTPS_PROXY": "http://proxy",
    "CLAUDE_CODE_OAUTH_TOKEN": "the CLI's own login",
    "ANTHROPIC_API_KEY": "ours",
    "ANTHROPIC_AUTH_TOKEN": "ours",
    "ANTHROPIC_BASE_URL": "ours",
    "OPENAI_API_KEY": "ours",
    "BIG_BRAIN_KEYS": "ours",
    "DATABASE_URL": "ours",
    "NODE_OPTIONS": "--require /tmp/spy.js",
    "LD_PRELOAD": "/tmp/spy.so",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "LANG": "",
}


def test_only_what_it_needs_is_handed_on() -> None:
    given = environment(OURS)

    assert {name: value for name, value in given.items() if name not in (*QUIET, *CLOSED)} == {
        "HOME": "/home/ada",
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "CLAUDE_CODE_OAUTH_TOKEN": "the CLI's own login",
    }


def test_it_talks_to_nobody_but_its_model_and_reads_no_file_for_it() -> None:
    given = environment({})

    assert given["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == given["DISABLE_AUTOUPDATER"] == "1"
    assert given["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"


def test_what_was_meant_for_it_reaches_it() -> None:
    given = environment(OURS, api_key="k", server_url="http://h", max_tokens=5, more={"TERM": "x", "AWS_REGION": "eu"})

    assert given["ANTHROPIC_API_KEY"] == "k"
    assert given["ANTHROPIC_BASE_URL"] == "http://h"
    assert given["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "5"
    assert given["TERM"] == "x"
    assert given["AWS_REGION"] == "eu"


def test_the_login_of_the_cli_is_not_for_a_server_whose_key_is_given() -> None:
    assert "CLAUDE_CODE_OAUTH_TOKEN" not in environment(OURS, api_key="k", server_url="http://elsewhere")


def test_there_is_always_a_path() -> None:
    assert environment({})["PATH"]


def test_sessions_are_remembered_in_the_users_home_or_where_it_says() -> None:
    usual = Path("/home/ada/.local/state/bigbrain/claude-code")

    assert state_folder({"HOME": "/home/ada"}) == usual
    assert state_folder({"HOME": "/home/ada", "XDG_STATE_HOME": "/var/state"}) == Path(
        "/var/state/bigbrain/claude-code"
    )
    assert state_folder({"HOME": "/home/ada", "XDG_STATE_HOME": "relative"}) == usual
