"""A run's live events in another process: one subscription serves all whom this process relays.

Each process that relays has one channel. A run knows the channels of its followers,
so an event goes once to each process, and joining a run costs no subscription: one
script reads the log and joins, and whatever comes later is told.

Pub/sub forgets: a connection that was cut, or a reader that was too slow, leaves a
gap in the numbers of the log. A follower that sees one, that hears of a new
subscription, or that has heard nothing for some seconds reads the log again. So
every event arrives exactly once and in order, whatever becomes of the connection.

What a step told before its worker was lost may be taken back, when the next attempt tells something else. A follower
that has given some of it on ends with an error; one that has `whole` set begins anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Literal, TypeAlias
from uuid import uuid4

import redis

from bigbrain.engine.marks import is_mark, kept_before
from bigbrain.engine.records import LogId
from bigbrain.engine.server import subscribed
from bigbrain.engine.store import RunStore
from bigbrain.errors import BrainError, RunExpired, RunInterrupted
from bigbrain.events import Event, Failed, Finished, read_events

logger = logging.getLogger(__name__)

SILENCE = 5.0
"""Seconds without news after which a follower reads the log: each costs one round trip."""

BEGINNING = 1
"""The entry that opens each log: what is known of a run before anything is told."""

Entry: TypeAlias = tuple[LogId, list[Event]]
"""An entry of a run's log and its events."""

_Mail: TypeAlias = tuple[LogId, bytes] | Literal["again", "nudge"] | BrainError


class Follower:
    """One reader of one run's log, for one thread."""

    def __init__(self, hub: Hub, run_id: str, last: LogId) -> None:
        self.run_id = run_id
        self._last = last
        self._hub = hub
        self._mail: SimpleQueue[_Mail] = SimpleQueue()
        self._heard = time.monotonic()
        self._over = False
        self.whole = False
        """Whether the reader has given nothing on yet, so that the answer may begin anew."""
        self.anew = False
        """Whether it did: what was read before no longer counts. For the reader to unset."""
        self._sure = True
        """Whether the log is known to hold what was read; not so while a server that came back could not be asked."""
        self._known = time.monotonic()
        self.revive: Callable[[], None] | None = None
        """Starts the run anew, or raises why not, when a server that was killed has forgotten it altogether."""

    @property
    def seq(self) -> int:
        """The last entry that was read: what a client needs to go on from here elsewhere."""
        return self._last.seq

    def post(self, mail: _Mail) -> None:
        """Hands over news, from any thread."""
        self._mail.put(mail)

    def nudge(self) -> None:
        """Makes a `read` that waits return at once, from any thread."""
        self._mail.put("nudge")

    def read(self, timeout: float) -> list[Event]:
        """The events that came next, in order; none when none came within `timeout` seconds or on a nudge.

        Raises `RunExpired` when the run's log is gone, or what `revive` raises then.
        """
        return events_of(self.read_entries(timeout))

    def read_entries(self, timeout: float) -> list[Entry]:
        """As `read`, with the events in the entries of the log that hold them."""
        until = time.monotonic() + timeout
        while True:
            left = min(until, self._heard + SILENCE) - time.monotonic()
            try:
                mail = self._mail.get(timeout=max(0.0, left))
            except Empty:
                if time.monotonic() >= self._heard + SILENCE and (entries := self._catch_up()):
                    return entries
                if time.monotonic() >= until:
                    return []
                continue
            if mail == "nudge":
                return []
            if entries := self._take(mail):
                return entries

    def _take(self, mail: tuple[LogId, bytes] | Literal["again"] | BrainError) -> list[Entry]:
        if isinstance(mail, BrainError):
            self._over = True
            return [(self._last, [Failed.of(mail)])]
        if mail == "again":
            return self._catch_up()
        told, line = mail
        if told.seq <= self.seq and self._sure:
            return []
        if told.seq != self.seq + 1 or not self._sure:
            return self._catch_up()
        self._heard = self._known = time.monotonic()
        if is_mark(line):
            return self._taken_back(told, line)
        self._last = told
        return [(told, self._read(line))]

    def catch_up(self) -> list[Event]:
        """What the log holds after the last entry that was read; none while the server is away."""
        return events_of(self._catch_up())

    def _catch_up(self) -> list[Entry]:
        self._heard = time.monotonic()
        try:
            status, lines = self._look()
        except (redis.ConnectionError, redis.TimeoutError) as exc:
            logger.warning("the log of run %s cannot be read: %s", self.run_id, exc)
            self._sure = False
            return []
        self._sure = True
        entries: list[Entry] = []
        for told, line in lines:
            if is_mark(line):
                entries += self._taken_back(told, line)
                if self._over or self.anew:
                    return entries
                continue
            self._last = told
            entries.append((told, self._read(line)))
        # a reader that had the end already, and says so in its `seq`, will not get another one
        self._over = self._over or status not in ("queued", "running")
        return entries

    def _look(self) -> tuple[str, list[tuple[LogId, bytes]]]:
        """The run's status and its log after the last entry that was read; a run that was forgotten is there again."""
        found = self._hub.store.follow(self.run_id, self._hub.channel, self._last)
        if found is None and self.revive is not None and time.monotonic() - self._known < self._hub.store.kept:
            # it cannot have been over for that long: the server was killed before the run was written to its disk
            self.revive()
            found = self._hub.store.follow(self.run_id, self._hub.channel, self._last)
        if found is None:
            raise RunExpired
        self._known = time.monotonic()
        return found

    def _taken_back(self, told: LogId, mark: bytes) -> list[Entry]:
        """What it means for this reader that entries before a mark are gone."""
        kept = kept_before(mark)
        if self.seq <= kept:
            self._last = told
            return []
        if self.whole:
            self._last, self.anew = LogId(BEGINNING), True
            self.post("again")
            return []
        self._last, self._over = told, True
        # whoever goes on from here elsewhere goes on from what still counts
        return [(LogId(kept), [Failed.of(RunInterrupted())])]

    def _read(self, line: bytes) -> list[Event]:
        events = read_events(line)
        self._over = self._over or any(isinstance(event, (Finished, Failed)) for event in events)
        return events

    @property
    def over(self) -> bool:
        """Whether the answer's last event was read, now or before entry `seq`."""
        return self._over


