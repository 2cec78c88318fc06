"""The real CLI, installed by npm outside of this repository, once per version and machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

VERSION = "2.1.332"
"""The version whose behaviour was measured; another one may be tried by changing it here."""


def real_cli() -> Path:
    """The program. Skips the test, and says why, where it cannot be installed."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("the real Claude Code CLI is installed by npm, and there is none; install Node.js 22 or later")
    folder = Path(tempfile.gettempdir()) / f"bigbrain-claude-code-{VERSION}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    program = folder / "node_modules" / ".bin" / "claude"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _runs(program):
            package = f"@anthropic-ai/claude-code@{VERSION}"
            command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
            _run(command, "npm cannot install the real Claude Code CLI")
    if not _runs(program):
        pytest.skip(f"the real Claude Code CLI was installed in {folder}, but does not run on this machine")
    return program


def _runs(program: Path) -> bool:
    if not program.exists():
        return False
    env = {"PATH": os.environ["PATH"], "HOME": str(program.parent)}
    done = subprocess.run([program, "--version"], env=env, capture_output=True, text=True, timeout=60, check=False)
    return VERSION in done.stdout


def _run(command: list[str], otherwise: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{otherwise}: it takes too long")
    if done.returncode != 0:
        pytest.skip(f"{otherwise}: {done.stderr[-300:]}")
