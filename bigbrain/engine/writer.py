"""The live end of a step: its events go to the run's log in batches that clock themselves.

Events pile up while a write is in flight, and the next write takes them all:
the first token after a pause leaves at once, a busy process gathers. All steps
of a process share one writer and so one round trip.

A batch keeps its numbers until Redis has said yes, so one that is sent again is
stored once. A step that has lost its lease writes nothing more and is told so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import redis

from bigbrain.engine.store import RunStore
from bigbrain.errors import RunCancelled, RunError, RunInterrupted
from bigbrain.events import Delta, Event, write_events
from bigbrain.scope import Scope

GATHER = 0.003
"""Seconds between two writes of a busy process: adds at most this to a token's way."""
PENDING = 20_000
"""Events of one step that may wait for Redis; a step that is further ahead is held back."""


class Tape:
    """The log of one claimed step, to be written to."""

    def __init__(self, writer: LogWriter, run_id: str, fence: int, *, seq: int, scope: Scope) -> None:
        self.run_id = run_id
        self.fence = fence
        self.seq = seq
        self.scope = scope
        self._writer = writer

    def write(self, event: Event) -> None:
        """Puts an event on its way.

        Raises what the scope was cancelled with: `RunCancelled`, or `RunInterrupted` when the lease is lost.
        """
        self.scope.check()
        self._writer.put(self, event)

    def take(self) -> tuple[Event, ...]:
        """The events that have not been written yet, which now are the caller's; `seq` counts those that have."""
        return self._writer.take(self)


class LogWriter:
    """Writes the logs of all steps of this process, from one thread."""

    def __init__(self, store: RunStore, gather: float = GATHER) -> None:
        self._store = store
        self._gather = gather
        self._pending: dict[Tape, list[Event]] = {}
        self._in_flight: dict[Tape, list[Event]] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="log writer", daemon=True)
        self._thread.start()

    def open(self, run_id: str, fence: int, *, seq: int, scope: Scope) -> Tape:
        """A tape for a claimed step whose log ends with entry `seq`."""
        return Tape(self, run_id, fence, seq=seq, scope=scope)

    def put(self, tape: Tape, event: Event) -> None:
        with self._changed:
            waiting = self._pending.get(tape)
            if waiting is None:
                self._pending[tape] = [event]
                self._changed.notify_all()
                return
            waiting.append(event)
            if len(waiting) > PENDING:
                self._changed.wait_for(lambda: tape not in self._pending or self._closed)

    def take(self, tape: Tape) -> tuple[Event, ...]:
        with self._changed:
            waiting = self._pending.pop(tape, [])
            self._changed.wait_for(lambda: tape not in self._in_flight)
            return tuple(merged(waiting))

    def close(self) -> None:
        """Ends the thread once nothing is in flight; what is pending is left to whoever takes it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=20)

    def _work(self) -> None:
        last = 0.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._pending or self._closed)
                if self._closed:
                    return
            pause = last + self._gather - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            with self._changed:
                self._in_flight, self._pending = self._pending, {}
                self._changed.notify_all()
            self._flush()
            last = time.monotonic()
            with self._changed:
                self._in_flight = {}
                self._changed.notify_all()

    def _flush(self) -> None:
        tapes = {tape.run_id: tape for tape in self._in_flight}
        batch = [
            (tape.run_id, tape.fence, tape.seq + 1, write_events(merged(events)))
            for tape, events in self._in_flight.items()
        ]
        while batch and not self._closed:
            try:
                lost, stopped = self._store.append(batch)
            except (redis.ConnectionError, redis.TimeoutError):
                continue  # the client itself waits longer and longer between its tries
            except redis.RedisError as exc:
                for tape in self._in_flight:
                    tape.scope.cancel(RunError(f"the log could not be written: {exc}"))
                return
            for tape in self._in_flight:
                tape.seq += 1
            for run_id in lost:
                tapes[run_id].scope.cancel(RunInterrupted("the lease of this step was lost"))
            for run_id in stopped:
                tapes[run_id].scope.cancel(RunCancelled())
            return


def merged(events: Iterable[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one part made one."""
    out: list[Event] = []
    texts: list[str] = []
    for event in events:
        if isinstance(event, Delta):
            texts.append(event.text)
            if len(texts) == 1:
                out.append(event)
            continue
        _join(out, texts)
        out.append(event)
    _join(out, texts)
    return out


def _join(out: list[Event], texts: list[str]) -> None:
    if len(texts) > 1 and isinstance(first := out[-1], Delta):
        out[-1] = Delta(first.index, "".join(texts))
    texts.clear()