def events_of(entries: list[Entry]) -> list[Event]:
    """The events of entries; a single one, as most that come live are, is not copied."""
    return entries[0][1] if len(entries) == 1 else [event for _, events in entries for event in events]


class Hub:
    """The followers of this process and their one subscription; start it after a fork, not before."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.channel = f"bb:web:{uuid4().hex}"
        self._followers: dict[str, set[Follower]] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        threading.Thread(target=self._listen, name="relay", daemon=True).start()

    def __len__(self) -> int:
        """How many followers there are."""
        return sum(len(followers) for followers in list(self._followers.values()))

    @contextmanager
    def follow(self, run_id: str, seq: int = 0, fence: int = 0) -> Iterator[Follower]:
        """A follower of a run, from entry `seq` of its log on; `fence`: who wrote that entry, if it is known.

        To follow a run from its start, enter this first, then start the run with
        `hub.channel` as its follower: no event can come in between. To join a run
        that is under way, call `catch_up` on the follower.
        """
        follower = Follower(self, run_id, LogId(seq, fence))
        with self._lock:
            self._followers.setdefault(run_id, set()).add(follower)
        try:
            yield follower
        finally:
            self._leave(follower)

    def _leave(self, follower: Follower) -> None:
        with self._lock:
            others = self._followers[follower.run_id]
            others.discard(follower)
            if not others:
                del self._followers[follower.run_id]
        if not others and not follower.over:
            try:
                self.store.unfollow(follower.run_id, self.channel)
            except redis.RedisError as exc:
                logger.warning("run %s could not be left: %s", follower.run_id, exc)
            # who has joined meanwhile joins once more, for the channel they share has just been taken out
            for newer in tuple(self._followers.get(follower.run_id, ())):
                newer.post("again")

    def dismiss(self, error: BrainError) -> None:
        """Ends what every follower reads with an error; the runs go on, and may be followed elsewhere."""
        self._post_all(error)

    def close(self) -> None:
        """Has the subscription end, which takes it up to a second."""
        self._closing.set()

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                with subscribed(self.store.client, self.channel) as subscription:
                    while not self._closing.is_set():
                        message = subscription.get_message(timeout=1.0)
                        if message is not None:
                            self._hear(message["type"], message["data"])
            except redis.RedisError as exc:
                if not self._closing.is_set():
                    logger.warning("the relay lost its subscription: %s", exc)
                self._closing.wait(0.1)

    def _hear(self, kind: str, data: bytes | int) -> None:
        if isinstance(data, int):
            # a subscription has just begun, perhaps anew: what was told meanwhile is only in the logs
            if kind == "subscribe":
                self._post_all("again")
            return
        for told in data.split(b"\n"):
            run_id, entry, line = told.split(b" ", 2)
            for follower in tuple(self._followers.get(run_id.decode(), ())):
                follower.post((LogId.read(entry), line))

    def _post_all(self, mail: _Mail) -> None:
        with self._lock:
            everyone = [follower for followers in self._followers.values() for follower in followers]
        for follower in everyone:
            follower.post(mail)
