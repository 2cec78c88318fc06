"""Clients that leave before they have their answer, noticed at the socket and not at the next write.

One epoll for each process hears `EPOLLRDHUP` of every connection whose client waits:
nothing has to be written to find out, bytes that a client sends ahead are not taken
for a departure, and a stream costs no thread and no greenlet of its own. A client
that closes only its sending half counts as gone, as it does for nginx.

The same code serves threads and gevent. There the watching thread is a greenlet that
waits, by gevent's own `poll`, for the epoll to have something to say. Where there is
no epoll (macOS), a departure shows at the first write that fails: a heartbeat later.
"""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket

from gevent.monkey import get_original

IDLE = 10.0
"""Seconds without a client after which the watching thread ends; the next client starts it again."""

RDHUP = 0x2000
"""`EPOLLRDHUP`, which is not in `select` once gevent has patched it; the number is Linux's own."""
ONCE = 1 << 30
"""`EPOLLONESHOT`: one departure is told once."""


class Client:
    """One client that waits for an answer; `nudge` wakes whoever serves it when it leaves, and never waits for long."""

    def __init__(self) -> None:
        self.left = False
        """Whether it has left without its answer."""
        self.nudge: Callable[[], None] = _nobody

    def leave(self) -> None:
        """Notes that the client has gone, from any thread."""
        self.left = True
        self.nudge()


def _nobody() -> None:
    pass


class Departures:
    """Watches the connections of one process; it has no thread until a client is watched."""

    def __init__(self) -> None:
        # gevent takes epoll out of `select`, because waiting in it stops all greenlets; nothing here waits in it
        self._epoll = get_original("select", "epoll")() if sys.platform == "linux" else None
        self._clients: dict[int, set[Client]] = {}
        self._lock = threading.Lock()
        self._watching = False
        self._fresh = False

    @contextmanager
    def watch(self, connection: socket | None, client: Client) -> Iterator[None]:
        """Tells a client when its connection ends while the block runs; the block's end looks once more.

        That last look matters to a write that fails: then the client has gone, and nobody was told yet.
        """
        if connection is None or self._epoll is None:
            yield
            return
        descriptor = connection.fileno()
        self._add(descriptor, client)
        try:
            yield
        finally:
            self.look()
            self._remove(descriptor, client)

    def look(self) -> None:
        """Tells all whose connections have ended by now; never waits."""
        if self._epoll is None:
            return
        # each departure is given out once: whoever looks after that must wait until it has been told
        with self._lock:
            for descriptor, _ in self._epoll.poll(0):
                for client in self._clients.get(descriptor, ()):
                    client.leave()

    def _add(self, descriptor: int, client: Client) -> None:
        if self._epoll is None or descriptor < 0:
            client.leave()
            return
        with self._lock:
            # HTTP/2 carries several requests over one connection
            mates = self._clients.setdefault(descriptor, set())
            if not mates:
                self._epoll.register(descriptor, RDHUP | ONCE)
            mates.add(client)
            self._fresh = True
            if not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="departures", daemon=True).start()

    def _remove(self, descriptor: int, client: Client) -> None:
        with self._lock:
            mates = self._clients.get(descriptor, set())
            mates.discard(client)
            if mates:
                return
            self._clients.pop(descriptor, None)
            if self._epoll is not None:
                # a server that has closed the connection already has thereby taken it out
                with suppress(OSError, ValueError):
                    self._epoll.unregister(descriptor)

    def _watch(self) -> None:
        waiting = select.poll()
        if self._epoll is not None:
            waiting.register(self._epoll.fileno(), select.POLLIN)
        while self._goes_on():
            waiting.poll(IDLE * 1000)
            self.look()

    def _goes_on(self) -> bool:
        with self._lock:
            self._watching = bool(self._clients) or self._fresh
            self._fresh = False
            return self._watching
