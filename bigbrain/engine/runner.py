"""The engine: executes the steps of runs.

One function runs anything: `Engine.run_step`. A Celery task, a thread of the
one-process mode and a test call it, and none of them knows more. A call that does
not name the step that is next does nothing, so a message that comes late, twice or
from nowhere is harmless.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from bigbrain.engine.leases import Leases
from bigbrain.engine.records import END, TRIGGERED, Claim, Outcome
from bigbrain.engine.runs import Runs
from bigbrain.engine.store import RunStore, write_error
from bigbrain.engine.writer import LogWriter, Tape
from bigbrain.errors import BrainError, RunCancelled, RunInterrupted, TriggerError, Unstorable
from bigbrain.events import Event, Failed, write_events
from bigbrain.messages import JSON
from bigbrain.scope import Scope

logger = logging.getLogger(__name__)


class Acts(Protocol):
    """Who does what a step says."""

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Does one step: what it tells live goes to `tape`, its whole effect is returned.

        Raises nothing: a step that fails has an outcome, too.
        """


class Engine:
    """Executes steps of a program's runs; one for each process, made after a fork."""

    def __init__(self, acts: Acts, runs: Runs, *, renewing: RunStore | None = None) -> None:
        """renewing: the same runs over a client that gives up before a lease is over."""
        self.acts = acts
        self.runs = runs
        self.store = runs.store
        self.writer = LogWriter(self.store)
        self.leases = Leases(renewing or self.store)

    def run_step(self, run_id: str, path: str, attempt: int) -> bool:
        """Executes one step of a run; whether the next message of its chain is of use.

        False as well when the step was not next, was lost to another worker, or
        decided where the run goes on: then a new chain is on its way.
        """
        claim = self.store.claim(run_id, path, attempt, self.leases.owner())
        if claim is None:
            logger.debug("run %s: step %s attempt %d is not next", run_id, path, attempt)
            return False
        if not self._serves(claim) and self.store.patient(run_id):
            # a message from before this version of the brain came: the run waits until its flow is served again
            self.store.later(claim, _unserved(claim, self.store.grace), failed=False)
            return False
        scope = Scope()
        if claim.stopped:
            scope.cancel(RunCancelled())
        tape = self.writer.open(
            run_id,
            claim.fence,
            seq=claim.seq,
            scope=scope,
            save=partial(self._save, claim, scope),
            rewind=partial(self._rewind, claim, scope),
        )
        with self.leases.hold(claim, scope):
            outcome = self.acts.run(claim, tape, scope)
            if isinstance(scope.error, RunInterrupted) or not self._commit(claim, tape, outcome):
                logger.warning("run %s: step %s is lost to this worker", run_id, path)
                return False
        return self._goes_on(claim, outcome)

    def _serves(self, claim: Claim) -> bool:
        try:
            self.runs.plans.ahead(claim.flow, claim.path)
        except KeyError:
            return False
        return True

    def _save(self, claim: Claim, scope: Scope, line: bytes) -> None:
        self._ours(self.store.save(claim, line), scope)

    def _rewind(self, claim: Claim, scope: Scope, seq: int) -> None:
        self._ours(self.store.rewind(claim, seq), scope)

    @staticmethod
    def _ours(still: bool, scope: Scope) -> None:
        if not still:
            scope.cancel(RunInterrupted("the lease of this step was lost"))
        scope.check()

    def _commit(self, claim: Claim, tape: Tape, outcome: Outcome) -> bool:
        left = tape.take()
        try:
            return self._put(claim, tape, outcome, left)
        # what has no JSON was never sent, and a run must not lapse again and again for it
        except (TypeError, ValueError) as exc:
            return self.store.commit(claim, _unwritten(claim, outcome, exc), tape.seq + 1)

    def _put(self, claim: Claim, tape: Tape, outcome: Outcome, left: tuple[Event, ...]) -> bool:
        if outcome.members:
            return self.store.spread(claim, outcome)
        if outcome.again is not None:
            # what was told of the failed attempt stays told: the next one goes on from there
            return self._written(claim, tape, left) and self.store.later(claim, outcome)
        if outcome.deferred:
            try:
                if not self.runs.schedules.put_off(claim, outcome.deferred):
                    return False
            except TriggerError as exc:
                outcome = _ended(claim, outcome, exc)
        whole = replace(outcome, events=(*left, *outcome.events)) if left else outcome
        return self.store.commit(claim, whole, tape.seq + 1)

    def _written(self, claim: Claim, tape: Tape, left: tuple[Event, ...]) -> bool:
        if not left:
            return True
        lost, _ = self.store.append([(claim.run_id, claim.fence, tape.seq + 1, write_events(left))])
        return not lost

    def _goes_on(self, claim: Claim, outcome: Outcome) -> bool:
        for member in outcome.members:
            # one that is under way already is left alone; one whose message was lost is sent by `wake`
            self.runs.start(member)
        if outcome.members or outcome.again is not None:
            return False
        if claim.parent and outcome.status != "running":
            self.runs.wake()
        firing = claim.flow.startswith(TRIGGERED) and not claim.parent
        if firing and outcome.status == "running" and outcome.next == END:
            # closed here and not by a message, because another firing may wait for the end of this one
            self.runs.finish(claim.run_id)
            self.runs.settle(claim.run_id)
            return False
        if outcome.status != "running":
            self._stop_members(claim)
            if firing:
                self.runs.settle(claim.run_id)
            return False
        steps, closed = self.runs.plans.ahead(claim.flow, claim.path)
        if len(steps) == 1 and not closed:
            self.runs.send(claim.run_id, claim.flow, outcome.next, 1)
            return False
        return True

    def _stop_members(self, claim: Claim) -> None:
        for number, member in enumerate(claim.members):
            if member.status in ("queued", "running"):
                self.store.stop(f"{claim.run_id}.{claim.path}.{number}")

    def hand_back(self) -> int:
        """Gives up all steps under way; those of durable flows go on elsewhere at once, others fail. How many."""
        count = self.leases.hand_back()
        if count:
            self.runs.wake()
        return count

    def close(self) -> None:
        """Ends this process's threads; steps that are still under way lapse."""
        self.leases.close()
        self.writer.close()


def _unwritten(claim: Claim, outcome: Outcome, cause: Exception) -> Outcome:
    """The end of a run whose step came to something that cannot be put on record."""
    error = Unstorable(f"step {claim.path} came to something that has no JSON: {cause}")
    logger.warning("run %s: %s", claim.run_id, error)
    return _ended(claim, outcome, error)


def _ended(claim: Claim, outcome: Outcome, error: BrainError) -> Outcome:
    """The end of a run whose step is done, but what it came to is not taken."""
    told = outcome.answered and not outcome.events
    return Outcome(
        next=claim.path,
        state=claim.state,
        events=() if told else (Failed.of(error),),
        answered=told,
        status="failed",
        error=write_error(error),
        done={"path": claim.path, "attempt": claim.attempt, "result": error.code},
    )


def _unserved(claim: Claim, seconds: float) -> Outcome:
    """A step that this process does not know, to be looked at again after so many seconds."""
    done: dict[str, JSON] = {"path": claim.path, "attempt": claim.attempt, "result": "not_served"}
    return Outcome(next=claim.path, state=claim.state, again=seconds, done=done)
