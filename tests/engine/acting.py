"""An engine's neighbours for its tests: a plan of numbered steps, what each does, a queue that only keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from bigbrain.engine.plan import Plan, Step
from bigbrain.engine.records import Claim, NewRun, Outcome, Terms
from bigbrain.engine.writer import Tape
from bigbrain.events import Started
from bigbrain.scope import Scope

Act = Callable[[Claim, Tape, Scope], Outcome]


def until(reached: Callable[[], object], seconds: float = 10.0) -> None:
    """Waits for a condition that another thread or process brings about."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "what the test waits for did not happen in time"
        time.sleep(0.002)


def new_run(run_id: str = "r1", flow: str = "main", *, durable: bool = False) -> NewRun:
    return NewRun(
        id=run_id,
        flow=flow,
        plan="f00d",
        cursor="0",
        first=Started(run_id, "m", 5),
        request=b"{}",
        state=b"{}",
        terms=Terms(durable=durable),
    )


def numbered(count: int) -> Plan:
    """A plan of so many steps in a row."""
    return Plan(tuple(Step(f"{n}", "main", ("agent",)) for n in range(count)))


class Plans:
    """The plans of flows, as an engine asks for them."""

    def __init__(self, **flows: Plan) -> None:
        self.flows = flows

    def ahead(self, flow: str, path: str) -> tuple[Sequence[Step], bool]:
        plan = self.flows[flow]
        steps = plan.ahead(path)
        return steps, not plan.leads_on(steps[-1].path)


class Acts:
    """What each step does, by its path; the last one's outcome ends the run, others go on."""

    def __init__(self, acts: Mapping[str, Act]) -> None:
        self.acts = acts
        self.done: list[tuple[str, str, int]] = []

    def run(self, claim: Claim, tape: Tape, scope: Scope) -> Outcome:
        self.done.append((claim.run_id, claim.path, claim.attempt))
        return self.acts[claim.path](claim, tape, scope)


class Kept:
    """A queue whose messages nobody takes: (run id, attempt, paths, closed)."""

    def __init__(self, *names: str) -> None:
        self.sent: list[tuple[str, int, tuple[str, ...], bool]] = []
        self._names = names

    def send(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        self.sent.append((run_id, attempt, tuple(step.path for step in steps), closed))

    def message(self, run_id: str, attempt: int, steps: Sequence[Step], *, closed: bool) -> None:
        """None: they are told by `send`."""

    def names(self) -> Sequence[str]:
        return self._names
