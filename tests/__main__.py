"""All checks, fastest first: lint, format, types, fast tests, slow tests; the first that fails ends it.

`python -m tests` runs everything, `python -m tests fast` leaves out the tests that need real servers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FAST = [
    ["ruff", "check", "."],
    ["ruff", "format", "--check", "."],
    ["mypy"],
    ["pytest", "-q", "-m", "not slow", "-n", "auto"],
]
ALONE = ["tests/chaos", "tests/stack/test_rolling.py", "tests/test_supervisor.py"]
"""Tests that load the machine, or watch processes of theirs by the second, want it for themselves; most others only wait."""

SLOW = [
    ["pytest", "-q", "-m", "slow", "-n", "3", "--dist", "loadfile", *(f"--ignore={path}" for path in ALONE)],
    ["pytest", "-q", "-m", "slow", *ALONE],
]


def main(arguments: list[str]) -> int:
    """The exit status of the first check that fails, else 0."""
    if arguments not in ([], ["fast"]):
        print(__doc__)
        return 2
    for command in FAST if arguments else FAST + SLOW:
        print("$", *command, flush=True)
        status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
