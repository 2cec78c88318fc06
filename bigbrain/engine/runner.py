"""The engine: starts runs, executes their steps, takes up what was lost.

One function runs anything: `Engine.run_step`. A Celery task, a thread of the
one-process mode and a test call it, and none of them knows more. A call that does
not name the step that is next does nothing, so a message that comes late, twice or
from nowhere is harmless.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol
from uuid import uuid4

from msgspec.structs import replace

from bigbrain.engine.leases import Leases
from bigbrain.engine.plan import Step
from bigbrain.engine.records import END, Claim, NewRun, Outcome
from bigbrain.engine.store import RunStore
from bigbrain.engine.writer import LogWriter, Tape
from bigbrain.errors import RunCancelled, RunInterrupted
from bigbrain.scope import Scope

logger = logging.getLogger(__name__)


class Program(Protocol):
    """What the engine executes."""

    def ahead(self, flow: str, path: str) -> tuple[Sequence[Step], bool]:
        """The steps of a flow's plan from `path` on that are sure to come, and whether they end the run.

        Raises `KeyError` when this process has no such flow or step.
        """

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Does one step: what it tells live goes to `tape`, its whole effect is returned.

        Raises nothing: a step that fails has an outcome, too.
        """


class Queue(Protocol):
    """How the news that steps are next gets to whoever executes them."""

    def send(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """Has `steps` executed one after the other, the first one's attempt being `attempt`.

        closed: the run ends after them, so that `Engine.finish` is to follow.
        """

    def names(self) -> Sequence[str]:
        """The Redis lists in which messages may wait."""


class Engine:
    """Executes the runs of one program; one for each process, made after a fork."""

    def __init__(self, program: Program, store: RunStore, queue: Queue, *, renewing: RunStore | None = None) -> None:
        """renewing: the same runs over a client that gives up within a quarter of a lease."""
        self.program = program
        self.store = store
        self.queue = queue
        self.writer = LogWriter(store)
        self.leases = Leases(renewing or store)
        self._name = uuid4().hex

    def start(self, run: NewRun, follower: str = "") -> bool:
        """Starts a run; False when its id is taken."""
        started = self.store.start(run, follower)
        if started:
            self.send(run.id, run.flow, run.cursor, 1)
        return started

    def send(self, run_id: str, flow: str, path: str, attempt: int) -> None:
        """Sends the steps from `path` on to the queue: the chain is a projection of the plan from there."""
        if path == END:
            self.queue.send(run_id, attempt, (), closed=True)
            return
        steps, closed = self.program.ahead(flow, path)
        self.queue.send(run_id, attempt, steps, closed=closed)

    def run_step(self, run_id: str, path: str, attempt: int) -> bool:
        """Executes one step of a run; whether the next message of its chain is of use.

        False as well when the step was not next, was lost to another worker, or
        decided where the run goes on: then a new chain is on its way.
        """
        claim = self.store.claim(run_id, path, attempt, f"{self._name}:{uuid4().hex}")
        if claim is None:
            logger.debug("run %s: step %s attempt %d is not next", run_id, path, attempt)
            return False
        scope = Scope()
        if claim.stopped:
            scope.cancel(RunCancelled())
        tape = self.writer.open(run_id, claim.fence, seq=claim.seq, scope=scope)
        with self.leases.hold(claim, scope):
            outcome = self.program.run(claim, tape, scope)
            if isinstance(scope.error, RunInterrupted) or not self._commit(claim, tape, outcome):
                logger.warning("run %s: step %s is lost to this worker", run_id, path)
                return False
        return self._goes_on(claim, outcome)

    def _commit(self, claim: Claim, tape: Tape, outcome: Outcome) -> bool:
        left = tape.take()
        whole = replace(outcome, events=(*left, *outcome.events)) if left else outcome
        return self.store.commit(claim, whole, tape.seq + 1)

    def _goes_on(self, claim: Claim, outcome: Outcome) -> bool:
        if outcome.status != "running":
            return False
        steps, closed = self.program.ahead(claim.flow, claim.path)
        if len(steps) == 1 and not closed:
            self.send(claim.run_id, claim.flow, outcome.next, 1)
            return False
        return True

    def finish(self, run_id: str) -> bool:
        """Closes a run whose steps are all done; False when they are not, or when it was closed before."""
        return self.store.finish(run_id)

    def wake(self) -> int:
        """Takes up what is due, wherever it was lost; how many steps were sent once more."""
        woken = self.store.wake(self.queue.names())
        for run_id, flow, path, attempt in woken:
            try:
                self.send(run_id, flow, path, attempt)
            except KeyError:
                # another process may know the flow; until one does, the run stays due
                logger.warning("run %s: this process has no step %s in flow %s", run_id, path, flow)
        return len(woken)

    def close(self) -> None:
        """Ends this process's threads; steps that are still under way lapse."""
        self.leases.close()
        self.writer.close()
