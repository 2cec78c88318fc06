"""The schedules in Redis: one method for each atomic step of a schedule's life.

Moments are ms since 1970 by the server's clock, so that no two processes disagree about what is due.
Methods raise `redis.RedisError` when the server is away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

import msgspec
import redis

from bigbrain.engine import schedule_scripts as scripts
from bigbrain.engine.cron import Cron
from bigbrain.engine.records import Claim, Deferred, Schedule
from bigbrain.engine.zones import zone
from bigbrain.errors import TriggerError

MOST = 100_000
"""Schedules of one scope that may wait to fire."""
MOST_DEAD = 1_000
"""Firings of one scope that failed for good and are kept; older ones go."""
KEPT_DEAD = 30 * 86400.0
"""Seconds that they are kept."""
ALIVE = 10.0
"""Seconds after which a process that does not look for what is due counts as gone."""


class Due(NamedTuple):
    """A schedule whose instant `due` has come."""

    id: str
    due: int
    kind: str
    flow: str
    cron: str
    tz: str
    catch_up: str
    scope: str


class Firing(NamedTuple):
    """An instant of a schedule, and the id of the run that answers for it."""

    due: int
    run: str


class Start(NamedTuple):
    """What a firing is to start."""

    flow: str
    request: bytes
    scope: str
    due: int


class Dead(NamedTuple):
    """A firing that failed for good, and was found so `at`; `error` is what its run's record says."""

    run: str
    at: int
    schedule: str
    flow: str
    error: dict[str, str]


