"""The benchmark still runs: no figure is judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("what", "row"), [("added", "x flask"), ("hops", "time of a hop")])
def test_a_quick_run_prints_its_figures(what: str, row: str) -> None:
    command = [sys.executable, "-m", "tests.bench", what, "--quick", "--rounds", "1"]
    done = subprocess.run(
        command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=110, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert row in done.stdout
