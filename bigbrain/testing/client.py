"""A client of a brain that runs in the same process: web, queue and workers are all in here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import count
from typing import Self, TypeAlias
from uuid import uuid4

import fakeredis
import redis
from msgspec.structs import replace

from bigbrain.brain import Brain
from bigbrain.engine.channels import Hub
from bigbrain.engine.local import LocalQueue
from bigbrain.engine.records import TRIGGERED, RunRecord
from bigbrain.engine.runner import Engine
from bigbrain.engine.runs import Runs
from bigbrain.engine.schedules import ScheduleStore
from bigbrain.engine.store import RunStore
from bigbrain.events import Event, checked
from bigbrain.identity import OPEN
from bigbrain.initiative import with_initiative
from bigbrain.messages import Message, Request, user
from bigbrain.reception import Reception
from bigbrain.schedules import Schedules
from bigbrain.settings import Settings
from bigbrain.testing.answers import Answer, AnswerFailed
from bigbrain.testing.casting import Cast, cast
from bigbrain.testing.clock import Clock
from bigbrain.testing.crashes import Mortal
from bigbrain.trace import TraceEvent, Trail
from bigbrain.traced import Traced

LEASE = 2.0
"""Seconds: a busy machine may stop a test for most of one, and no crash has to wait for it; see `crashes`."""
WAKE = 0.05
"""Seconds between two looks for runs whose worker was lost."""

Asked: TypeAlias = str | Message | Sequence[Message] | Request
"""What a client may ask: a user's text, a message, a conversation, or a request with all its knobs."""


