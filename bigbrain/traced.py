"""Steps and runs as they are told: around whoever does a step, which is thereby free of it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bigbrain.engine.records import END, Claim, Outcome
from bigbrain.engine.runner import Acts
from bigbrain.engine.writer import Tape
from bigbrain.scope import Scope
from bigbrain.trace import Tracer, Trail


class Traced:
    """Does steps as another one does them, and tells of their start and end and of the end of their run."""

    def __init__(self, acts: Acts, tracers: Sequence[Tracer]) -> None:
        self._acts = acts
        self._tracers = tracers

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Does one step; it is told of before it is committed."""
        trail = Trail(self._tracers, run=claim.run_id, flow=claim.flow, path=claim.path, attempt=claim.attempt)
        if claim.lapses:
            trail.tell("recovered", lost=claim.lapses)
        trail.tell("step.start", waited=claim.waited / 1000)
        began = time.perf_counter()
        outcome = self._acts.run(claim, tape, scope)
        seconds = time.perf_counter() - began
        result = outcome.done.get("result", "done")
        trail.tell("step.end", seconds=seconds, usage=outcome.done.get("usage", {}), result=result)
        # both moments by the server's clock, and what has passed here since the later one
        whole = (claim.at - claim.begun) / 1000 + seconds
        if outcome.status != "running":
            code = "" if outcome.status == "done" else result
            trail.tell("run.end", status=outcome.status, code=code, seconds=whole)
        elif outcome.next == END:
            trail.tell("run.end", status="done", code="", seconds=whole)
        return outcome
