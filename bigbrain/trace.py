"""What happens in a run, told as it happens to whoever wants to know; telling never fails a run.

`KINDS` lists what is told and with which details. Details are plain JSON values, tokens
are the fields of `Usage` that are not zero. Times are true: `at` is when it happened, on
the clock of the process that tells it, and a duration comes from a clock that never jumps.
A step that is lost to another worker after its end may be told of twice, once for each attempt.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec

from bigbrain.errors import BrainError, ModelBroke
from bigbrain.events import Delta, Event, Failed, Finished
from bigbrain.messages import JSON, Usage

logger = logging.getLogger(__name__)

KINDS: dict[str, tuple[str, ...]] = {
    # the run: put on record by the web tier or a trigger, ended by the worker that did its last step
    "run.start": ("model", "stream"),
    # `seconds`: since it was put on record
    "run.end": ("status", "code", "seconds"),
    # a schedule has started it; `due`: the instant that it answers for, in seconds since 1970
    "fired": ("due",),
    # one step of its plan; `waited`: seconds from when it was due until a worker had it
    "step.start": ("waited",),
    "step.end": ("seconds", "usage", "result"),
    # one flow, with what it spent itself and the code of what it failed with
    "flow.start": (),
    "flow.end": ("seconds", "usage", "error"),
    # something that failed and belongs to none of the others
    "error": ("code",),
    # what a flow decided; `at`: the fork that nothing was chosen for; `cached`: done before, and not done again
    "select": ("id",),
    "select.none": ("at",),
    "respond": (),
    "notify": ("to", "ok", "error"),
    "cached": (),
    # one question to a model; `first`: seconds to its first token, left out when none came
    "model.start": ("model",),
    "model.call": ("model", "seconds", "first", "usage", "stop", "error"),
    # one call of a tool's handler
    "tool.call": ("tool", "seconds", "error"),
    # a step failed and is to be tried again; a step's worker was lost and another one has it now
    "retry": ("code",),
    "recovered": ("lost",),
    # the trace itself: so many events of a process were given up
    "trace.dropped": ("count",),
}
"""Every kind of event and the fields that its `detail` may have."""


class TraceEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened: `kind` such as `flow.start`, where, and when (seconds since 1970)."""

    kind: str
    run: str
    at: float
    flow: str = ""
    path: str = ""
    attempt: int = 1
    detail: dict[str, JSON] = {}


class Tracer(Protocol):
    """Somebody who wants to know."""

    def trace(self, event: TraceEvent) -> None:
        """Hears of an event; may be called from any thread.

        Whoever tells waits for it: what takes longer than a few microseconds belongs behind an `Aside`.
        """


class TextStream(Protocol):
    """What JSON lines are written to: a file opened for text, `sys.stdout`."""

    def write(self, text: str, /) -> object:
        """Takes a text."""

    def flush(self) -> None:
        """Lets others see it."""


class JSONL:
    """A tracer that writes each event as one line of JSON, at once visible to whoever reads the stream."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def trace(self, event: TraceEvent) -> None:
        """Writes the event. Raises what the stream raises, and `TypeError` when a detail is not JSON."""
        line = msgspec.json.encode(event).decode() + "\n"
        with self._lock:
            self._stream.write(line)
            self._stream.flush()


class Trail:
    """The events of one place in one run, told to all tracers."""

    def __init__(
        self, tracers: Sequence[Tracer] = (), *, run: str = "", flow: str = "", path: str = "", attempt: int = 1
    ):
        self._tracers = tracers
        self._run = run
        self._flow = flow
        self._path = path
        self._attempt = attempt

    def at(self, *, flow: str, path: str) -> Trail:
        """The trail of another place in the same run."""
        return Trail(self._tracers, run=self._run, flow=flow, path=path, attempt=self._attempt)

    def tell(self, kind: str, **detail: JSON) -> None:
        """Tells of something that happens now; whatever a tracer raises is logged and forgotten.

        detail: as in `KINDS`, JSON values; a `usage` may be a `Usage`.
        """
        self.tell_of(time.time(), kind, **detail)

    def tell_of(self, moment: float, kind: str, **detail: JSON) -> None:
        """Tells of something that happened at a moment, in seconds since 1970; else as `tell`."""
        if not self._tracers:
            return
        if isinstance(usage := detail.get("usage"), Usage):
            detail["usage"] = msgspec.to_builtins(usage)
        event = TraceEvent(kind, self._run, moment, self._flow, self._path, self._attempt, detail)
        for tracer in self._tracers:
            try:
                tracer.trace(event)
            except Exception:
                logger.exception("a tracer failed on `%s`", kind)

    @contextmanager
    def timed(self, kind: str, **detail: JSON) -> Iterator[dict[str, JSON]]:
        """Tells of a block when it ends, with its `seconds`, and its `error` when it raises.

        Gives the event's details, to which the block may add.
        """
        began = time.perf_counter()
        try:
            yield detail
        except BaseException as exc:
            detail.setdefault("error", code_of(exc))
            raise
        finally:
            detail["seconds"] = time.perf_counter() - began
            self.tell(kind, **detail)

    def listen(self, model: str, events: Iterator[Event]) -> Iterator[Event]:
        """The same events of a model's answer, told of as `model.start` and `model.call`.

        An answer that is closed before its end has the error `closed`. Closing this closes `events`.
        """
        if not self._tracers:
            return events
        return self._listen(model, events)

    def _listen(self, model: str, events: Iterator[Event]) -> Iterator[Event]:
        call = _Call(self, model)
        try:
            for event in events:
                call.hear(event)
                yield event
            # nothing when the end was heard
            call.end(error=ModelBroke.code)
        except GeneratorExit:
            call.end(error="closed")
        except BaseException as exc:
            call.end(error=code_of(exc))
            raise
        finally:
            close = getattr(events, "close", None)
            if close is not None:
                close()


class _Call:
    """One question to a model while it is answered."""

    def __init__(self, trail: Trail, model: str) -> None:
        self._trail = trail
        self._model = model
        self._began = time.perf_counter()
        self._over = False
        self._first: float | None = None
        trail.tell("model.start", model=model)

    def hear(self, event: Event) -> None:
        if isinstance(event, Delta):
            if self._first is None:
                self._first = time.perf_counter() - self._began
        elif isinstance(event, Finished):
            # told here, because not every reader asks for more once it has the end
            self.end(stop=event.stop, usage=event.usage)
        elif isinstance(event, Failed):
            self.end(error=event.code)

    def end(self, **detail: JSON) -> None:
        if self._over:
            return
        self._over = True
        first = {} if self._first is None else {"first": self._first}
        seconds = time.perf_counter() - self._began
        self._trail.tell("model.call", model=self._model, seconds=seconds, **first, **detail)


def code_of(error: BaseException) -> str:
    """The word under which an exception is told: never its text, which may hold what nobody else should read."""
    match error:
        case BrainError():
            return error.code
        case _:
            return type(error).__name__
