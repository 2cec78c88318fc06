"""A brain that acts on its own: its schedules are put on record, what is due fires, boot tasks run when it comes up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from bigbrain.engine.firing import Clockwork, run_id_of
from bigbrain.engine.records import Deferred, NewRun
from bigbrain.engine.runs import Runs
from bigbrain.engine.schedules import Firing
from bigbrain.identity import OPEN, scope_of
from bigbrain.program import Program
from bigbrain.settings import Settings
from bigbrain.trace import Trail
from bigbrain.triggers.deferring import record
from bigbrain.triggers.specs import Endpoint, Startup
from bigbrain.triggers.standing import Standing


@dataclass(frozen=True)
class Initiative:
    """What one process does for a brain that acts on its own."""

    brain: str
    standing: Mapping[str, Standing]
    runs: Runs
    scope: str
    """Whose runs the brain's own firings are listed among."""

    def begin(self, process: str) -> None:
        """Puts the brain's schedules on record, and has the boot tasks run if no other process is up.

        process: what this one is called, alone among all that are up. Raises `redis.RedisError`.
        """
        schedules = self.runs.schedules
        now = schedules.now()
        schedules.stand(self.brain, self.scope, self._records())
        boots = [one.id for one in self.standing.values() if isinstance(one.deferral.trigger, Startup)]
        schedules.come_up(process, [(id, Firing(now, run_id_of(self.scope, id, now))) for id in boots])
        if self.runs.clockwork is not None:
            self.runs.clockwork.process = process

    def _records(self) -> list[Deferred]:
        return [
            record(one.deferral, one.request, one.id)
            for one in self.standing.values()
            if not isinstance(one.deferral.trigger, Endpoint)
        ]


def with_initiative(brain: str, program: Program, runs: Runs, scope: str) -> Initiative:
    """Has these runs fire what is due whenever they wake; the initiative is still to begin.

    scope: whose runs the brain's own firings are listed among.
    """
    runs.clockwork = Clockwork(runs.schedules, program, partial(start_fired, program, runs))
    return Initiative(brain, program.standing, runs, scope)


def start_fired(program: Program, runs: Runs, run: NewRun, due: int) -> None:
    """Starts the run of a firing and tells of it, unless it was started before. due: ms since 1970."""
    if runs.start(run):
        trail = Trail(program.tracers, run=run.id, flow=run.flow)
        trail.tell("run.start", model="", stream=False)
        trail.tell("fired", due=due / 1000)


def own_scope(settings: Settings) -> str:
    """The scope of the brain's own firings: that of the first key, which is the operator's, or of all without keys."""
    first = next(iter(settings.keys), None)
    return OPEN if first is None else scope_of(sha256(first.encode()).digest())
