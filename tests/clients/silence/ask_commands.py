"""The commands: llm, aider, Claude Code and Codex, as they are in the folder `W`, each in a home of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from asking import BASE, KEY, MODEL, OPENAI, SILENCE, ask_all

W = Path(os.environ["W"])
LLM = W / "py-llm" / "bin" / "llm"
AIDER = W / "py-aider" / "bin" / "aider"
CLAUDE = W / "cli" / "node_modules" / "@anthropic-ai" / "claude-code" / "bin" / "claude.exe"
CODEX = W / "cli/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"

QUIET = [
    "--yes-always",
    "--no-git",
    "--no-check-update",
    "--no-show-model-warnings",
    "--no-analytics",
    "--no-pretty",
    "--map-tokens",
    "0",
    "--no-show-release-notes",
    "--no-detect-urls",
    "--no-gitignore",
]

CONFIG = f"""
model = "{MODEL}"
model_provider = "ours"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.ours]
name = "ours"
base_url = "{OPENAI}"
env_key = "OUR_KEY"
wire_api = "responses"
"""


def run(command: list[str], **env: str) -> object:
    """What a command says, in an empty home."""
    with tempfile.TemporaryDirectory(prefix="silence-") as home:
        # for Codex, which looks nowhere else
        (Path(home) / "config.toml").write_text(CONFIG, encoding="utf-8")
        homes = dict.fromkeys(("HOME", "CODEX_HOME", "LLM_USER_PATH"), home)
        done = subprocess.run(
            command,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "dumb", **homes, **env},
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * SILENCE + 120,
            check=False,
        )
        assert done.returncode == 0, f"status {done.returncode}: {done.stdout[-200:]} {done.stderr[-300:]}"
        return done.stdout


def llm(*words: str) -> object:
    return run([str(LLM), *words], ANTHROPIC_BASE_URL=BASE, ANTHROPIC_API_KEY=KEY)


def aider(*words: str) -> object:
    here = {"OPENAI_API_BASE": OPENAI, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_BASE": BASE, "ANTHROPIC_API_KEY": KEY}
    # it may ask nobody else
    away = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost", "AIDER_ANALYTICS_DISABLE": "1"}
    command = [str(AIDER), *words, "--message", "say hi", *QUIET]
    return run(command, LITELLM_LOCAL_MODEL_COST_MAP="True", **here, **away)


def claude() -> object:
    ours = {"ANTHROPIC_BASE_URL": BASE, "ANTHROPIC_API_KEY": KEY}
    silent = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
    return run([str(CLAUDE), "-p", "say hi", "--model", MODEL], **ours, **silent)


def codex() -> object:
    words = ["exec", "--skip-git-repo-check", "--disable", "plugins", "--disable", "apps"]
    return run([str(CODEX), *words, "say hi"], OUR_KEY=KEY)


OURS = ("openai", "endpoint", OPENAI, "hi", "-m", MODEL, "--key", KEY)
THEIRS = ("prompt", "hi", "-m", "anthropic/claude-opus-4-8")
ask_all(
    {
        "llm chat stream": partial(llm, *OURS),
        "llm chat": partial(llm, *OURS, "--no-stream"),
        "llm responses": partial(llm, *OURS, "--responses"),
        "llm anthropic stream": partial(llm, *THEIRS),
        "llm anthropic": partial(llm, *THEIRS, "--no-stream"),
        "aider openai stream": partial(aider, "--model", f"openai/{MODEL}"),
        "aider openai": partial(aider, "--model", f"openai/{MODEL}", "--no-stream"),
        "aider anthropic stream": partial(aider, "--model", "anthropic/claude-sonnet-4-5"),
        "aider anthropic": partial(aider, "--model", "anthropic/claude-sonnet-4-5", "--no-stream"),
        "Claude Code": claude,
        "Codex": codex,
    }
)
