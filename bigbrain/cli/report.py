"""What is known of a brain without holding it: the answer of `bigbrain check --json`."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from bigbrain.errors import WiringError

IMPORT = 120
"""Seconds that importing a brain may take."""


class Report(msgspec.Struct, frozen=True):
    """A brain's `name`, its `tree` drawn for people, its wiring `faults`, and whether it has steps for a `cpu` worker."""

    name: str = ""
    tree: str = ""
    faults: tuple[str, ...] = ()
    cpu: bool = False


def examine(app: str) -> Report:
    """Give the report of the brain named `app`.

    It is asked of another process, so that this one need not hold the brain and all it imports.
    Raises `WiringError` with every fault when the brain has any or cannot be loaded.
    """
    command = [sys.executable, "-m", "bigbrain", "check", app, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT, check=False)
        # A brain's module may print while it is imported; the report is the last line.
        report = msgspec.json.decode((done.stdout.splitlines() or [""])[-1], type=Report)
    except subprocess.TimeoutExpired as error:
        raise WiringError(
            f"`{app}` is not imported after {IMPORT} s; what takes long belongs into a handler"
        ) from error
    except msgspec.DecodeError as error:
        raise WiringError(f"`{app}` cannot be loaded: {done.stderr.strip().removeprefix('Error: ')}") from error
    if report.faults:
        raise WiringError(*report.faults)
    return report
