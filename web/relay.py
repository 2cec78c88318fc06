"""One run's events on their way to one client: followed, folded, written as frames.

This is the path that every token takes, so it is short: one `read` of the
follower, one fold and one write for each event, one chunk for all that came together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec.structs import replace

from bigbrain.engine.channels import Entry, Follower, events_of
from bigbrain.engine.records import LogId
from bigbrain.errors import BrainError, RunExpired, RunInterrupted
from bigbrain.events import Event, Failed, Finished, fold
from bigbrain.messages import Request, Response, Usage
from bigbrain.wire import Dialect
from web.departures import Client

logger = logging.getLogger(__name__)

HEARTBEAT_EVERY = 10.0
"""Seconds of silence after which a stream says that it lives. Proxies cut a silent connection after 60 s, Codex after 300 s."""

STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    # nginx would gather a stream before it hands it on
    "X-Accel-Buffering": "no",
}

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Source(Protocol[T_co]):
    """Where what a stream tells comes from, such as a `Relay`."""

    run_id: str

    @property
    def over(self) -> bool:
        """Whether the last was read."""

    @property
    def left(self) -> bool:
        """Whether the client has gone, so that nothing is of use to it."""

    def read(self) -> Sequence[T_co]:
        """What came next; nothing after a silence and when the client has left."""


class Writer(Protocol[T_contra]):
    """Who writes what a stream tells, such as `Frames`."""

    @property
    def heartbeat(self) -> bytes:
        """What keeps a silent stream alive."""

    def write(self, told: Iterable[T_contra]) -> bytes:
        """The frames that tell of it, as one chunk."""

    def write_failed(self, failed: Failed) -> bytes:
        """The frames with which a stream ends that cannot go on."""


class Relay:
    """What one client is still to be told of one run."""

    def __init__(
        self,
        follower: Follower,
        client: Client,
        silence: float = HEARTBEAT_EVERY,
        saw: Callable[[Sequence[Event]], None] = lambda _: None,
        *,
        free: bool = False,
        whole: bool = False,
    ) -> None:
        """silence: seconds after which a `read` returns without an event. saw: told of what is read, if anything is.

        free: the answer cost nothing this time, and says so. whole: the client gets it in one piece, so it may begin anew.
        """
        self.run_id = follower.run_id
        self._silence = silence
        self.over = False
        """Whether the answer's last event was read."""
        self._follower = follower
        self._client = client
        self._saw = saw
        self._free = free
        follower.whole = whole
        client.nudge = follower.nudge

    @property
    def left(self) -> bool:
        """Whether the client has gone, so that nothing is of use to it."""
        return self._client.left

    def read(self) -> list[Event]:
        """The events that came next; none after a silence and when the client has left."""
        events = events_of(self.read_entries())
        if self._free:
            events = [replace(event, usage=Usage()) if isinstance(event, Finished) else event for event in events]
        if events:
            self._saw(events)
        return events

    def gather(self, events: list[Event]) -> None:
        """As `read`, added to `events`, of which all but the first are taken back when the answer begins anew."""
        told = self.read()
        if self._follower.anew:
            self._follower.anew = False
            del events[1:]
        events += told

    def read_entries(self) -> list[Entry]:
        """As `read`, with the events in the entries of the log that hold them, and nobody told of them."""
        if self._client.left:
            # it may have gone before anybody was there to be nudged
            return []
        try:
            entries = self._follower.read_entries(self._silence)
            self.over = self._follower.over
        except (RunExpired, RunInterrupted) as exc:
            entries = [(LogId(self._follower.seq), [Failed.of(exc)])]
            self.over = True
        return entries


class Frames:
    """Writes the frames of one answer."""

    def __init__(self, dialect: Dialect, asked: Request, skip: int = 0) -> None:
        """skip: how many frames the client has already."""
        self._dialect = dialect
        self._write_event = dialect.write_event
        self._asked = asked
        self._so_far = Response()
        self._sent = 0
        self._skip = skip

    @property
    def heartbeat(self) -> bytes:
        """What keeps the stream alive after what was written so far."""
        return self._dialect.write_heartbeat(self._so_far, self._asked, self._sent)

    def write(self, events: Iterable[Event]) -> bytes:
        """The frames that tell of these events, as one chunk; empty where the dialect says nothing of them."""
        frames: list[bytes] = []
        for event in events:
            self._so_far = fold(self._so_far, event)
            frames += self._write_event(event, self._so_far, self._asked, self._sent + len(frames))
        known = max(0, self._skip - self._sent)
        self._sent += len(frames)
        return b"".join(frames[known:] if known else frames)

    def write_failed(self, failed: Failed) -> bytes:
        """The frame with which an answer ends that cannot go on."""
        return self.write([failed])


class Stream(Generic[T]):
    """The body of a streamed answer: one item for each write.

    An object and not a generator, because a server may close it before its first item is
    taken, and leaving the run must not depend on that.
    """

    def __init__(self, relay: Source[T], frames: Writer[T], first: bytes, leave: Callable[[], None]) -> None:
        """first: what is written at once. leave: called once, before the last item is handed out or when it is cut."""
        self._relay = relay
        self._frames = frames
        self._first = first
        self._leave = leave
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        while self._first or not self._ended:
            if chunk := self._next():
                return chunk
        raise StopIteration

    def _next(self) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            if self._relay.over:
                self.close()
            return first
        try:
            return self._told()
        # whatever is wrong here ends this answer, and the client is to hear so and not to see a broken connection
        except Exception:
            logger.exception("run %s: the stream broke", self._relay.run_id)
            self.close()
            return self._frames.write_failed(Failed.of(BrainError()))

    def _told(self) -> bytes:
        told = self._relay.read()
        if self._relay.left:
            self.close()
            return b""
        if self._relay.over:
            # the client may close as soon as it has read the end, and that is no departure
            self.close()
        elif not told:
            return self._frames.heartbeat
        return self._frames.write(told)

    def close(self) -> None:
        """Leaves the run, which goes on; safe to repeat."""
        if not self._ended:
            self._ended = True
            self._leave()
