"""What happens in a run, told as it happens to whoever wants to know; telling never fails or slows a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

import msgspec

from bigbrain.messages import JSON

logger = logging.getLogger(__name__)


class TraceEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened: `kind` such as `flow.start`, where, and when (seconds since 1970)."""

    kind: str
    run: str
    at: float
    flow: str = ""
    path: str = ""
    attempt: int = 1
    detail: dict[str, JSON] = {}


class Tracer(Protocol):
    """Somebody who wants to know."""

    def trace(self, event: TraceEvent) -> None:
        """Hears of an event; must be quick, may be called from any thread."""


class Trail:
    """The events of one place in one run, told to all tracers."""

    def __init__(
        self, tracers: Sequence[Tracer] = (), *, run: str = "", flow: str = "", path: str = "", attempt: int = 1
    ):
        self._tracers = tracers
        self._run = run
        self._flow = flow
        self._path = path
        self._attempt = attempt

    def at(self, *, flow: str, path: str) -> Trail:
        """The trail of another place in the same run."""
        return Trail(self._tracers, run=self._run, flow=flow, path=path, attempt=self._attempt)

    def tell(self, kind: str, **detail: JSON) -> None:
        """Tells of something that happens now; whatever a tracer raises is logged and forgotten."""
        if not self._tracers:
            return
        event = TraceEvent(kind, self._run, time.time(), self._flow, self._path, self._attempt, detail)
        for tracer in self._tracers:
            try:
                tracer.trace(event)
            except Exception:
                logger.exception("a tracer failed on `%s`", kind)
