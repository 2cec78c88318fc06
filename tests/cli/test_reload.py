from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bigbrain.cli.reload import stamps

ROOT = Path(__file__).parents[2]


def test_only_the_brains_own_python_files_are_watched(tmp_path: Path) -> None:
    for name in ("brain.py", "parts/tools.py", "notes.txt", ".git/hook.py", "env/lib/x.py", "__pycache__/brain.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()

    assert set(stamps(tmp_path)) == {tmp_path / "brain.py", tmp_path / "parts" / "tools.py"}


@pytest.mark.slow
def test_a_change_starts_the_command_again(tmp_path: Path) -> None:
    brain = tmp_path / "brain.py"
    brain.write_text("import signal; print('first', flush=True); signal.pause()")
    code = (
        # a shell that starts the tests in its background has them ignore SIGINT
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "import sys; from pathlib import Path; from bigbrain.cli.reload import rerun_on_change; "
        "rerun_on_change([sys.executable, 'brain.py'], Path('.'))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as reloading:
        assert reloading.stdout is not None
        assert reloading.stdout.readline() == "first\n"

        brain.write_text("import signal; print('second', flush=True); signal.pause()")

        assert reloading.stdout.readline() == "second\n"
        os.killpg(reloading.pid, signal.SIGINT)
        assert reloading.wait(timeout=10) == 0
