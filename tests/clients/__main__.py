"""Drives everything that asks a model against `bigbrain up`, and writes what came of it into README.md.

    python -m tests.clients DRIVERS [NAME …]

DRIVERS is a folder with `run_all.sh`, which runs a driver for each client against `BASE_URL` and prints `PASS` or `FAIL`
before each case; its `install.sh` puts the clients into the folder `W` (default `~/.cache/bigbrain-clients`). Named clients
are run alone, and then nothing is written. The exit status is 1 when a case fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.stack.deployment import ROOT, deployed
from tests.upstream import Upstream

INSTALLED = Path(os.environ.get("W", "~/.cache/bigbrain-clients")).expanduser()
README = ROOT / "README.md"
BEGIN, END = "<!-- clients -->", "<!-- /clients -->"

CLIENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "openai-py": ("py", ("openai",)),
    "anthropic-py": ("py", ("anthropic",)),
    "llm": ("py-llm", ("llm", "llm-anthropic")),
    "langchain": ("py-lc", ("langchain-openai", "langchain-anthropic")),
    "pydantic-ai": ("py-pa", ("pydantic-ai-slim",)),
    "instructor": ("py-inst", ("instructor",)),
    "agents": ("py-agents", ("openai-agents",)),
    "litellm": ("py-litellm", ("litellm",)),
    "aider": ("py-aider", ("aider-chat",)),
    "openai-js": ("js", ("openai",)),
    "anthropic-js": ("js", ("@anthropic-ai/sdk",)),
    "ai-sdk": ("js", ("ai", "@ai-sdk/openai", "@ai-sdk/anthropic")),
    "claude-code": ("cli", ("@anthropic-ai/claude-code",)),
    "codex": ("cli", ("@openai/codex",)),
}
"""Client → the folder it is installed in and the packages whose versions are told."""


def versions(folder: str, packages: tuple[str, ...]) -> Iterator[str]:
    """The packages with their versions, as they are installed."""
    for package in packages:
        manifest = INSTALLED / folder / "node_modules" / package / "package.json"
        if manifest.is_file():
            yield f"{package} {json.loads(manifest.read_text(encoding='utf-8'))['version']}"
        else:
            ask = [
                INSTALLED / folder / "bin" / "python",
                "-c",
                f"from importlib.metadata import version as v; print(v({package!r}))",
            ]
            yield f"{package} {subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()}"


def results(lines: list[str]) -> dict[str, Counter[str]]:
    """What became of each client's cases."""
    found: dict[str, Counter[str]] = {}
    name = ""
    for line in lines:
        if begun := re.match(r"##### (\S+)", line):
            name = begun[1]
            found[name] = Counter()
        elif word := re.match(r"(PASS|FAIL) ", line):
            found[name][word[1]] += 1
    return found


def table(found: dict[str, Counter[str]]) -> str:
    """The results as people read them."""
    rows = [
        f"| {', '.join(versions(*CLIENTS[name]))} | {cases['PASS']} | {cases['FAIL']} |"
        for name, cases in found.items()
    ]
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    return "\n".join([f"On {day}:", "", "| client | cases that pass | that fail |", "|---|---:|---:|", *rows])


def main(drivers: Path, names: list[str]) -> int:
    """The exit status: 0 when every case passed."""
    with tempfile.TemporaryDirectory(prefix="bb-clients-") as data, Upstream() as upstream:
        arguments = ("up", "tests.clients.brain", "--port", "0")
        with deployed(*arguments, data=Path(data), UPSTREAM=upstream.url) as deployment:
            env = {**os.environ, "W": str(INSTALLED), "BASE_URL": deployment.url, "MODEL": "stub-model"}
            command = ["bash", str(drivers / "run_all.sh"), *names]
            ran = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            lines = []
            assert ran.stdout is not None
            for line in ran.stdout:
                print(line, end="", flush=True)
                lines.append(line)
            ran.wait()
    found = results(lines)
    if not names:
        text = README.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        README.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    return 1 if any(cases["FAIL"] or not cases for cases in found.values()) else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
