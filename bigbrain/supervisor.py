"""Keeps the processes of a small deployment running, and ends them without leaving anything.

One thread, the main one, decides; it waits on one queue for what happened: a signal, a child's
end, the web side's first good answer. A child that dies is started again after a pause that doubles up to
half a minute. At the end the web side goes first (it takes no more requests, open answers
finish), then the workers, beat and Flower together, then Redis, which the others need until
their last word. A second Ctrl-C kills everything at once.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol, assert_never

from bigbrain.errors import BrainError
from bigbrain.joined_log import JoinedLog
from bigbrain.processes import Child, Process

GIVE_UP = 3
"""Deaths of one child before the deployment was ready that end it: it would never become ready."""

READY = 60.0
"""Seconds in which the deployment must become ready."""

ASK = 0.1
"""Seconds between two questions whether it is."""

LOOK = 0.2
"""Seconds between two looks at the Redis server, which may be another process's child."""

KILLED = 5.0
"""Seconds that the kernel may take to end what was killed."""

NAME = "up"
"""The supervisor's own name in the log."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Server(Protocol):
    """A Redis server that is kept alive; `start` returns when it answers."""

    def alive(self) -> bool: ...

    def start(self) -> None: ...


@dataclass(frozen=True)
class Signalled:
    """Somebody wants us to end."""

    number: int


@dataclass(frozen=True)
class Ended:
    """A child's process ended; a negative status is the number of the signal that ended it."""

    process: Process
    status: int


@dataclass(frozen=True)
class Ready:
    """The deployment answers."""


Happening = Signalled | Ended | Ready


@dataclass
class BackOff:
    """How long to wait before the next start: 0.1 s, doubling to 30 s; ten seconds of life forgive all deaths.

    Meant for what dies as soon as it starts; what had begun to work and was killed is wanted back at once.
    """

    deaths: int = 0
    born: float = 0.0

    def pause(self, now: float) -> float:
        """Count a death at `now`; give the seconds to wait."""
        self.deaths = 1 if now - self.born > 10.0 else self.deaths + 1
        return min(30.0, 0.1 * 2.0 ** min(self.deaths - 1, 10))


@dataclass
class Seat:
    """The place of one child: its process, or `due`, the moment to start the next one."""

    child: Child
    process: Process | None = None
    due: float = 0.0
    back_off: BackOff = field(default_factory=BackOff)


