"""The scripts that leave clients without a word for ten minutes, run here for two seconds with those that are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.silence.__main__ import HERE
from tests.stack.deployment import deployed
from tests.upstream import Upstream

pytestmark = pytest.mark.slow


def test_clients_get_their_answer_after_a_silence(tmp_path: Path) -> None:
    scripts = ("ask_openai.py", "ask_anthropic.py", "ask_pydantic_ai.py")
    with Upstream() as upstream:
        quiet = {"UPSTREAM": upstream.url, "SILENCE": "2"}
        with deployed("up", "tests.clients.silence.brain", "--port", "0", data=tmp_path, **quiet) as deployment:
            env = {**os.environ, **quiet, "BASE_URL": deployment.url}
            asked = [
                subprocess.run([sys.executable, HERE / name], env=env, capture_output=True, text=True, timeout=60)
                for name in scripts
            ]

    assert [one.returncode for one in asked] == [0, 0, 0], [one.stdout + one.stderr for one in asked]
    assert sum(one.stdout.count("PASS ") for one in asked) == 14
