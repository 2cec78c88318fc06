"""Where requests become runs: whoever serves a brain gives it requests here and follows the answers.

One run answers one request, however often that is sent: a request under the id of a run
that is under way joins it, under that of one that is complete it gets the same answer again,
and under that of one that failed or was stopped it has it go on from its last step.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from bigbrain.brain import Brain
from bigbrain.engine.channels import Follower, Hub
from bigbrain.engine.firing import run_id_of
from bigbrain.engine.history import History
from bigbrain.engine.records import TRIGGERED, NewRun
from bigbrain.engine.runs import Runs
from bigbrain.engine.schedules import Start
from bigbrain.errands import ERRAND
from bigbrain.errors import BrainChanged, Busy, Conflict, RunExpired, RunInterrupted, by_code
from bigbrain.events import Started
from bigbrain.identity import fingerprint
from bigbrain.initiative import start_fired
from bigbrain.messages import Request
from bigbrain.program import Program
from bigbrain.triggers.seeds import seed_again

logger = logging.getLogger(__name__)

How: TypeAlias = Literal["started", "joined", "resumed", "replayed", "past"]
"""What a request did: started a run, joined one under way, had a failed one go on, got a complete answer again.
`past`: its run was done long ago, and nothing of it is left but that; only runs that are `remembered` come to this."""

TRIES = 4
"""How often a request looks at a run that is gone, or stopped, by the time it wants to join it."""
STOPPING = 2.0
"""Seconds that a run which is being stopped may take until it can go on for a client that has come back."""

HOPELESS = frozenset({BrainChanged.code, RunExpired.code})
"""Errors after which a run can never go on, so that its request starts a new one."""


class Keeping(NamedTuple):
    """What is to become of a run without its client, and of its record."""

    background: bool = False
    """Whether it goes on when nobody follows it."""
    seconds: float = 0.0
    """How long it stays on record when it is over; 0: as long as any other."""
    hidden: bool = False
    """Whether what it says is told only to whoever asks the same again."""


USUAL = Keeping()
"""What becomes of a run when nothing is said of it."""


class Begun(NamedTuple):
    """An answer that begins: its first event, who follows the others, and what the request did."""

    started: Started
    follower: Follower
    how: How


class Reception:
    """Takes the requests for one brain in one process."""

    def __init__(self, brain: Brain, program: Program, runs: Runs, hub: Hub) -> None:
        self.brain = brain
        self.program = program
        self.runs = runs
        self.hub = hub
        self.history = History(hub.store.client)

    def served(self) -> dict[str, int]:
        """Every flow that is served, the default first, with the second since 1970 in which this deployment first did."""
        return self.runs.store.first_served(list(self.brain.flows))

    def flow_of(self, request: Request) -> str:
        """The flow that answers a request: the one that it names, or that of errands, which passes for the other.

        Raises `WiringError` and `UnknownModel` as `Brain.route` does.
        """
        named = self.brain.route(request.model)
        rule = self.brain.errands
        return ERRAND if rule is not None and self.program.has(ERRAND) and rule(request) else named

    @contextmanager
    def receive(
        self,
        request: Request,
        run_id: str,
        now: float,
        *,
        scope: str = "",
        again: bool = False,
        keeping: Keeping = USUAL,
    ) -> Iterator[Begun]:
        """Starts a run for a request and follows it while the block runs; leaving the block leaves the run alone.

        When the id is that of a run for the same request, that one is followed from its beginning.

        run_id: the id on record, such as an `Identity`'s key. now: seconds since 1970. scope: whose runs it is listed
        among. again: the request is known to be this run's, sent once more and perhaps in other words; a failure that
        trying again cannot help is then told again. Raises `Conflict` when the id is that of a run for
        another request, `Busy` when that run is being stopped and does not end.
        """
        started = Started(run_id, self.brain.route(request.model), int(now))
        run = self._run(request, started, self.flow_of(request), scope)
        run = replace(run, kept=keeping.seconds, hidden=keeping.hidden)
        if keeping.background:
            run = replace(run, terms=replace(run.terms, lasting=True))
        with self.follow(run, again=again) as begun:
            yield begun

    @contextmanager
    def follow(self, run: NewRun, *, again: bool = False) -> Iterator[Begun]:
        """Starts a run, or joins the one that there is for the same request, and follows it while the block runs.

        again: as for `receive`. Raises `Conflict` and `Busy` as that does.
        """
        with self.hub.follow(run.id, seq=1) as follower:
            how, first = self.begin(run, self.hub.channel, again=again)
            if how != "started":
                follower.post("again")
            if how in ("started", "joined", "resumed"):
                follower.revive = partial(self._begin_again, run)
            yield Begun(first, follower, how)

    def begin(self, run: NewRun, channel: str = "", *, again: bool = False) -> tuple[How, Started]:
        """Starts a run, or sees to the one that there is for the same request: what was done, and its first event.

        channel: of a process that is told of its events. again: as for `receive`. Raises `Conflict` and `Busy` as `receive` does.
        """
        first = run.first
        if not isinstance(first, Started):
            raise TypeError(f"the first event of a run is `Started`, not `{type(first).__name__}`")
        for _ in range(TRIES):
            if self.runs.start(run, channel):
                return "started", first
            joined = self._join(run, again=again)
            if joined is not None:
                return joined
            if run.remembered and self.runs.store.remembers(run.id):
                return "past", first
        raise Busy("the run of this id is being stopped; try again", retry_after=1.0)

    def fire(
        self,
        trigger: str,
        due: float,
        *,
        payload: object = None,
        metadata: object = None,
        scope: str = "",
    ) -> str:
        """Starts a run of what a trigger starts, whatever its kind; the id of the run.

        due: the instant that it answers for, in seconds since 1970. payload, metadata: in the place of the trigger's
        seeds. scope: whose runs it is listed among. Raises `KeyError` when there is no such trigger.
        """
        standing = self.program.standing.get(trigger)
        request = seed_again(standing.request if standing else Request(), payload, metadata)
        run_id = f"{run_id_of(scope, trigger, int(due * 1000))}:{uuid4().hex[:8]}"
        start = Start(TRIGGERED + trigger, msgspec.json.encode(request), scope, int(due * 1000))
        start_fired(self.program, self.runs, self.program.begin(run_id, start), start.due)
        return run_id

    def _begin_again(self, run: NewRun) -> None:
        """Starts a run that the server has forgotten, since it was killed before it had written it to its disk.

        Raises `RunInterrupted` for one whose first step must not be done twice.
        """
        if not run.terms.durable:
            raise RunInterrupted
        logger.warning("run %s: the server has forgotten it; it begins again", run.id)
        self.runs.start(run, self.hub.channel)

    def _join(self, run: NewRun, *, again: bool) -> tuple[How, Started] | None:
        """What is done about a run that is there already; None when it is gone, or is to be looked at once more."""
        standing = self.history.join(run.id, run.fingerprint)
        if standing is None or not isinstance(standing.first, Started):
            return None
        if standing.fingerprint != run.fingerprint and not again:
            raise Conflict("the run id is taken by another request; send this one under a new id")
        if standing.complete:
            return "replayed", standing.first
        if standing.over and standing.code in HOPELESS:
            self.history.forget(run.id, standing.ended)
            return None
        if standing.status == "failed" and again and not by_code(standing.code, "").retryable:
            return "replayed", standing.first
        if standing.over:
            # of several that come at once, one has it go on and the others join
            self.runs.retry(run.id)
            return "resumed", standing.first
        if standing.stopping:
            self.history.wait_over(run.id, STOPPING)
            return None
        return "joined", standing.first

    def _run(self, request: Request, started: Started, flow: str, scope: str) -> NewRun:
        run = self.program.new_run(flow, started, request, scope=scope)
        return replace(run, fingerprint=fingerprint(request, flow))
