"""A worker that dies, without anything dying: a step is left as it lies, and its lease is over.

A real worker that is killed leaves the same behind: a claimed step that nobody commits,
whose lease runs out. Only that the lease runs out at once here, so that no test waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bigbrain.compiling import Compiled
from bigbrain.engine.plan import Step
from bigbrain.engine.records import Claim, Outcome
from bigbrain.engine.runner import Acts
from bigbrain.engine.store import RunStore
from bigbrain.engine.writer import Tape
from bigbrain.events import write_events
from bigbrain.scope import Scope


class WorkerLost(BaseException):
    """Raised in the place of a worker's death: no handler of errors may hold it up, only the thread's end does."""


@dataclass
class _Crash:
    step: str
    left: int
    done: bool


class Mortal:
    """Does steps as another one does them, until it comes to one at which it is to die."""

    def __init__(self, acts: Acts, store: RunStore, flows: Mapping[str, Compiled]) -> None:
        """flows: the brain's, for the names of their steps."""
        self._acts = acts
        self._expiring = RunStore(store.client, lease=0.0)
        self._names = {
            (flow, path): frozenset(_names(flow, plan.step(path)))
            for flow, compiled in flows.items()
            for path, plan in compiled.plans.items()
        }
        self._crashes: list[_Crash] = []
        self._lock = threading.Lock()
        self.deaths = 0
        """How often it has died."""

    def die_at(self, step: str, *, times: int, done: bool) -> None:
        """Has it die the next `times` that it comes to a step: before its work, or when the work is `done`.

        Raises `ValueError` when no step goes by that name.
        """
        if not any(step in names for names in self._names.values()):
            known = ", ".join(f"`{name}`" for name in sorted(set().union(*self._names.values())))
            raise ValueError(f"no step goes by `{step}`; steps go by {known}")
        with self._lock:
            self._crashes.append(_Crash(step, times, done))

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        """Does one step, or dies."""
        crash = self._due(claim)
        if crash is not None and not crash.done:
            self._die(claim)
        outcome = self._acts.run(claim, tape, scope)
        if crash is not None:
            # what was said is told before the death, however busy the thread is that writes it
            if told := tape.take():
                self._expiring.append([(claim.run_id, claim.fence, tape.seq + 1, write_events(told))])
            self._die(claim)
        return outcome

    def _due(self, claim: Claim) -> _Crash | None:
        names = self._names.get((claim.flow, claim.path), frozenset())
        with self._lock:
            for crash in self._crashes:
                if crash.left > 0 and crash.step in names:
                    crash.left -= 1
                    return crash
        return None

    def _die(self, claim: Claim) -> None:
        with self._lock:
            self.deaths += 1
        self._expiring.renew([(claim.run_id, claim.fence)])
        raise WorkerLost


def _names(flow: str, step: Step) -> Iterable[str]:
    """What a step goes by: its path, the ids around it, its agents."""
    yield step.path
    yield from filter(None, step.flow.removeprefix(flow).split("/"))
    yield from step.agents
