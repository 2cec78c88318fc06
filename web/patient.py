"""A whole answer that takes long: sent in its own time, with white space before it so that nobody takes it for dead.

An answer that is not streamed shows nothing until it is complete, and proxies cut a connection that shows
nothing for a minute. JSON may begin with white space, and every client reads over it. But what begins has a
status of 200, so this begins late; an answer that fails after that ends its connection in the midst,
which each client takes for an error, while the same request sent again is answered with the failure itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from bigbrain.events import Event, Failed
from web.relay import STREAM_HEADERS, Relay

BEATS = 4.5
"""Heartbeats of waiting after which the white space begins: 45 s by default, before the 60 s after which proxies cut."""

HEADERS = {**STREAM_HEADERS, "Content-Type": "application/json"}


class Broken(Exception):
    """Raised to end a connection whose answer has begun and cannot be completed."""


class Patient:
    """The body of a whole answer: blanks, then the document."""

    def __init__(
        self,
        relay: Relay,
        events: Sequence[Event],
        write: Callable[[list[Event]], bytes],
        heartbeat: float,
        leave: Callable[[], None],
    ) -> None:
        """events: what was read so far. write: makes the document of all events. leave: called once, at the end."""
        self._relay = relay
        self._events = list(events)
        self._write = write
        self._heartbeat = heartbeat
        self._leave = leave
        self._began = False
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._ended:
            raise StopIteration
        if not self._began:
            self._began = True
            return b" "
        return self._next()

    def _next(self) -> bytes:
        """The document when it is there, else a blank after a heartbeat."""
        until = time.monotonic() + self._heartbeat
        while not self._relay.over and time.monotonic() < until:
            self._relay.gather(self._events)
            if self._relay.left:
                self.close()
                raise StopIteration
        if not self._relay.over:
            return b" "
        self.close()
        last = self._events[-1]
        if isinstance(last, Failed):
            raise Broken(f"run {self._relay.run_id}: {last.code}: the answer had begun, so its connection is cut")
        return self._write(self._events)

    def close(self) -> None:
        """Leaves the run, which goes on; safe to repeat."""
        if not self._ended:
            self._ended = True
            self._leave()
