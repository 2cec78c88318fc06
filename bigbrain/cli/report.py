"""What is known of a brain without holding it: the answer of `bigbrain check --json`."""

from __future__ import annotations

import subprocess
import sys

import msgspec
from msgspec.structs import replace

from bigbrain.engine.records import Outlook
from bigbrain.errors import WiringError

IMPORT = 120
"""Seconds that importing a brain may take."""


class FlowRuns(msgspec.Struct, frozen=True):
    """What becomes of a flow's runs under way with this brain: how many of each `bigbrain.engine.records.Outlook`.

    `such`: the ids of some that would end.
    """

    flow: str
    resume: int = 0
    wait: int = 0
    discard: int = 0
    refuse: int = 0
    such: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        """How many would end because the brain is another one."""
        return self.discard + self.refuse

    def with_one(self, outlook: Outlook, run_id: str, most: int) -> FlowRuns:
        """The same with one run more; it is named if it would end and no more than `most` are."""
        named = outlook in ("discard", "refuse") and len(self.such) < most
        such = (*self.such, run_id) if named else self.such
        return replace(self, **{outlook: getattr(self, outlook) + 1}, such=such)


class Report(msgspec.Struct, frozen=True):
    """A brain's `name`, its `tree` drawn for people, its wiring `faults`, and whether it has steps for a `cpu` worker.

    `running`: its runs under way, by flow, if they were asked for.
    """

    name: str = ""
    tree: str = ""
    faults: tuple[str, ...] = ()
    cpu: bool = False
    running: tuple[FlowRuns, ...] | None = None

    @property
    def lossy(self) -> bool:
        """Whether runs under way would end because the brain is another one."""
        return any(flow.lost for flow in self.running or ())


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
