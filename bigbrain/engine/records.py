"""What the engine hands out about a run: new runs, claimed steps, their outcomes, the record as read."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from bigbrain.events import Event
from bigbrain.messages import JSON

Status: TypeAlias = Literal["queued", "running", "done", "failed", "cancelled"]

Outlook: TypeAlias = Literal["resume", "wait", "discard", "refuse"]
"""What becomes of a run that is under way when another version of the brain takes over: it goes on; it waits until its flow
is served again; it ends with `brain_changed`, because its flow has another structure, or because there is no such flow."""

END = "finish"
"""The path of the step that closes every run; a plan has no step of that name."""


TRIGGERED = "trigger:"
"""What the names of flows begin with that triggers start; no other flow is named so."""


class LogId(NamedTuple):
    """An entry of a run's log: its number, and by whom it was written: the fence of that claim, 0 when it is not known."""

    seq: int
    fence: int = 0

    @classmethod
    def read(cls, text: bytes) -> LogId:
        """From the form that it has in Redis, `seq-fence`, or from the number alone. Raises `ValueError` for any other text."""
        seq, _, fence = text.partition(b"-")
        return cls(int(seq), int(fence or 0))

    def __bytes__(self) -> bytes:
        """The form that it has in Redis; without a fence that is not known."""
        return b"%d-%d" % self if self.fence else b"%d" % self.seq


class Terms(msgspec.Struct, frozen=True):
    """How a run survives: whether its first step may be run again, whether any may (such a run is not stopped
    because its client has gone), the seconds after which it is given up (0: never), and whether it waits for a
    flow that nobody serves."""

    durable: bool = False
    lasting: bool = False
    ttl: float = 0.0
    patient: bool = False


class NewRun(msgspec.Struct, frozen=True):
    """A run to start; `request` and `state` are the program's own bytes, `first` opens its log."""

    id: str
    flow: str
    plan: str
    cursor: str
    first: Event
    request: bytes
    state: bytes
    terms: Terms = Terms()
    remembered: float = 0.0
    """Seconds for which it is known that a run of this id was done, so that none is begun under it; beyond its record."""
    parent: str = ""
    """The run whose group this one is a member of."""
    scope: str = ""
    """Whose runs it is listed among; "": nobody's."""
    fingerprint: str = ""
    """Which request it answers."""
    kept: float = 0.0
    """Seconds that its record is kept when it is over; 0: as long as any other."""
    hidden: bool = False
    """Whether what it says is told to nobody but those who ask the same again."""


class Message(NamedTuple):
    """What has a step executed, and the list of the runs' Redis into which it is to be put."""

    queue: str
    body: bytes