class Supervisor:
    """Runs `stages` of children, starting them in this order and ending stage after stage.

    ready: tells whether the deployment answers, asked from a thread. on_ready: called once when it does.
    server: a Redis server to keep alive; whoever started it ends it. patience: seconds until all must be ready.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Child]],
        log: JoinedLog,
        *,
        ready: Callable[[], bool],
        on_ready: Callable[[], None],
        server: Server | None = None,
        patience: float = READY,
    ) -> None:
        self._stages = [[Seat(child) for child in stage] for stage in stages]
        self._log = log
        self._answers = ready
        self._on_ready = on_ready
        self._server = server
        self._server_due = 0.0
        self._server_back_off = BackOff()
        self._patience = patience
        # SimpleQueue, because a signal handler may interrupt its own thread inside `put`.
        self._happened: queue.SimpleQueue[Happening] = queue.SimpleQueue()
        self._ready = False
        self._closing = threading.Event()

    def run(self) -> None:
        """Run until a signal asks for the end; all children have ended when this returns or raises.

        Must be called on the main thread. Raises `BrainError`, with the log's last lines, when the
        deployment does not become ready.
        """
        with self._signals():
            try:
                self._keep()
            finally:
                self._end()

    def _keep(self) -> None:
        give_up_at = time.monotonic() + self._patience
        threading.Thread(target=self._ask, daemon=True).start()
        while True:
            now = time.monotonic()
            self._keep_server(now)
            self._start_due(now)
            match self._next(self._until_next(now)):
                case Signalled(number):
                    self._say(f"{signal.Signals(number).name}: stopping, answers in progress may finish")
                    return
                case Ended(process, status):
                    self._bury(process, status)
                case Ready():
                    self._ready = True
                    self._on_ready()
                case None:
                    pass
                case never:
                    assert_never(never)
            if not self._ready and time.monotonic() > give_up_at:
                raise self._never_ready(f"not ready after {self._patience:g} s")

    def _start_due(self, now: float) -> None:
        for seat in self._seats():
            if seat.process is None and seat.due <= now:
                seat.back_off.born = now
                seat.process = self._start(seat.child)

    def _start(self, child: Child) -> Process:
        return Process(
            child,
            line=lambda line: self._log.write(child.name, line),
            ended=lambda process, status: self._happened.put(Ended(process, status)),
        )

    def _bury(self, process: Process, status: int) -> None:
        now = time.monotonic()
        for seat in self._seats():
            if seat.process is not process:
                continue
            pause = seat.back_off.pause(now)
            seat.process, seat.due = None, now + pause
            name = seat.child.name
            if not self._ready and seat.back_off.deaths >= GIVE_UP:
                raise self._never_ready(f"`{name}` ended {GIVE_UP} times ({_how(status)}) before all was ready")
            self._say(f"{name} ended ({_how(status)}); starting it again in {pause:g} s")

    def _keep_server(self, now: float) -> None:
        if self._server is None or now < self._server_due or self._server.alive():
            return
        self._say("redis ended; starting it again")
        self._server_due = now + self._server_back_off.pause(now)
        self._server_back_off.born = now
        try:
            self._server.start()
        except BrainError as error:
            self._say(str(error))

    def _end(self) -> None:
        self._closing.set()
        hurry = False
        for stage in self._stages:
            hurry = self._end_stage([seat for seat in stage if seat.process], hurry=hurry)

    def _end_stage(self, seats: Sequence[Seat], *, hurry: bool) -> bool:
        """End these; tell whether somebody is in a hurry by now."""
        living = {seat.process: seat.child for seat in seats if seat.process}
        for process in living:
            process.terminate()
        deadline = time.monotonic() + max((child.grace for child in living.values()), default=0.0)
        while living and not hurry and (left := deadline - time.monotonic()) > 0:
            hurry = self._await_end(living, left)
        for process, child in living.items():
            self._say(f"{child.name} is killed{'' if hurry else f'; it did not end within {child.grace:g} s'}")
            process.kill()
        deadline = time.monotonic() + KILLED
        while living and (left := deadline - time.monotonic()) > 0:
            self._await_end(living, left)
        return hurry

    def _await_end(self, living: dict[Process, Child], seconds: float) -> bool:
        """Wait for the next happening; tell whether it was a Ctrl-C."""
        match self._next(seconds):
            case Ended(process):
                living.pop(process, None)
                # one of a later stage may end before its turn has come
                for seat in self._seats():
                    if seat.process is process:
                        seat.process = None
            case Signalled(signal.SIGINT):
                return True
            case Signalled() | Ready() | None:
                pass
        return False

    def _never_ready(self, why: str) -> BrainError:
        return BrainError("\n".join([f"{why}; the log's last lines:", *(f"  {line}" for line in self._log.tail())]))

    def _ask(self) -> None:
        while not self._closing.wait(ASK):
            if self._answers():
                self._happened.put(Ready())
                return

    def _next(self, seconds: float) -> Happening | None:
        try:
            return self._happened.get(timeout=seconds)
        except queue.Empty:
            return None

    def _until_next(self, now: float) -> float:
        due = (seat.due for seat in self._seats() if seat.process is None)
        return max(0.0, min([LOOK, *(moment - now for moment in due)]))

    def _seats(self) -> Iterator[Seat]:
        for stage in self._stages:
            yield from stage

    def _say(self, line: str) -> None:
        self._log.write(NAME, line)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  (a handler's signature)
        self._happened.put(Signalled(number))


def _how(status: int) -> str:
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"
