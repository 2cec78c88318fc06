"""What is due fires: which instants count, which runs start, what becomes of those that are over.

Nothing here trusts the process that it runs in: an instant is claimed by moving its schedule on in one script, the
firing is on record with that, and whoever looks next goes on where another has died. The run has an id that is
made of the schedule and the instant, so however many start it, it is one run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Protocol

from bigbrain.engine.cron import Cron
from bigbrain.engine.records import NewRun
from bigbrain.engine.schedules import Due, Firing, ScheduleStore, Start
from bigbrain.engine.zones import zone

logger = logging.getLogger(__name__)

PAGE = 100
"""Schedules that are read at once."""
PAGES = 50
"""Pages that one tick reads at most; what is left is next."""
BATCH = 500
"""Missed instants of one schedule that are made up for at once; the others are next."""
LATE = 10_000
"""Ms after which an instant that has not fired counts as missed."""


class Begins(Protocol):
    """Who makes the runs of firings."""

    def begin(self, run_id: str, start: Start) -> NewRun:
        """The run of a firing. Raises `KeyError` when this process has no such flow."""

    def fires(self, flow: str) -> bool:
        """Whether this process has a flow of that name for a trigger to start."""


class Clockwork:
    """Fires what is due. Any number of processes may have one; each instant fires once all the same."""

    def __init__(self, store: ScheduleStore, begins: Begins, start: Callable[[NewRun, int], object]) -> None:
        """start: starts a run that answers for an instant, and does nothing when there is one of its id."""
        self.store = store
        self._begins = begins
        self._start = start
        self.process = ""
        """What this process is called, if it counts as alive while it looks for what is due."""

    def tick(self) -> float:
        """Fires what is due now and looks after what has fired; the seconds until the next may be due, one at most."""
        skip, pause = 0, 1000
        for _ in range(PAGES):
            now, pause, rows = self.store.due(skip, PAGE, self.process)
            for row in rows:
                # who has its flow fires it; what nobody has stays
                if not self._begins.fires(row.flow) or not self._fire(row, now):
                    skip += 1
            if len(rows) < PAGE:
                break
        for run_id in self.store.look(PAGE * 2):
            self.settle(run_id)
        return pause / 1000

    def settle(self, run_id: str) -> None:
        """Looks after one firing: starts its run, or the next one when it is over."""
        following = self.store.settle(run_id)
        if following:
            self._begin(following)

    def _fire(self, row: Due, now: int) -> bool:
        """Moves a schedule on and begins its runs; False when it stays where it is."""
        try:
            instants, then = instants_of(row, now)
        except ValueError as exc:
            logger.error("schedule %s cannot fire: %s", row.id, exc)
            return False
        firings = [Firing(at, run_id_of(row.scope, row.id, at)) for at in instants]
        for run_id in self.store.fire(row, then, firings):
            self._begin(run_id)
        return True

    def _begin(self, run_id: str) -> None:
        start = self.store.firing(run_id)
        if start is None:
            return
        try:
            run = self._begins.begin(run_id, start)
        except KeyError:
            # a process that has the flow starts it when its time to be looked after has come
            logger.warning("run %s waits for a process that has the flow %s", run_id, start.flow)
            return
        self._start(run, start.due)
        self.store.started(run_id)


def instants_of(row: Due, now: int) -> tuple[list[int], int | None]:
    """The instants that a schedule fires for at `now`, and the next one that it has. All in ms since 1970.

    Raises `ValueError` when its record says no cron expression or time zone that there is.
    """
    if row.kind != "every":
        return [row.due], None
    cron = Cron(row.cron, zone(row.tz))
    if row.catch_up == "all":
        missed = [row.due, *islice(_between(cron, row.due, now), BATCH - 1)]
        return missed, _next(cron, missed[-1])
    latest = _latest(cron, row.due, now)
    on_time = row.catch_up == "latest" or now - latest <= LATE
    return [latest] if on_time else [], _next(cron, now)


def run_id_of(scope: str, schedule: str, due: int) -> str:
    """The id on record of the run that answers for an instant of a schedule, the same in every process."""
    at = datetime.fromtimestamp(due // 1000, UTC).strftime("%Y%m%dT%H%M%S")
    ms = f"-{due % 1000:03}" if due % 1000 else ""
    name = f"{schedule.replace('.', '~')}:{at}{ms}Z"
    return f"{scope}:{name}" if scope else name


def _between(cron: Cron, first: int, last: int) -> Iterator[int]:
    return (int(instant * 1000) for instant in cron.between(first / 1000, last / 1000))


def _next(cron: Cron, after: int) -> int | None:
    return next((int(instant * 1000) for instant in cron.after(after / 1000)), None)


def _latest(cron: Cron, first: int, last: int) -> int:
    """The last instant up to `last`; `first` is one. Looks back further and further, not through all there were."""
    for span in _spans():
        begin = max(first, last - span)
        *_, found = (begin if begin == first else None, *_between(cron, begin, last))
        if found is not None:
            return found
    return first


def _spans() -> Iterable[int]:
    """Ms: a minute, an hour, a day … and more than anybody waits."""
    return (60_000, 3_600_000, 86_400_000, 32 * 86_400_000, 366 * 86_400_000, 100 * 366 * 86_400_000)