class ScheduleStore:
    """The schedules of one Redis server."""

    def __init__(self, client: redis.Redis, *, now: Callable[[], float] | None = None) -> None:
        """now: the time in seconds since 1970, for tests; without it the server's clock decides."""
        self.client = client
        self._now = now
        self._clock = client.register_script(scripts.NOW)
        self._put_off = client.register_script(scripts.PUT_OFF)
        self._stand = client.register_script(scripts.STAND)
        self._come_up = client.register_script(scripts.COME_UP)
        self._due = client.register_script(scripts.DUE)
        self._fire = client.register_script(scripts.FIRE)
        self._look = client.register_script(scripts.LOOK)
        self._started = client.register_script(scripts.STARTED)
        self._settle = client.register_script(scripts.SETTLE)
        self._firing = client.register_script(scripts.FIRING)
        self._cancel = client.register_script(scripts.CANCEL)
        self._run_now = client.register_script(scripts.RUN_NOW)
        self._page = client.register_script(scripts.PAGE)
        self._one = client.register_script(scripts.ONE)
        self._dead = client.register_script(scripts.DEAD)
        self._revive = client.register_script(scripts.REVIVE)

    def now(self) -> int:
        """The time."""
        return int(self._clock(args=[self._time()]))

    def put_off(self, claim: Claim, deferred: Sequence[Deferred]) -> bool:
        """Puts on record what a step puts off; False when the step is no longer ours.

        Raises `TriggerError` when the scope of its run has too many schedules.
        """
        args: list[bytes | str | int] = [self._time(), claim.run_id, claim.fence, MOST]
        for one in deferred:
            args += [one.id, *self._fields(one)]
        done = int(self._put_off(args=args))
        if done < 0:
            raise TriggerError(f"{MOST} schedules of this key wait already; cancel some")
        return bool(done)

    def stand(self, brain: str, scope: str, standing: Iterable[Deferred]) -> None:
        """Puts the schedules on record that stand in a brain's code, and takes those off that no longer do.

        One that is there already keeps its next instant, unless it has another timing; scope: whose runs it makes.
        """
        args: list[bytes | str | int] = [self._time(), brain, scope]
        for one in standing:
            timing = f"{one.kind} {one.cron} {one.tz} {one.at} {one.after}"
            args += [one.id, timing, *self._fields(one)]
        self._stand(args=args)

    def come_up(self, process: str, at_start: Iterable[tuple[str, Firing]]) -> bool:
        """Counts a process as alive; the first one, while no other is, has the schedules `at_start` fire."""
        args: list[str | int] = [self._time(), process, _ms(ALIVE)]
        for id, firing in at_start:
            args += [id, *firing]
        return bool(self._come_up(args=args))

    def leave(self, process: str) -> None:
        """Counts a process as gone."""
        self.client.zrem("bb:processes", process)

    def due(self, skip: int, most: int, process: str = "") -> tuple[int, int, list[Due]]:
        """The time, the ms until the next schedule is due (1000 at most), and those that are, without the first `skip`.

        process: counts as alive.
        """
        now, pause, *rows = self._due(args=[self._time(), skip, most, process, _ms(ALIVE)])
        return int(now), int(pause), [_read_due(_texts(row)) for row in rows]

    def fire(self, due: Due, then: int | None, firings: Sequence[Firing]) -> list[str]:
        """Moves a schedule on to the instant `then`, or to its end: the runs that are to start now.

        None when another process has moved it: then it has those firings, too.
        """
        args: list[str | int] = [self._time(), due.id, due.due, "" if then is None else then]
        for firing in firings:
            args += firing
        return _texts(self._fire(args=args))

    def look(self, most: int) -> list[str]:
        """The runs of firings that somebody must look after: call `settle` for each."""
        return _texts(self._look(args=[self._time(), most]))

    def settle(self, run_id: str) -> str:
        """Looks after a firing: the run that is to start now, this one or one that has waited for it, or ''."""
        return cast(bytes, self._settle(args=[self._time(), run_id, _ms(KEPT_DEAD), MOST_DEAD])).decode()

    def firing(self, run_id: str) -> Start | None:
        """What a firing is to start; None when its schedule was cancelled."""
        row = self._firing(args=[self._time(), run_id])
        return Start(row[0].decode(), row[1], row[2].decode(), int(row[3])) if row else None

    def started(self, run_id: str) -> None:
        """Says that a firing's run is on record."""
        self._started(args=[self._time(), run_id])

    def cancel(self, id: str, scope: str = "") -> bool:
        """Has a schedule fire no more; False when the scope has none of that id that would."""
        return bool(self._cancel(args=[self._time(), id, scope]))

    def run_now(self, id: str, firing: Firing, scope: str = "") -> bool:
        """Fires a schedule beside its order; False when the scope has none of that id."""
        return bool(self._run_now(args=[self._time(), id, scope, *firing]))

    def page(self, scope: str, limit: int, made: int | None = None, id: str = "") -> list[Schedule]:
        """Schedules of a scope ('': of all), newest first, one more than `limit` when there are more.

        made, id: go on after the schedule that was made then under that id.
        """
        rows = self._page(args=[self._time(), scope, "+inf" if made is None else made, id, limit])
        return [_read(_texts(row)) for row in rows]

    def one(self, id: str, scope: str = "") -> Schedule | None:
        """A schedule; None when the scope ('': any) has none of that id."""
        row = self._one(args=[self._time(), id])
        found = _read(_texts(row)) if row else None
        return found if found is not None and scope in ("", found.scope) else None

    def dead(self, scope: str, limit: int = 100) -> list[Dead]:
        """The firings of a scope ('': of all) that failed for good, newest first."""
        rows = self._dead(args=[self._time(), scope, limit])
        return [
            Dead(run.decode(), int(at), id.decode(), flow.decode(), msgspec.json.decode(error) or {})
            for run, at, id, flow, error in rows
        ]

    def revive(self, scope: str, run_id: str) -> bool:
        """Takes a firing off the list of dead ones, because its run is to be taken up again; False when it is not on it.

        Of a scope other than '', it must be one of its own.
        """
        return bool(self._revive(args=[self._time(), scope, run_id]))

    def _fields(self, one: Deferred) -> list[bytes | str | int]:
        at = self._first(one) if one.cron else one.at
        timing: list[str | int] = [
            "" if at is None else at,
            one.after,
            one.cron,
            one.tz,
            one.catch_up,
            one.overlap,
            one.about,
        ]
        return [one.kind, one.trigger, one.flow, one.request, *timing]

    def _first(self, one: Deferred) -> int:
        return _ms(next(Cron(one.cron, zone(one.tz)).after(self.now() / 1000)))

    def _time(self) -> str:
        return "" if self._now is None else str(_ms(self._now()))


def _read_due(row: Sequence[str]) -> Due:
    id, due, kind, flow, cron, tz, catch_up, scope = row
    return Due(id, int(due), kind, flow, cron, tz, catch_up, scope)


_NAMES = (
    *("id", "under_way", "waiting", "made", "kind", "trigger", "flow", "cron", "tz", "catch_up", "overlap", "scope"),
    *("run", "due", "last", "fired", "skipped", "cancelled", "brain", "about"),
)


def _read(row: Sequence[str]) -> Schedule:
    fields = dict(zip(_NAMES, row, strict=True))
    told = {name: value for name, value in fields.items() if value != ""}
    return msgspec.convert(told, Schedule, strict=False)


def _texts(values: Iterable[bytes | int | None]) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else "" if value is None else str(value) for value in values]


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