class Client:
    """One brain in this process and a client of it; a context manager, for any number of threads.

    >>> from bigbrain import Brain, FixedModel, Flow
    >>> with Client(Brain("jarvis", Flow(model=FixedModel("At your service.")))) as client:
    ...     client.chat("hello").text
    'At your service.'
    """

    def __init__(
        self,
        brain: Brain,
        *,
        models: Cast | None = None,
        settings: Settings | None = None,
        server: redis.Redis | None = None,
        now: Callable[[], float] = time.time,
        crash_at: str = "",
        patience: float = 20.0,
    ) -> None:
        """models: who answers for every model of the brain, or for each under its name; by default they themselves.

        settings: in the place of the environment, of which nothing is read; only `brain.memory` is what it is without
        a client, so give the brain a `MemStore`. server: a Redis to use, by default one of its own in this process.
        now: the time at which requests come, such as a `Clock`'s. crash_at: a step as for the method of that name.
        patience: seconds after which an answer or a run is given up.

        Raises `WiringError` with every fault of the brain's wiring.
        """
        settings = settings or Settings()
        played = brain if models is None else cast(brain, models, settings)
        program = played.program(settings)
        self._heard = _Heard()
        program.listen(self._heard)
        self._patience = patience
        self._now = now
        self._ids = (f"run-{number}" for number in count(1))
        store = RunStore(
            server or fakeredis.FakeRedis(server=fakeredis.FakeServer(), max_connections=1000), lease=LEASE, grace=LEASE
        )
        self._queue = LocalQueue()
        runs = Runs(program, store, self._queue, ScheduleStore(store.client, now=now))
        initiative = with_initiative(brain.name, program, runs, scope=OPEN)
        self._mortal = Mortal(program, store, played.compiled(settings))
        if crash_at:
            self.crash_at(crash_at)
        self.engine = Engine(Traced(self._mortal, program.tracers), runs)
        """Who executes the steps."""
        brain.schedules = Schedules(store.client, store=runs.schedules)
        self._process = f"test:{uuid4().hex}"
        initiative.begin(self._process)
        self._queue.attach(self.engine, every=WAKE)
        self.reception = Reception(brain, program, runs, Hub(store))
        """Where requests come in: what `web.create_app` needs for tests over HTTP."""

    def chat(self, asked: Asked, *, model: str = "", run_id: str = "") -> Answer:
        """The whole answer to a question; waits for it, not for what the brain does afterwards.

        model: the name of the flow to ask, by default the request's own. run_id: by default `run-1`, `run-2` …
        Raises `AnswerFailed` when the answer fails, `TimeoutError` when it does not come; `Conflict` when the run id
        is that of another request, `UnknownModel` when the brain is strict and has no such flow.
        """
        answer = self.ask(asked, model=model, run_id=run_id)
        if (failed := answer.failed) is not None:
            record = self.record(answer.run_id)
            raise AnswerFailed(failed, answer, record.error["detail"] if record.error else "")
        return answer

    def ask(self, asked: Asked, *, model: str = "", run_id: str = "") -> Answer:
        """As `chat`, but an answer that fails is an answer, too: look at its `failed`."""
        request = _request(asked)
        if model:
            request = replace(request, model=model)
        run_id = run_id or next(self._ids)
        return Answer(run_id, tuple(checked(self._follow(request, run_id))))

    def _follow(self, request: Request, run_id: str) -> list[Event]:
        until = time.monotonic() + self._patience
        with self.reception.receive(request, run_id, self._now()) as (started, follower, how):
            if how == "started":
                trail = Trail(self.reception.program.tracers, run=run_id, flow=started.model)
                trail.tell("run.start", model=request.model, stream=request.stream)
            events: list[Event] = [started]
            while not follower.over:
                left = until - time.monotonic()
                if left <= 0:
                    self._give_up(run_id, f"no end of its answer came; so far there are {len(events)} events")
                events += follower.read(left)
        return events

    def fire(
        self, trigger: str, *, payload: object = None, metadata: object = None, due: datetime | float | None = None
    ) -> Answer:
        """Fires a trigger by hand, whatever its kind and its time: what it says, once all of it is over.

        trigger: its id. payload, metadata: in the place of its seeds. due: the instant that it is to answer for, by
        default now. Raises `KeyError` when the brain has no such trigger, `TimeoutError` when its run does not end.
        """
        at = self._now() if due is None else Clock(due).now()
        return self._told(self.reception.fire(trigger, at, payload=payload, metadata=metadata, scope=OPEN))

    def fired(self, trigger: str, count: int = 1) -> list[Answer]:
        """What the first `count` firings of a trigger said, once all of them are over; let a `Clock` make it time for them.

        Raises `TimeoutError` when there are not so many.
        """
        until = time.monotonic() + self._patience
        while len(runs := self._firings(trigger)) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"`{trigger}` has fired {len(runs)} times in {self._patience} s, not {count} times")
            time.sleep(0.005)
        return [self._told(run) for run in runs[:count]]

    def _firings(self, trigger: str) -> list[str]:
        fired = [event for event in self._heard.events if event.kind == "fired" and event.flow == TRIGGERED + trigger]
        return [event.run for event in sorted(fired, key=lambda event: event.detail["due"])]

    def _told(self, run_id: str) -> Answer:
        self.record(run_id)
        with self.reception.hub.follow(run_id, 0) as follower:
            follower.post("again")
            events: list[Event] = []
            while not follower.over:
                events += follower.read(self._patience)
        return Answer(run_id, tuple(checked(events)))

    def record(self, run_id: str) -> RunRecord:
        """A run's record once all of it is over, what it does in the background as well.

        Raises `KeyError` when there is no such run, `TimeoutError` when it does not end.
        """
        until = time.monotonic() + self._patience
        while True:
            record = self.reception.runs.store.record(run_id)
            if record is None:
                raise KeyError(run_id)
            if record.status not in ("queued", "running"):
                return record
            if time.monotonic() > until:
                self._give_up(run_id, f"it is still {record.status} at step {record.cursor}")
            time.sleep(0.005)

    def trace(self, run_id: str) -> list[TraceEvent]:
        """What was told of a run so far, in order."""
        events = [event for event in self._heard.events if event.run == run_id]
        # a worker may be quicker to tell of the first step than we are to tell that the run has begun
        return sorted(events, key=lambda event: event.kind != "run.start")

    def crash_at(self, step: str, *, times: int = 1, done: bool = False) -> None:
        """Has the worker die the next `times` that it comes to a step.

        step: a path such as `1`, the id of a flow around it, or the name of its agent; members of a group are
        no steps of their own. done: it dies when the step's work is done and before it is on record.

        What follows is what follows in a deployment: a durable flow's step runs again, any other run
        fails with `run_interrupted`. Raises `ValueError` when no step goes by that name.
        """
        self._mortal.die_at(step, times=times, done=done)

    @property
    def crashes(self) -> int:
        """How often the worker has died."""
        return self._mortal.deaths

    def close(self) -> None:
        """Ends the threads; steps that are under way are done first, later ones are dropped."""
        self.reception.hub.close()
        self._queue.close()
        self.reception.runs.schedules.leave(self._process)
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _give_up(self, run_id: str, why: str) -> None:
        """Raises `TimeoutError`, and stops the run so that nothing waits for it any more."""
        self.reception.runs.store.stop(run_id)
        raise TimeoutError(f"run `{run_id}` is given up after {self._patience} s: {why}")


class _Heard:
    """A tracer that keeps what it hears."""

    def __init__(self) -> None:
        self._events: list[TraceEvent] = []
        self._lock = threading.Lock()

    def trace(self, event: TraceEvent) -> None:
        with self._lock:
            self._events.append(event)

    @property
    def events(self) -> list[TraceEvent]:
        with self._lock:
            return list(self._events)


def _request(asked: Asked) -> Request:
    match asked:
        case Request():
            return asked
        case str():
            return Request(messages=(user(asked),))
        case Message():
            return Request(messages=(asked,))
        case _:
            return Request(messages=tuple(asked))
