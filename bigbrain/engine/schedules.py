"""The schedules in Redis: one method for each atomic step of a schedule's life.

Moments are ms since 1970 by the server's clock, so that no two processes disagree about what is due.
Methods raise `redis.RedisError` when the server is away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import redis

from bigbrain.engine import schedule_scripts as scripts
from bigbrain.engine.cron import Cron
from bigbrain.engine.records import Claim, Deferred
from bigbrain.engine.zones import zone
from bigbrain.errors import TriggerError

MOST = 100_000
"""Schedules that the runs of one scope may have made and that have not fired yet."""


class ScheduleStore:
    """The schedules of one Redis server."""

    def __init__(self, client: redis.Redis, *, now: Callable[[], float] | None = None) -> None:
        """now: the time in seconds since 1970, for tests; without it the server's clock decides."""
        self.client = client
        self._now = now
        self._clock = client.register_script(scripts.NOW)
        self._put_off = client.register_script(scripts.PUT_OFF)

    def put_off(self, claim: Claim, deferred: Sequence[Deferred]) -> bool:
        """Puts on record what a step puts off; False when the step is no longer ours.

        Raises `TriggerError` when the scope of its run has too many schedules.
        """
        args: list[bytes | str | int] = [self._time(), claim.run_id, claim.fence, MOST]
        for one in deferred:
            at = self._first(one) if one.cron else one.at
            args += [one.id, one.kind, one.trigger, one.flow, one.request, "" if at is None else at, one.after]
            args += [one.cron, one.tz, one.catch_up, one.overlap]
        done = int(self._put_off(args=args))
        if done < 0:
            raise TriggerError(f"{MOST} schedules of this key wait already; cancel some")
        return bool(done)

    def now(self) -> int:
        """The time."""
        return int(self._clock(args=[self._time()]))

    def _first(self, one: Deferred) -> int:
        return int(next(Cron(one.cron, zone(one.tz)).after(self.now() / 1000)) * 1000)

    def _time(self) -> str:
        return "" if self._now is None else str(int(self._now() * 1000))