class Deferred(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step puts off: a flow that is to run later, once or again and again, or whenever an endpoint is called.

    `id` is the same in each attempt of the step that puts it off. `at`: the moment, in ms since 1970; without one
    it is `after` ms from when it is put on record, by the server's clock. `request` is the program's own bytes, `about`
    a text by which people know it.
    """

    id: str
    trigger: str
    flow: str
    kind: Literal["once", "every", "webhook", "boot"]
    request: bytes
    at: int | None = None
    after: int = 0
    cron: str = ""
    tz: str = "UTC"
    catch_up: str = "latest"
    overlap: str = "allow"
    about: str = ""


class MemberEnd(msgspec.Struct, frozen=True):
    """How a member of a spread group stands: its status, and what it made once it is over."""

    status: str
    state: bytes
    error: bytes
    messages: tuple[bytes, ...]


class Claim(msgspec.Struct, frozen=True):
    """A step that is ours until its lease ends; `seq` is the last entry of the run's log.

    `waited`: ms from when the step was due until it was ours; `lapses`: how many owners of it were lost.
    """

    run_id: str
    path: str
    attempt: int
    fence: int
    seq: int
    flow: str
    plan: str
    state: bytes
    request: bytes
    messages: tuple[bytes, ...]
    stopped: bool = False
    waited: int = 0
    lapses: int = 0
    parent: str = ""
    members: tuple[MemberEnd, ...] = ()
    loose: tuple[bytes, ...] = ()
    """Lines of the log that earlier attempts of this step wrote: the client has them, no commit does."""
    saved: tuple[bytes, ...] = ()
    """What earlier attempts of this step have put by."""
    failures: int = 0
    """How often this step has failed and was to run anew."""
    at: int = 0
    """When it was claimed, in ms since 1970 by the server's clock."""
    begun: int = 0
    """When its run began, by the same clock."""


class Outcome(msgspec.Struct, frozen=True):
    """What a step did: where the run goes on, what it adds, what the log gets last.

    `next` is the path of the next step or `END`. `status` other than `running` ends the run here.
    """

    next: str
    state: bytes
    messages: tuple[bytes, ...] = ()
    events: tuple[Event, ...] = ()
    durable: bool = False
    answered: bool = False
    status: Status = "running"
    error: bytes = b""
    done: dict[str, JSON] = {}
    """What the run's list of steps keeps of it."""
    again: float | None = None
    """Seconds after which the step is to run anew, because it failed."""
    deferred: tuple[Deferred, ...] = ()
    """What it puts off; on record before the rest of the outcome is, under ids by which doing it twice is doing it once."""
    members: tuple[NewRun, ...] = ()
    """Runs that the step waits for: it is to run anew when they have ended. Nothing else of the outcome counts then."""


class RunRecord(msgspec.Struct, frozen=True):
    """A run as its record tells it; times in ms since 1970, by the server's clock."""

    id: str
    flow: str
    status: Status
    cursor: str
    attempt: int
    fence: int
    seq: int
    begun: int
    ended: int | None
    answered: bool
    error: JSON
    state: JSON
    steps: tuple[dict[str, JSON], ...]
    plan: str = ""
    """The structure that it was begun with."""
    replayed: int = 0
    """How often its complete answer was given again."""
    claimed: bool = False
    """Whether a worker has the step that is next."""
    sent: int = 0
    """When that step became due."""
    waited: int = 0
    """How long it was due before a worker had it, in ms."""
    lapses: int = 0
    """How many workers of that step were lost."""
    spread: int = 0
    """How many members of a spread group it waits for, or has waited for."""
    saved: tuple[bytes, ...] = ()
    """Of what that step has put by, what was asked for."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is to happen later, as its record tells it; times in ms since 1970, by the server's clock.

    `trigger`: which one of the brain's made it. `run`: the run that reached that trigger; of one that stands in the
    brain's own code, `brain` is its name instead. `due`: when it fires next, if it does. `last`: the latest instant it
    fired for. `fired`, `skipped`: how many instants. `under_way`: firings whose run is not over; `waiting`: firings that wait
    for these. `about`: what was asked last before it was made. `cancelled`: since when it fires no more, though it stands in the code.
    """

    id: str
    trigger: str
    flow: str
    kind: Literal["once", "every", "boot"]
    made: int
    cron: str = ""
    tz: str = "UTC"
    catch_up: str = ""
    overlap: str = ""
    scope: str = ""
    run: str = ""
    brain: str = ""
    due: int | None = None
    last: int | None = None
    fired: int = 0
    skipped: int = 0
    under_way: int = 0
    waiting: int = 0
    cancelled: int | None = None
    about: str = ""


class RunRow(msgspec.Struct, frozen=True):
    """A run as a list of runs tells it; times in ms since 1970, by the server's clock."""

    id: str
    flow: str
    status: Status
    begun: int
    ended: int | None
    answered: bool


class Unfinished(msgspec.Struct, frozen=True):
    """A run that is not over: which flow's, begun with which structure, the step that is next.

    `patient`: it waits for a flow that nobody serves.
    """

    id: str
    flow: str
    plan: str
    cursor: str
    patient: bool
    state: bytes
    """The program's own."""


class Load(NamedTuple):
    """How much is there: runs that are not over, those that are due, messages in each queue."""

    open: int
    due: int
    queues: tuple[int, ...]


class Woken(NamedTuple):
    """What `wake` found: (run id, flow, path, attempt) of each step that must be sent once more, and the seconds
    after which the next may be due, a second at most."""

    steps: tuple[tuple[str, str, str, int], ...]
    pause: float
