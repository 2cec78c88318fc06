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
from collections.abc import Callable, Iterable

import redis

from bigbrain.engine.store import RunStore
from bigbrain.errors import RunCancelled, RunError, RunInterrupted
from bigbrain.events import Delta, Event, write_events
from bigbrain.scope import Scope

GATHER = 0.002
"""Seconds between two writes of a busy process: adds at most this to a token's way."""
PENDING = 20_000
"""Events of one step that may wait for Redis; a step that is further ahead is held back."""

LOST = "the lease of this step was lost"


class Tape:
    """The log of one claimed step, to be written to."""

    def __init__(
        self,
        writer: LogWriter,
        run_id: str,
        fence: int,
        *,
        seq: int,
        scope: Scope,
        save: Callable[[bytes], None],
        rewind: Callable[[int], None],
    ) -> None:
        self.run_id = run_id
        self.fence = fence
        self.seq = seq
        self.scope = scope
        self._writer = writer
        self._save = save
        self._rewind = rewind

    def save(self, line: bytes) -> None:
        """Puts by what a later attempt of this step must not do again; returns once it would survive this process.

        Raises what the scope was cancelled with, as it is when the step is no longer ours.
        """
        self._save(line)

    def rewind(self) -> None:
        """Takes back what earlier attempts of this step told; nothing may have been written before.

        Raises what the scope was cancelled with, as it is when the step is no longer ours.
        """
        self._rewind(self.seq + 1)
        self.seq += 1

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

    def open(
        self,
        run_id: str,
        fence: int,
        *,
        seq: int,
        scope: Scope,
        save: Callable[[bytes], None] = lambda _: None,
        rewind: Callable[[int], None] = lambda _: None,
    ) -> Tape:
        """A tape for a claimed step whose log ends with entry `seq`.

        save: puts a line by for later attempts. rewind: takes back what was told since the last commit, and leaves
        a mark as the entry of that number.
        """
        return Tape(self, run_id, fence, seq=seq, scope=scope, save=save, rewind=rewind)

    def put(self, tape: Tape, event: Event) -> None:
        """Has an event of a tape written; waits while too many of it are pending."""
        with self._changed:
            waiting = self._pending.get(tape)
            if waiting is None:
                self._pending[tape] = [event]
                self._changed.notify_all()
                return
            waiting.append(event)
            full = len(waiting) > PENDING
        if full:
            # a step that is stopped while it is held back goes on at once, to hear so
            with tape.scope.guard(self._nudge), self._changed:
                self._changed.wait_for(lambda: tape.scope.cancelled or self._closed or tape not in self._pending)

    def take(self, tape: Tape) -> tuple[Event, ...]:
        """What is pending of a tape, once nothing of it is in flight."""
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

    def _nudge(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _flush(self) -> None:
        lines: dict[str, tuple[Tape, bytes]] = {}
        for tape, events in self._in_flight.items():
            other = lines.get(tape.run_id, (tape, b""))[0]
            if other is not tape:
                # an answer names the run only: the step that lost it must not speak for the one that has it
                min(tape, other, key=lambda one: one.fence).scope.cancel(RunInterrupted(LOST))
                if other.fence > tape.fence:
                    continue
            try:
                lines[tape.run_id] = (tape, write_events(merged(events)))
            except (TypeError, ValueError) as exc:
                tape.scope.cancel(RunError(f"an event cannot be written as JSON: {exc}"))
        self._append(list(lines.values()))

    def _append(self, lines: list[tuple[Tape, bytes]]) -> None:
        batch = [(tape.run_id, tape.fence, tape.seq + 1, line) for tape, line in lines]
        while batch:
            if self._closed:
                # whether the batch arrived is not known, so nobody may go on from here
                for tape, _ in lines:
                    tape.scope.cancel(RunInterrupted("this process ends before the log was written"))
                return
            try:
                lost, stopped = self._store.append(batch)
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(self._gather)  # the client itself has waited longer and longer between its tries
                continue
            except redis.RedisError as exc:
                self._refused(lines, exc)
                return
            for tape, _ in lines:
                tape.seq += 1
                if tape.run_id in lost:
                    tape.scope.cancel(RunInterrupted(LOST))
                if tape.run_id in stopped:
                    tape.scope.cancel(RunCancelled())
            return

    def _refused(self, lines: list[tuple[Tape, bytes]], exc: redis.RedisError) -> None:
        """The server does not want a batch: each line alone, so that a run that is at fault harms no other."""
        if len(lines) > 1:
            for line in lines:
                self._append([line])
            return
        for tape, _ in lines:
            tape.scope.cancel(RunError(f"the log could not be written: {exc}"))


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
