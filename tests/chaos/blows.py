"""What is done to a deployment's processes: killed, stopped for a while, asked to end."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
import redis

from tests.stack.deployment import Deployment

STOPPED = 7.0
"""Seconds that a stopped process is stopped for: longer than a lease."""

KINDS = {
    "pool child": 3,
    "worker": 6,
    "stopped worker": 2,
    "pool": 1,
    "web": 1,
    "beat": 1,
    "redis": 1,
    "forgetful redis": 1,
    "ended worker": 1,
    "ended web": 1,
}
"""What may be struck, and how often of so many times. A forgetful Redis, struck where it is wanted, comes back without the last it
had said it kept, as one does whose disk was busy. The last two are asked to end, as in a rolling restart."""

FORGOTTEN = 300_000
"""The most bytes that a forgetful Redis forgets: some seconds of a storm."""

MARKS = {
    "pool child": " -Q cpu",
    "pool": " -Q cpu",
    "web": "gunicorn",
    "ended web": "gunicorn",
    "beat": " beat ",
}
"""What is in the command lines of these processes; in those of all others ` -Q io`."""

SETTLING = 4000
"""Ms that a process takes, while others start beside it, until it is what it was."""

SPARED_LAPSES = 2
"""A step whose owner is lost three times in a row is given up, and rightly so: the third time is not ours to give."""


@dataclass
class Blows:
    """What was done so far; `forgetful`: Redis may lose what it has acknowledged, too, which nothing promises to get over fast."""

    forgetful: bool = False
    given: Counter[str] = field(default_factory=Counter)
    at: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """When a process was struck (ms since 1970, by the server's clock), and how, by its pid."""
    waking: set[asyncio.Task[None]] = field(default_factory=set)

    async def strike(self, stack: Deployment, chance: random.Random) -> None:
        """One blow; none when there is no such process, or none that may be struck."""
        kinds = {kind: often for kind, often in KINDS.items() if self.forgetful or kind != "forgetful redis"}
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        with stack.redis() as client:
            try:
                found = _found(stack, client, kind) - self._stopped()
                seconds, micros = client.time()
            except redis.RedisError:
                return  # it is coming back from the last blow
        if not found:
            return
        pid = chance.choice(sorted(found))
        self.given[kind] += 1
        # what the process has begun ends with it
        for one in (pid, *_children(pid)):
            self.at.setdefault(one, []).append((seconds * 1000 + micros // 1000, kind))
        with suppress(ProcessLookupError):
            if kind == "forgetful redis":
                _forget(stack, pid, chance)
            elif kind == "stopped worker":
                os.kill(pid, signal.SIGSTOP)
                self.waking.add(asyncio.create_task(_continue(pid), name=str(pid)))
            else:
                os.kill(pid, signal.SIGTERM if kind.startswith("ended") else signal.SIGKILL)

    def last(self, pid: int, before: int) -> tuple[int, str]:
        """The last blow that a process got before that moment and may have died of; 0 and no kind when there was none."""
        return max((blow for blow in self.at.get(pid, ()) if _counts(blow, before)), default=(0, ""))

    def struck_again(self, kind: str, begun: int, until: int) -> bool:
        """Whether what such a blow needs to be got over was struck as well: Redis, or one of the pools (ms since 1970)."""
        needed = {"redis", "forgetful redis"} | ({"pool", "pool child"} if kind.startswith("pool") else set())
        moments = {moment for blows in self.at.values() for moment, other in blows if other in needed}
        return any(begun - SETTLING < moment < until and moment != begun for moment in moments)

    def _stopped(self) -> set[int]:
        return {int(task.get_name()) for task in self.waking if not task.done()}


def _counts(blow: tuple[int, str], before: int) -> bool:
    """Whether a process may have lost a step by a blow at that moment: one that was stopped goes on, and is innocent again."""
    moment, kind = blow
    return moment <= before and (kind != "stopped worker" or before - moment < STOPPED * 1000 + SETTLING)


def _found(stack: Deployment, client: redis.Redis, kind: str) -> set[int]:
    if kind in ("redis", "forgetful redis"):
        return {client.info("server")["process_id"]}
    found = set(stack.pids(MARKS.get(kind, " -Q io")))
    # the master of the web processes is spared: its death is the supervisor's business and not a client's
    children = {pid for pid in found if _parent(pid) in found}
    worn = set(_worn(client))
    if kind == "pool":
        # its children end with it
        return set() if children & worn else found - children
    if MARKS.get(kind) == "gunicorn" or kind == "pool child":
        found = children
    return found - worn


def _forget(stack: Deployment, pid: int, chance: random.Random) -> None:
    """Kills a server and takes the last that it has written from its disk, before it is there again."""
    os.kill(pid, signal.SIGKILL)
    log = max((stack.data / "appendonlydir").glob("*.incr.aof"), key=os.path.getmtime)
    os.truncate(log, max(0, log.stat().st_size - chance.randrange(FORGOTTEN)))


def _parent(pid: int) -> int:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).ppid()
    return 0


def _worn(client: redis.Redis) -> Collection[int]:
    """The processes that hold a step which must not be lost once more."""
    worn = set()
    for run_id in client.zrange("bb:due", 0, -1):
        owner, lapses = client.hmget(f"bb:run:{run_id.decode()}", "owner", "lapses")
        if owner and int(lapses or 0) >= SPARED_LAPSES:
            worn.add(int(owner.decode().split(".")[-2]) if b"." in owner else 0)
    return worn


def _children(pid: int) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


async def _continue(pid: int) -> None:
    await asyncio.sleep(STOPPED)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
