"""Where requests become runs: whoever serves a brain gives it requests here and follows the answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from bigbrain.brain import Brain
from bigbrain.engine.channels import Follower, Hub
from bigbrain.engine.records import NewRun
from bigbrain.engine.runs import Runs
from bigbrain.errors import Conflict
from bigbrain.events import Started
from bigbrain.messages import Request
from bigbrain.program import Program
from bigbrain.states import RunState


class Begun(NamedTuple):
    """A run that has begun: the first event of its answer, and who follows the others."""

    started: Started
    follower: Follower


class Reception:
    """Takes the requests for one brain in one process."""

    def __init__(self, brain: Brain, program: Program, runs: Runs, hub: Hub) -> None:
        self.brain = brain
        self.program = program
        self.runs = runs
        self.hub = hub

    def served(self) -> dict[str, int]:
        """Every flow that is served, the default first, with the second since 1970 in which this deployment first did."""
        return self.runs.store.first_served(list(self.brain.flows))

    @contextmanager
    def receive(self, request: Request, run_id: str, now: float) -> Iterator[Begun]:
        """Starts a run for a request and follows it while the block runs; leaving the block leaves the run alone.

        now: seconds since 1970. Raises `Conflict` when the run id is taken.
        """
        started = Started(run_id, self.brain.route(request.model), int(now))
        with self.hub.follow(run_id, seq=1) as follower:
            if not self.runs.start(self._run(request, started), self.hub.channel):
                raise Conflict(f"the run id `{run_id}` is taken; send the request under a new one")
            yield Begun(started, follower)

    def _run(self, request: Request, started: Started) -> NewRun:
        flow = started.model
        return NewRun(
            id=started.id,
            flow=flow,
            plan=self.program.fingerprint(flow),
            cursor=self.program.first(flow),
            first=started,
            request=msgspec.json.encode(request),
            state=msgspec.json.encode(RunState()),
        )
