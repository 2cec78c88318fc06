"""OpenTelemetry, where it is wanted: what happens in runs as spans and metrics for a collector, or for the terminal.

Its packages are an extra, `bigbrain[telemetry]`, and are loaded only when `BIG_BRAIN_TELEMETRY` is set.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Protocol

from bigbrain.settings import Settings
from bigbrain.trace import Tracer


class Telemetry(Tracer, Protocol):
    """A tracer that sends what it hears of to somebody else."""

    def close(self) -> None:
        """Sends what is left, for a few seconds at most."""


def telemetry(settings: Settings, service: str) -> Telemetry | None:
    """The telemetry that the settings want; None, and nothing is loaded, when they want none.

    service: by which name the spans' sender is known, usually the brain's. Call it after a fork, once in a process:
    what the brain's own code sends by OpenTelemetry's API goes the same way from then on.
    """
    if not settings.telemetry:
        return None
    exported: Telemetry = resolve_name("bigbrain.spans:exported")(settings, service)
    return exported
