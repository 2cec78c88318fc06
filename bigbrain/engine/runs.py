"""The runs of one program: started, sent on their way, taken up again.

This is the half of the engine that executes nothing: a web process, a scheduler and
a worker all have it. Which steps are sent is always a projection of the plan from
where the run is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from bigbrain.engine.firing import Clockwork
from bigbrain.engine.plan import Step
from bigbrain.engine.records import END, Message, NewRun, Woken
from bigbrain.engine.schedules import ScheduleStore
from bigbrain.engine.store import RunStore

logger = logging.getLogger(__name__)


SOONEST = 0.1
"""Seconds between two looks of a process for what is due, at least, however much is due at every moment."""


class Plans(Protocol):
    """Who knows what comes next."""

    def ahead(self, flow: str, path: str) -> tuple[Sequence[Step], bool]:
        """The steps of a flow's plan from `path` on that are sure to come, and whether the run is to be closed after them.

        Not closed are steps after which a choice decides where the run goes on, or the steps after them are named anew,
        and a run's only step, whose commit is the end of it.

        Raises `KeyError` when this process has no such flow or step.
        """


class Queue(Protocol):
    """How the news that steps are next gets to whoever executes them."""

    def send(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """Has `steps` executed one after the other, the first one's attempt being `attempt`.

        closed: the run ends after them, so that `Runs.finish` is to follow.
        """

    def message(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> Message | None:
        """What `send` puts into a list of the runs' Redis, for whoever does so together with something else; None when it puts nothing there."""

    def names(self) -> Sequence[str]:
        """The Redis lists in which messages may wait."""


class Runs:
    """Starts the runs of a program and sends their steps."""

    def __init__(self, plans: Plans, store: RunStore, queue: Queue, schedules: ScheduleStore | None = None) -> None:
        """schedules: by default those of the same server, by its clock."""
        self.plans = plans
        self.store = store
        self.queue = queue
        self.schedules = schedules or ScheduleStore(store.client)
        self.clockwork: Clockwork | None = None
        """What fires when these runs wake, if they do."""

    def start(self, run: NewRun, follower: str = "") -> bool:
        """Starts a run; False when its id is taken.

        follower: the channel of a process that is told of its events from the second on. Raises `KeyError` when this
        process has no such flow or step; nothing was started then.
        """
        steps, closed = self._ahead(run.flow, run.cursor)
        message = self.queue.message(run.id, 1, steps, closed=closed)
        started = self.store.start(run, follower, message)
        if started and message is None:
            self.queue.send(run.id, 1, steps, closed=closed)
        return started

    def send(self, run_id: str, flow: str, path: str, attempt: int) -> None:
        """Sends the steps from `path` on. Raises `KeyError` when this process has no such flow or step."""
        steps, closed = self._ahead(flow, path)
        self.queue.send(run_id, attempt, steps, closed=closed)

    def _ahead(self, flow: str, path: str) -> tuple[Sequence[Step], bool]:
        return ((), True) if path == END else self.plans.ahead(flow, path)

    def retry(self, run_id: str) -> bool:
        """Has a run that failed or was stopped go on as `RunStore.retry` says; False when it is none of these."""
        retried = self.store.retry(run_id)
        if retried:
            self.wake()
        return retried

    def finish(self, run_id: str) -> bool:
        """Closes a run whose steps are all done; False when they are not, or when it was closed before."""
        closed = self.store.finish(run_id)
        if closed == 2:
            self.wake()
        return bool(closed)

    def wake(self) -> Woken:
        """Takes up what is due, wherever it was lost: the steps that were sent once more, and when to look again."""
        woken = self.store.wake(self.queue.names())
        for run_id, flow, path, attempt in woken.steps:
            try:
                self.send(run_id, flow, path, attempt)
            except KeyError:
                if self.store.patient(run_id):
                    continue
                # a worker that knows the flow goes on with it, any other ends the run: its client must not wait for ever
                logger.warning("run %s: this process has no step %s in flow %s", run_id, path, flow)
                self.queue.send(run_id, attempt, [Step(path, flow)], closed=False)
        if self.clockwork is None:
            return woken
        return woken._replace(pause=min(woken.pause, self.clockwork.tick()))

    def settle(self, run_id: str) -> None:
        """Looks after a firing whose run is over: what has waited for it starts now."""
        if self.clockwork is not None:
            self.clockwork.settle(run_id)

    def revive(self, scope: str, run_id: str) -> bool:
        """Has a firing that failed for good go on from its last commit; False when the scope has no such one."""
        return self.schedules.revive(scope, run_id) and self.retry(run_id)
