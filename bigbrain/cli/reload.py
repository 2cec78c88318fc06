"""Runs a command again whenever a Python file of a folder changes, until Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from bigbrain.processes import LEASH

LOOK = 0.5
"""Seconds between two looks at the files."""

FILES_MAX = 5_000
"""Files that are looked at; more means that this is not a brain's folder, and looking would cost too much."""

GRACE = 10.0
"""Seconds that the command gets to end."""


def rerun_on_change(command: Sequence[str], folder: Path) -> None:
    """Run `command` again after each change of a Python file in `folder`; returns after Ctrl-C."""
    try:
        while True:
            _run_until_change(command, folder)
            click.echo("a file changed; starting again", err=True)
    except KeyboardInterrupt:
        pass  # the command, in the same terminal, was told as well


def _run_until_change(command: Sequence[str], folder: Path) -> None:
    before = stamps(folder)
    # On a leash: whoever ends this process ends the command too.
    with subprocess.Popen([sys.executable, "-I", "-S", LEASH, str(os.getpid()), *command]) as process:
        while stamps(folder) == before:
            time.sleep(LOOK)
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()


def stamps(folder: Path) -> dict[Path, int]:
    """Give the time of the last change of each Python file, hidden folders and virtual environments left out."""
    found: dict[Path, int] = {}
    for file in _python_files(folder):
        if len(found) >= FILES_MAX:
            break
        try:
            found[file] = file.stat().st_mtime_ns
        except FileNotFoundError:  # removed just now, which the next look tells
            continue
    return found


def _python_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and name != "__pycache__" and not (Path(place) / name / "pyvenv.cfg").exists()
        ]
        yield from (Path(place) / name for name in files if name.endswith(".py"))
